package check

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Converge demands that the controllers of the cluster follow a change, which what names, within the bound. A machine
// can starve the controllers and the kubelets. So if the demand is not met, a plain pod and a Service that selects it
// are made. The demand gets as much time again as the pod takes to appear in an EndpointSlice. On a virtual clock the
// bound passes first, and the demand is looked at once.
func (n *Network) Converge(ctx context.Context, what string, bound time.Duration, demand func(g gomega.Gomega)) {
	ginkgo.GinkgoHelper()
	if n.virtual {
		n.Pass(ctx, bound)
		Converge(ctx, what, time.Nanosecond, demand)
		return
	}
	more := func() time.Duration { return n.controllersPace(ctx, paceBounds*bounded(patiently(bound))) }
	if unmet := converge(ctx, what, bound, more, demand); unmet != "" {
		ginkgo.Fail(unmet)
	}
}

// controllersPace returns how long a plain pod takes from its creation until an EndpointSlice lists it as ready. It
// returns zero if that takes longer than the bound: then the controllers do not work.
func (n *Network) controllersPace(ctx context.Context, bound time.Duration) time.Duration {
	ginkgo.GinkgoHelper()
	watch := startStopwatch()
	defer watch.stop()
	defer n.journal.aside()()
	name := n.Name("pace")
	svc := n.Expose(ctx, Service(name, WithPorts(Port("", corev1.ProtocolTCP, plainPort, BackendPort))))
	pod := n.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: name}, Node: n.Node(0), Labels: map[string]string{"app": name}})
	for pause := patiently(pollInterval); ; {
		found, err := n.Client().DiscoveryV1().EndpointSlices(n.Namespace()).List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + svc.Name})
		Must(err)
		took := watch.elapsed()
		if listsReady(found.Items, pod) {
			Record("pace", "the controllers follow a plain pod and Service %.1f s after they were made", took.Seconds())
			return took
		}
		if took >= bound {
			Record("pace", "the controllers do not follow a plain pod and Service either, %.0f s after they were made", took.Seconds())
			return 0
		}
		n.pause(ctx, pause)
		pause = n.nextPause(pause, took, bound)
	}
}

// listsReady reports whether an endpoint of the slices is the pod, and ready.
func listsReady(found []discoveryv1.EndpointSlice, pod candidate.Pod) bool {
	return slices.ContainsFunc(found, func(s discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(s.Endpoints, func(e discoveryv1.Endpoint) bool {
			return e.Conditions.Ready != nil && *e.Conditions.Ready && slices.ContainsFunc(pod.Addresses, func(a netip.Addr) bool {
				return slices.Contains(e.Addresses, a.String())
			})
		})
	})
}
