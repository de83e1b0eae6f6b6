package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// toTheZone labels a node of the check's own with a zone, or takes the label away.
func toTheZone(ctx context.Context, net *check.Network, node, zone string) {
	ginkgo.GinkgoHelper()
	value := "null"
	if zone != "" {
		value = fmt.Sprintf("%q", zone)
	}
	check.Must(candidate.Patch(ctx, net.Client().CoreV1().Nodes(), node, types.MergePatchType, `{"metadata":{"labels":{"`+corev1.LabelTopologyZone+`":`+value+`}}}`))
}

var _ = ginkgo.Describe("the zone of a node", func() {
	check.It(spec.ProxyNodeZoneFollowed, "counts for hints as it is at the moment", check.Long(), func(ctx context.Context, net *check.Network) {
		z := newZones(ctx, net)
		a, b := z.backends[0], z.backends[1]
		node := net.AddNode(ctx, candidate.ProxyConfiguration{})
		client := net.ClientPod(ctx, node.Name)
		svc, _ := hinted(ctx, net, "app", corev1.ServiceTrafficDistributionPreferClose, toZone(net, a, z.names[0]), toZone(net, b, z.names[1]))
		reach := func(what string, want check.Want) {
			ginkgo.GinkgoHelper()
			net.Expect(ctx, what, clusterIPCalls(svc, want, client, check.Host(node.Name))...)
		}
		toTheZone(ctx, net, node.Name, "")
		reach("a node has no zone", check.AnsweredByEach(a, b))
		toTheZone(ctx, net, node.Name, z.names[1])
		reach("a node gets its zone late", onlyBy(2, b))
		toTheZone(ctx, net, node.Name, z.names[0])
		reach("a node gets another zone", onlyBy(2, a))
		toTheZone(ctx, net, node.Name, "")
		reach("a node loses its zone", check.AnsweredByEach(a, b))
	})

	check.It(spec.ProxySliceZoneFollowed, "is that of its endpoints as it is at the moment", check.Long(), check.Claiming(spec.FeatureEndpointControllers), func(ctx context.Context, net *check.Network) {
		z := newZones(ctx, net)
		node := net.AddNode(ctx, candidate.ProxyConfiguration{})
		toTheZone(ctx, net, node.Name, "")
		pod := ownBackends(ctx, net, map[string]string{"app": "zoned"}, node.Name)[0]
		services := make([]*corev1.Service, 8) // a controller that does not look at Nodes may come by one of them for another reason
		for i := range services {
			services[i] = net.Expose(ctx, exposed(fmt.Sprintf("zoned-%d", i), selecting("zoned"), check.With(func(s *corev1.Service) {
				if net.OfVersion(">=1.31") {
					s.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
				}
			})))
		}
		each := func(svc *corev1.Service, what, zone string) {
			ginkgo.GinkgoHelper()
			generated(ctx, net, svc, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
				e, _ := endpointOf(found, pod)
				g.Expect(e).NotTo(BeNil(), "the pod is no endpoint of Service %s", svc.Name)
				said, hints := "", []string{}
				if e.Zone != nil {
					said = *e.Zone
				}
				g.Expect(said).To(Equal(zone), "zone of the endpoint")
				if e.Hints == nil || zone == "" {
					return
				}
				for _, h := range e.Hints.ForZones {
					hints = append(hints, h.Name)
				}
				g.Expect(slices.Compact(hints)).To(ConsistOf(zone), "zones that the endpoint has hints for")
			})
		}
		tells := func(what, zone string) {
			ginkgo.GinkgoHelper()
			check.Concurrently(len(services), func(i int) { each(services[i], what, zone) })
		}
		tells("a pod is on a node without a zone", "")
		toTheZone(ctx, net, node.Name, z.names[0])
		tells("its node gets a zone", z.names[0])
		toTheZone(ctx, net, node.Name, z.names[1])
		tells("its node gets another zone", z.names[1])
	})
})
