package cluster

import (
	"errors"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
	"github.com/service-conformance/conformance/framework/spec"
)

// TestKubeProxyIsRecognisedByWhatRuns: its ConfigMap alone may be left over beside another proxy.
func TestKubeProxyIsRecognisedByWhatRuns(t *testing.T) {
	configured := &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-proxy"}, Data: map[string]string{"config.conf": "mode: nftables"},
	}
	pod := func(node, label string, ready corev1.ConditionStatus) *corev1.Pod {
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-proxy-" + node, Labels: map[string]string{label: "kube-proxy"}},
			Spec:       corev1.PodSpec{NodeName: node},
			Status:     corev1.PodStatus{Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: ready}}},
		}
	}
	for name, test := range map[string]struct {
		objects []runtime.Object
		denied  bool
		because string // why it is not recognised
	}{
		"a DaemonSet":              {objects: []runtime.Object{pod("a", "k8s-app", "True"), pod("b", "k8s-app", "True"), pod("elsewhere", "k8s-app", "False")}},
		"static pods":              {objects: []runtime.Object{pod("a", "component", "True"), pod("b", "component", "True")}},
		"a ConfigMap alone":        {because: "no pod of it is ready on 2 of 2 nodes"},
		"another proxy's pods":     {objects: []runtime.Object{pod("a", "app", "True"), pod("b", "app", "True")}, because: "2 of 2 nodes"},
		"not on every node":        {objects: []runtime.Object{pod("a", "k8s-app", "True")}, because: "no pod of it is ready on b"},
		"not ready":                {objects: []runtime.Object{pod("a", "k8s-app", "False"), pod("b", "k8s-app", "True")}, because: "no pod of it is ready on a"},
		"pods that nobody may see": {denied: true, because: "may not be listed"},
	} {
		t.Run(name, func(t *testing.T) {
			client := fake.NewClientset(append(test.objects, configured)...)
			if test.denied {
				client.PrependReactor("list", "pods", func(clienttesting.Action) (bool, runtime.Object, error) {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "pods"}, "", errors.New("no"))
				})
			}
			c := &Cluster{client: fromclientset.Of(client), nodes: []candidate.Node{{Name: "a"}, {Name: "b"}}}
			got, err := c.proxyCapabilities(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if recognised := slices.Contains(got, spec.KubeProxy); recognised != (test.because == "") || recognised != (c.description.ProxyMode == "nftables") {
				t.Errorf("capabilities %v, mode %q", got, c.description.ProxyMode)
			}
			if !strings.Contains(c.otherProxy, test.because) || test.because == "" && c.otherProxy != "" {
				t.Errorf("not recognised because %q, want %q", c.otherProxy, test.because)
			}
		})
	}
}
