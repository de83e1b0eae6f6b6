package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// kubeProxySelectors select the pods of kube-proxy: as a DaemonSet, as kubeadm and kind make it, and as static pods of the nodes.
var kubeProxySelectors = []string{"k8s-app=kube-proxy", "component=kube-proxy"}

// runsKubeProxy finds out whether kube-proxy serves the nodes of the run. Its ConfigMap alone says nothing: one may be
// left over where another proxy runs. Where it does not run on every one of the nodes, or cannot be seen, it says why
// it is not taken for the proxy. That is no error.
func (c *Cluster) runsKubeProxy(ctx context.Context) (because string, err error) {
	running := map[string]bool{}
	for _, selector := range kubeProxySelectors {
		list, err := c.client.CoreV1().Pods(metav1.NamespaceSystem).List(ctx, metav1.ListOptions{LabelSelector: selector})
		if err != nil {
			if refused(err) {
				return "its pods in kube-system may not be listed", nil
			}
			return "", fmt.Errorf("list the pods of kube-proxy: %w", err)
		}
		for _, p := range list.Items {
			if p.DeletionTimestamp == nil && slices.ContainsFunc(p.Status.Conditions, func(c corev1.PodCondition) bool {
				return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
			}) {
				running[p.Spec.NodeName] = true
			}
		}
	}
	without := 0
	for _, n := range c.nodes {
		if !running[n.Name] {
			without++
			because = fmt.Sprintf("no pod of it is ready on %s", n.Name)
		}
	}
	if without > 1 {
		because = fmt.Sprintf("no pod of it is ready on %d of %d nodes", without, len(c.nodes))
	}
	return because, nil
}
