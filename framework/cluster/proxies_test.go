package cluster

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient/fromclientset"
)

// noted notes which proxies were stopped.
type noted struct{ stopped []string }

func (n *noted) Stop(_ context.Context, node string) error {
	n.stopped = append(n.stopped, node)
	return nil
}

// TestAStoppedProxyIsStartedByTheEndOfTheLease demands that no check leaves a shared node without a proxy.
func TestAStoppedProxyIsStartedByTheEndOfTheLease(t *testing.T) {
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "kube-proxy-x", Labels: map[string]string{"k8s-app": "kube-proxy"}}, Spec: corev1.PodSpec{NodeName: "one"}}
	other := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceSystem, Name: "coredns-x", Labels: map[string]string{"k8s-app": "kube-dns"}}, Spec: corev1.PodSpec{NodeName: "one"}}
	client, proxies := fake.NewClientset(pod, other), &noted{}
	d := &dataPlane{controlPlane: controlPlane{cluster: &Cluster{client: fromclientset.Of(client), options: Options{Proxies: proxies}}}}
	if err := d.StopProxy(t.Context(), "one"); err != nil || !slices.Equal(proxies.stopped, []string{"one"}) {
		t.Fatalf("stopped %v, error %v", proxies.stopped, err)
	}
	d.startStopped()
	left, err := client.CoreV1().Pods(metav1.NamespaceSystem).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(left.Items) != 1 || left.Items[0].Name != "coredns-x" {
		t.Errorf("left %v, error %v", left.Items, err)
	}
	if err := d.StartProxy(t.Context(), "one", candidate.ProxyConfiguration{}); err == nil {
		t.Error("a node without a pod of kube-proxy has no proxy to start")
	}

	without := &dataPlane{controlPlane: controlPlane{cluster: &Cluster{}}}
	_, added := without.AddNode(t.Context(), candidate.Node{}, candidate.ProxyConfiguration{})
	_, seen := without.ProxyState(t.Context(), "one")
	for _, err := range []error{
		without.StopProxy(t.Context(), "one"), without.StartProxy(t.Context(), "one", candidate.ProxyConfiguration{}), without.Interfere(t.Context(), "one", candidate.CutOff), added, seen,
	} {
		if u := candidate.AsUnavailable(err); u == nil || u.JudgedBy == "" {
			t.Errorf("a cluster of others: %v", err)
		}
	}
}
