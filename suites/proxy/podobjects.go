package proxy

import (
	"context"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// readyPodObject is a Pod that runs and is ready, with a node and an address. Nothing runs in it.
func readyPodObject(name string, labels map[string]string, node, address string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
		Spec:       corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "nothing", Image: "nothing"}}},
		Status: corev1.PodStatus{
			Phase: corev1.PodRunning, PodIP: address, PodIPs: []corev1.PodIP{{IP: address}},
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}},
		},
	}
}

// createPodObject creates a Pod object with its status.
func createPodObject(ctx context.Context, net *check.Network, object *corev1.Pod) {
	ginkgo.GinkgoHelper()
	pods, status := net.Client().CoreV1().Pods(net.Namespace()), object.Status
	created, err := candidate.Create(ctx, pods, object)
	check.Must(err)
	created.Status = status
	check.Must(candidate.SetStatus(ctx, pods, created))
}

// removePodObject removes a Pod object at once, if it is there.
func removePodObject(ctx context.Context, net *check.Network, name string) {
	ginkgo.GinkgoHelper()
	err := candidate.Delete(ctx, net.Client().CoreV1().Pods(net.Namespace()), name, metav1.DeleteOptions{GracePeriodSeconds: new(int64(0))})
	if !apierrors.IsNotFound(err) {
		check.Must(err)
	}
}

// podObjects makes ready Pods on the nodes in turn, with addresses of the primary family, in which nothing runs. Checks
// of controllers that take many pods use it. Where a kubelet would start what is in a Pod, they are started, but no
// more than nobody feels.
func podObjects(ctx context.Context, net *check.Network, app string, n int, nodes ...string) []candidate.Pod {
	ginkgo.GinkgoHelper()
	made := make([]candidate.Pod, n)
	address := firstAddress(net.PrimaryFamily())
	for i := range made {
		made[i] = candidate.Pod{
			PodName: candidate.PodName{Namespace: net.Namespace(), Name: net.Name(app)}, Node: nodes[i%len(nodes)],
			Labels: map[string]string{"app": app}, Addresses: []netip.Addr{address},
		}
		address = address.Next()
	}
	if net.Has(spec.Kubelet) {
		if n > fewPods && !net.Has(spec.VirtualClock) {
			check.LeaveUnjudged(check.ByLab, "it takes %d pods at once, and where they really run others would feel it", n)
		}
		check.Concurrently(n, func(i int) { made[i] = net.Start(ctx, made[i]) })
		return made
	}
	ginkgo.DeferCleanup(func(ctx context.Context) {
		byWriters(n, func(i int) { removePodObject(ctx, net, made[i].Name) }) // one request for all of them takes a slow server more than the minute that it has
	})
	byWriters(n, func(i int) {
		p := &made[i]
		createPodObject(ctx, net, readyPodObject(p.Name, p.Labels, p.Node, p.Addresses[0].String()))
	})
	return made
}

// fewPods may be started at once on nodes that others use.
const fewPods = 30

// firstAddress begins a row of addresses that nobody has: of the benchmarking range (RFC 2544) and of the one for documentation (RFC 3849).
func firstAddress(family corev1.IPFamily) netip.Addr {
	if family == corev1.IPv6Protocol {
		return netip.MustParseAddr("2001:db8::1")
	}
	return netip.MustParseAddr("198.18.0.1")
}
