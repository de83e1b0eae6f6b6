package check

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// PodsLive ends the check as unknown if one of its pods has ended, and not by the check. A kubelet ends pods early if it is
// short of memory, or if its container runtime does not answer in time. What is seen then says nothing of the
// candidate. It looks only where there are kubelets.
func (n *Network) PodsLive(ctx context.Context) {
	ginkgo.GinkgoHelper()
	if n.virtual || !n.Has(spec.Kubelet) {
		return
	}
	list, err := n.Client().CoreV1().Pods(n.Namespace()).List(ctx, metav1.ListOptions{})
	Must(err)
	n.mu.Lock()
	pods := slices.Clone(n.pods)
	n.mu.Unlock()
	if p, ended := firstEnded(list.Items, pods, n.Namespace()); ended {
		Abort("pod %s has ended, and not by the check: look at the kubelet of node %s", p.Name, p.Node)
	}
}

// firstEnded is the first of the pods of a namespace that were started and do not run.
func firstEnded(objects []corev1.Pod, started []candidate.Pod, namespace string) (candidate.Pod, bool) {
	for _, p := range started {
		running := slices.ContainsFunc(objects, func(o corev1.Pod) bool { return o.Name == p.Name && o.Status.Phase == corev1.PodRunning })
		if p.Namespace == namespace && !running {
			return p, true
		}
	}
	return candidate.Pod{}, false
}
