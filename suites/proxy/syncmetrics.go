package proxy

import (
	"context"
	"fmt"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// localPorts counts the ports of Services of other namespaces that have a Local policy: internal and external.
func localPorts(ctx context.Context, net *check.Network) map[string]float64 {
	ginkgo.GinkgoHelper()
	all, err := net.Client().CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	check.Must(err)
	ports := map[string]float64{}
	for _, s := range all.Items {
		if s.Namespace == net.Namespace() {
			continue
		}
		if s.Spec.InternalTrafficPolicy != nil && *s.Spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal {
			ports["internal"] += float64(len(s.Spec.Ports))
		}
		if s.Spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal {
			ports["external"] += float64(len(s.Spec.Ports))
		}
	}
	return ports
}

// precision is that of the times in API objects, from which proxies know when endpoints changed.
const precision = time.Second

var _ = ginkgo.Describe("the metrics of syncs", func() {
	check.It(spec.ProxySyncDurationMetric, "count every sync, and tell how long they took in seconds", check.Long(),
		func(ctx context.Context, net *check.Network) {
			const changes = 5
			node, family := net.Node(0), net.PrimaryFamily()
			begun, begunHere := metricsOf(ctx, net, node), time.Now()
			s := newSwitching(ctx, net, "app", node)
			// A sync that is counted from here on began after the Service was made: one that began later has brought it.
			before := metricsOf(ctx, net, node)
			s.pace(ctx, node, changes-1, check.ConvergenceBound)
			var after *metrics
			var syncs float64
			check.Converge(ctx, "the last of several syncs is counted", check.ConvergenceBound, func(g Gomega) {
				after = metricsOf(ctx, net, node)
				syncs = after.of(family, syncDuration+"_count", nil) - before.of(family, syncDuration+"_count", nil)
				g.Expect(syncs).To(BeNumerically(">=", changes), "syncs counted, while %d changes were made, each when the one before had arrived", changes)
			})
			took := max(elapsed(begun, after), time.Since(begunHere)) // that of the candidate may be virtual
			sum := after.of(family, syncDuration+"_sum", nil) - before.of(family, syncDuration+"_sum", nil)
			check.Record("syncs of "+node, "%v in %s, which took %v s", syncs, took, sum)
			Expect(sum).To(BeNumerically(">", 0), "seconds that %v syncs took", syncs)
			Expect(sum).To(BeNumerically("<=", took.Seconds()), "seconds that %v syncs of one family took, one after the other", syncs)
		})

	check.It(spec.ProxyNoLocalEndpointsMetric, "count Services with a Local policy and no local endpoint, by policy",
		func(ctx context.Context, net *check.Network) {
			node, family := net.Node(2), net.PrimaryFamily()
			far, near := net.Backends(ctx, "far", net.Node(0))[0], net.Backends(ctx, "near", node)[0]
			kinds := map[string][]check.ServiceOption{"internal": {internalLocal}, "external": {onNodePorts(), externalLocal}}
			counts := map[string]int{"internal": 7, "external": 4}
			made := map[*corev1.Service]*discoveryv1.EndpointSlice{}
			for kind, options := range kinds {
				for i := range counts[kind] {
					svc := net.Expose(ctx, check.Service(fmt.Sprintf("%s-%d", kind, i), append(options, withoutSelector())...))
					made[svc] = net.CreateSlice(ctx, net.Slice(svc, far))
				}
			}
			gauges := func() map[string]float64 {
				ginkgo.GinkgoHelper()
				net.Pass(ctx, lookAgain)
				m := metricsOf(ctx, net, node)
				now := map[string]float64{}
				for kind := range kinds {
					now[kind] = m.of(family, noLocalEndpoints, map[string]string{"traffic_policy": kind})
				}
				return now
			}
			// Services of other checks may be counted too: how many there are at most is known.
			check.Converge(ctx, "Services have no endpoint on the node", check.ConvergenceBound, func(g Gomega) {
				others, now := localPorts(ctx, net), gauges()
				for kind, n := range counts {
					g.Expect(now[kind]).To(BeNumerically(">=", n), "%s, of %s: Services without a local endpoint", noLocalEndpoints, kind)
					g.Expect(now[kind]).To(BeNumerically("<=", float64(n)+others[kind]), "%s, of %s: Services with a Local policy", noLocalEndpoints, kind)
				}
			})
			for svc, slice := range made {
				slice.Endpoints = net.Slice(svc, far, near).Endpoints
				net.UpdateSlice(ctx, slice)
			}
			check.Converge(ctx, "the Services get an endpoint on the node", check.ConvergenceBound, func(g Gomega) {
				others, now := localPorts(ctx, net), gauges()
				for kind := range counts {
					g.Expect(now[kind]).To(BeNumerically("<=", others[kind]), "%s, of %s: Services of others with a Local policy", noLocalEndpoints, kind)
				}
			})
		})

	check.It(spec.ProxyProgrammingDurationMetric, "count changes of endpoints, and tell how long they took to arrive in seconds",
		check.Needs(spec.ProxyConfiguration, spec.EndpointControllers),
		func(ctx context.Context, net *check.Network) {
			family := net.PrimaryFamily()
			begun, begunHere := metricsOf(ctx, net, net.Node(0)), time.Now()
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			net.Pass(ctx, precision) // what changed before the proxy of this node started is not counted
			pods := net.Backends(ctx, "app", net.Node(0))
			svc := net.Expose(ctx, exposed("app"))
			call := func() check.Case {
				return check.Case{From: check.Host(node.Name), To: check.ServiceAddress(svc, exposedPort), Want: check.AnsweredByEach(pods...)}
			}
			net.Expect(ctx, "the Service is created", call())
			before := metricsOf(ctx, net, node.Name)
			pods = append(pods, net.Backends(ctx, "app", net.Node(1))...)
			net.Expect(ctx, "an endpoint comes", call())
			var after *metrics
			var count float64
			check.Converge(ctx, "a change of endpoints is counted", check.ConvergenceBound, func(g Gomega) {
				after = metricsOf(ctx, net, node.Name)
				count = after.of(family, programmingDuration+"_count", nil)
				g.Expect(count).To(BeNumerically(">", before.of(family, programmingDuration+"_count", nil)),
					"changes of endpoints that have arrived at %s", node.Name)
			})
			mean, longest := after.of(family, programmingDuration+"_sum", nil)/count, max(elapsed(begun, after), time.Since(begunHere))+precision
			check.Record("changes of endpoints that have arrived", "%v, after %v s on average", count, mean)
			Expect(mean).To(And(BeNumerically(">", 0), BeNumerically("<=", longest.Seconds())),
				"seconds until a change arrived, on average; the node is %s old", longest)
		})
})
