package kindcluster

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubernetesfake "k8s.io/client-go/kubernetes/fake"

	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
)

func TestMissingNamesWhatTheClusterLacks(t *testing.T) {
	node := func(name string, status corev1.ConditionStatus) *corev1.Node {
		return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}, Status: corev1.NodeStatus{Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: status}}}}
	}
	proxy := func(n int32) *appsv1.DaemonSet {
		return &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "kube-proxy"}, Status: appsv1.DaemonSetStatus{NumberReady: n}}
	}
	dns := func(n int32) *appsv1.Deployment {
		two := int32(2)
		return &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: "kube-system", Name: "coredns"}, Spec: appsv1.DeploymentSpec{Replicas: &two},
			Status: appsv1.DeploymentStatus{ReadyReplicas: n}}
	}
	a, b := node("a", corev1.ConditionTrue), node("b", corev1.ConditionTrue)
	for name, c := range map[string]struct {
		objects []runtime.Object
		want    string
	}{
		"a node":           {[]runtime.Object{a, proxy(2), dns(2)}, "1 of 2 nodes"},
		"a ready node":     {[]runtime.Object{a, node("b", corev1.ConditionFalse), proxy(2), dns(2)}, "node b is not ready"},
		"a node's verdict": {[]runtime.Object{a, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}}, proxy(2), dns(2)}, "node b is not ready"},
		"a proxy":          {[]runtime.Object{a, b, proxy(1), dns(2)}, "kube-proxy is ready on 1 of 2 nodes (does this machine's kernel"},
		"the DNS":          {[]runtime.Object{a, b, proxy(2), dns(1)}, "1 of 2 replicas of coredns"},
		"nothing":          {[]runtime.Object{a, b, proxy(2), dns(2)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := missing(t.Context(), fromclientset.Of(kubernetesfake.NewClientset(c.objects...)), 2)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestPollTellsWhatWasMissingWhenTimeIsUp(t *testing.T) {
	synctest.Test(t, testPoll)
}

func testPoll(t *testing.T) {
	ctx, cancel := context.WithDeadline(t.Context(), time.Now().Add(time.Hour))
	defer cancel()
	looks := 0
	if err := poll(ctx, func(context.Context) error { looks++; return nil }); err != nil || looks != 1 {
		t.Errorf("got %v after %d looks", err, looks)
	}
	short, cancelShort := context.WithTimeout(t.Context(), time.Second)
	defer cancelShort()
	why := errors.New("no DNS")
	if err := poll(short, func(context.Context) error { return why }); !errors.Is(err, why) {
		t.Errorf("got %v", err)
	}
	over, cancelOver := context.WithCancel(t.Context())
	cancelOver()
	if err := poll(over, func(context.Context) error { return why }); !errors.Is(err, context.Canceled) {
		t.Errorf("an interruption is told as %v", err)
	}
}
