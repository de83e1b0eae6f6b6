package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// distributing sets trafficDistribution.
func distributing(distribution string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.TrafficDistribution = &distribution })
}

// place is the index of a node among those that are shared.
func place(net *check.Network, name string) int {
	return slices.IndexFunc(net.Nodes(), func(n candidate.Node) bool { return n.Name == name })
}

var _ = ginkgo.Describe("what trafficDistribution gives way to", func() {
	check.It(spec.ProxyTrafficDistributionNodeFallsBack, "PreferSameNode falls back to the zone, then to every endpoint",
		func(ctx context.Context, net *check.Network) {
			in := newNeighbourhood(net)
			pods := net.Backends(ctx, "app", in.near, in.neighbour, in.far, in.far)
			svc := distributed(ctx, net, "app", corev1.ServiceTrafficDistributionPreferSameNode)
			client := net.ClientPod(ctx, in.near)
			net.SetReady(ctx, pods[0], false)
			net.Expect(ctx, "the node of the client has no ready endpoint", clusterIPCalls(svc, onlyBy(4, pods[1]), client, client)...)
			net.SetReady(ctx, pods[1], false)
			net.Expect(ctx, "nor has its zone", clusterIPCalls(svc, exactlyBy(4, pods[2:]...), client, client)...)
		})

	check.It(spec.ProxyTrafficDistributionLocalFirst, "internalTrafficPolicy Local keeps traffic on the node",
		func(ctx context.Context, net *check.Network) {
			in := newNeighbourhood(net)
			pods := net.Backends(ctx, "app", in.near, in.neighbour, in.far)
			svc := net.Expose(ctx, exposed("app", distributing(corev1.ServiceTrafficDistributionPreferClose), internalLocal))
			near, neighbour := net.ClientPod(ctx, in.near), net.ClientPod(ctx, in.neighbour)
			net.Expect(ctx, "the Service is created", slices.Concat(
				clusterIPCalls(svc, onlyBy(3, pods[0]), near, near), clusterIPCalls(svc, onlyBy(3, pods[1]), neighbour, neighbour))...)
		})

	check.It(spec.ProxyTrafficDistributionLocalFirst, "externalTrafficPolicy Local keeps external traffic on the node",
		func(ctx context.Context, net *check.Network) {
			in := newNeighbourhood(net)
			pods := net.Backends(ctx, "app", in.near, in.neighbour, in.far)
			svc, addresses := exposeOutside(ctx, net, "app", distributing(corev1.ServiceTrafficDistributionPreferClose), externalLocal)
			net.Expect(ctx, "the Service is created", slices.Concat(
				arrivals(net, place(net, in.near), svc, addresses, onlyBy(3, pods[0])), arrivals(net, place(net, in.neighbour), svc, addresses, onlyBy(3, pods[1])))...)
		})

	check.It(spec.ProxyTrafficDistributionExternal, "the zone of the node that external traffic arrives at is preferred",
		func(ctx context.Context, net *check.Network) {
			in := newNeighbourhood(net)
			pods := net.Backends(ctx, "app", in.near, in.neighbour, in.far)
			svc, addresses := exposeOutside(ctx, net, "app", distributing(corev1.ServiceTrafficDistributionPreferClose))
			net.Expect(ctx, "the Service is created", slices.Concat(
				arrivals(net, place(net, in.near), svc, addresses, onlyBy(3, pods[:2]...)), arrivals(net, place(net, in.far), svc, addresses, onlyBy(3, pods[2])))...)
		})

	check.It(spec.ProxyTopologyModeFirst, "the annotation topology-mode decides which hints are given",
		func(ctx context.Context, net *check.Network) {
			podObjects(ctx, net, "app", 1, newNeighbourhood(net).near)
			zoned := distributing(corev1.ServiceTrafficDistributionPreferClose)
			auto := check.With(func(s *corev1.Service) { s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"} })
			by := net.Expose(ctx, check.Service("field", selecting("app"), zoned, check.Headless()))
			both := net.Expose(ctx, check.Service("both", selecting("app"), zoned, auto, check.Headless()))
			alone := net.Expose(ctx, check.Service("annotation", selecting("app"), auto, check.Headless()))
			hints := func(found []discoveryv1.EndpointSlice) (zones int) {
				for _, s := range found {
					for _, e := range s.Endpoints {
						if e.Hints != nil {
							zones += len(e.Hints.ForZones)
						}
					}
				}
				return zones
			}
			generated(ctx, net, by, "a Service with trafficDistribution alone is created", func(g Gomega, found []discoveryv1.EndpointSlice) {
				g.Expect(hints(found)).To(Equal(1), "hints for zones")
			})
			generated(ctx, net, alone, "one with the annotation alone is created", func(g Gomega, found []discoveryv1.EndpointSlice) {
				g.Expect(addressesIn(found)).To(HaveLen(1))
				if hints(found) > 0 {
					check.Abort("the annotation alone gives one endpoint a hint: it cannot be told from one that the field gives")
				}
			})
			generated(ctx, net, both, "one with the annotation as well is created, and one endpoint is too few for hints by CPUs", func(g Gomega, found []discoveryv1.EndpointSlice) {
				g.Expect(addressesIn(found)).To(HaveLen(1))
				g.Expect(hints(found)).To(BeZero(), "hints for zones")
			})
		})
})
