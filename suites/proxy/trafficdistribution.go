package proxy

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// distributed exposes the pods of the app with a trafficDistribution.
func distributed(ctx context.Context, net *check.Network, app, distribution string) *corev1.Service {
	ginkgo.GinkgoHelper()
	return net.Expose(ctx, exposed(app, check.With(func(s *corev1.Service) { s.Spec.TrafficDistribution = &distribution })))
}

// neighbourhood is three nodes: two of the same zone and one of another.
type neighbourhood struct {
	near, neighbour, far string
}

func newNeighbourhood(net *check.Network) neighbourhood {
	ginkgo.GinkgoHelper()
	nodes := net.Nodes()
	for i, a := range nodes {
		k := slices.IndexFunc(nodes[i+1:], func(b candidate.Node) bool { return b.Zone == a.Zone })
		far := slices.IndexFunc(nodes, func(b candidate.Node) bool { return b.Zone != a.Zone })
		if k >= 0 && far >= 0 && a.Zone != "" {
			return neighbourhood{a.Name, nodes[i+1+k].Name, nodes[far].Name}
		}
	}
	check.LeaveUnjudged(check.ByZones, "there are no three nodes of which two are in the same zone (label topology.kubernetes.io/zone)")
	return neighbourhood{}
}

// distributesByZone checks a value of trafficDistribution that prefers the zone of the client.
func distributesByZone(ctx context.Context, net *check.Network, distribution string) {
	ginkgo.GinkgoHelper()
	in := newNeighbourhood(net)
	pods := net.Backends(ctx, "app", in.near, in.neighbour, in.far)
	svc := distributed(ctx, net, "app", distribution)
	near, far := net.ClientPod(ctx, in.near), net.ClientPod(ctx, in.far)
	calls := func(wantNear, wantFar check.Want) []check.Case {
		at := check.ServiceAddress(svc, exposedPort)
		return []check.Case{
			{From: near, To: at, Want: wantNear}, {From: near, To: at, Protocol: corev1.ProtocolUDP, Want: wantNear},
			{From: far, To: at, Want: wantFar}, {From: far, To: at, Protocol: corev1.ProtocolUDP, Want: wantFar},
		}
	}
	net.Expect(ctx, "the Service is created", calls(check.AnsweredByEach(pods[:2]...), onlyBy(3, pods[2]))...)
	net.SetReady(ctx, pods[2], false)
	net.Expect(ctx, "the only endpoint of a zone is no longer ready", calls(check.AnsweredByEach(pods[:2]...), check.AnsweredByEach(pods[:2]...))...)
	net.SetReady(ctx, pods[2], true)
	net.SetReady(ctx, pods[0], false)
	net.Expect(ctx, "a zone has a ready endpoint again, and the other one less", calls(onlyBy(3, pods[1]), onlyBy(3, pods[2]))...)
}

var _ = ginkgo.Describe("trafficDistribution", func() {
	check.It(spec.ProxyTrafficDistributionSameZone, "PreferClose keeps traffic in the zone of the client while it has ready endpoints",
		func(ctx context.Context, net *check.Network) {
			distributesByZone(ctx, net, corev1.ServiceTrafficDistributionPreferClose)
		})

	check.It(spec.ProxyTrafficDistributionSameZone, "PreferSameZone keeps traffic in the zone of the client while it has ready endpoints",
		check.Versions(">=1.34"), func(ctx context.Context, net *check.Network) {
			distributesByZone(ctx, net, corev1.ServiceTrafficDistributionPreferSameZone)
		})

	check.It(spec.ProxyTrafficDistributionSameNode, "PreferSameNode keeps traffic on the node of the client while it has ready endpoints",
		func(ctx context.Context, net *check.Network) {
			in := newNeighbourhood(net)
			pods := net.Backends(ctx, "app", in.near, in.neighbour, in.far)
			svc := distributed(ctx, net, "app", corev1.ServiceTrafficDistributionPreferSameNode)
			near, neighbour, far := net.ClientPod(ctx, in.near), net.ClientPod(ctx, in.neighbour), net.ClientPod(ctx, in.far)
			calls := func(wantNear check.Want) []check.Case {
				at := check.ServiceAddress(svc, exposedPort)
				return []check.Case{
					{From: near, To: at, Want: wantNear}, {From: near, To: at, Protocol: corev1.ProtocolUDP, Want: wantNear},
					{From: neighbour, To: at, Want: onlyBy(3, pods[1])}, {From: far, To: at, Want: onlyBy(3, pods[2])},
				}
			}
			net.Expect(ctx, "the Service is created", calls(onlyBy(3, pods[0]))...)
			net.SetReady(ctx, pods[0], false)
			// Where it goes instead is not said; kube-proxy keeps it in the zone.
			net.Expect(ctx, "the only endpoint of a node is no longer ready", calls(onlyBy(3, pods[1], pods[2]))...)
			net.SetReady(ctx, pods[0], true)
			net.Expect(ctx, "the node has a ready endpoint again", calls(onlyBy(3, pods[0]))...)
		})
})

// severalZones are the names of the nodes, and of the zones that they are in.
func severalZones(net *check.Network) (names, zones []string) {
	ginkgo.GinkgoHelper()
	for _, n := range net.Nodes() {
		names = append(names, n.Name)
		if !slices.Contains(zones, n.Zone) {
			zones = append(zones, n.Zone)
		}
	}
	if len(zones) < 2 || slices.Contains(zones, "") {
		check.LeaveUnjudged(check.ByZones, "the nodes are not in two or more zones (label topology.kubernetes.io/zone)")
	}
	return names, zones
}

// topologyAuto asks for hints by the CPUs of zones.
func topologyAuto() check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"} })
}

// enoughForZones is a number of endpoints with which no zone is more than a fifth beyond its share, however the CPUs are divided among up to four zones.
const enoughForZones = 24

// hintsByZone counts the endpoints that have a hint for a zone, and those that have none.
func hintsByZone(found []discoveryv1.EndpointSlice) map[string]int {
	count := map[string]int{}
	for _, s := range found {
		for _, e := range s.Endpoints {
			if e.Hints == nil || len(e.Hints.ForZones) == 0 {
				count["without a hint"]++
				continue
			}
			for _, z := range e.Hints.ForZones {
				count[z.Name]++
			}
		}
	}
	return count
}

// hintedForEach demands hints for every zone.
func hintedForEach(ctx context.Context, net *check.Network, svc *corev1.Service, what string, zones []string) {
	ginkgo.GinkgoHelper()
	generated(ctx, net, svc, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
		g.Expect(addressesIn(found)).To(HaveLen(enoughForZones))
		g.Expect(slices.Sorted(maps.Keys(hintsByZone(found)))).To(Equal(slices.Sorted(slices.Values(zones))), "the zones that endpoints have hints for")
	})
}

var _ = ginkgo.Describe("the annotation topology-mode Auto", func() {
	check.It(spec.ProxyTopologyModeAuto, "gives hints for all zones where there are enough endpoints, and none where there are not", check.Alone(), // a node of another check without a zone would take the hints
		func(ctx context.Context, net *check.Network) {
			names, zones := severalZones(net)
			podObjects(ctx, net, "many", enoughForZones, names...)
			podObjects(ctx, net, "few", 1, names...)
			many := net.Expose(ctx, exposed("many", topologyAuto(), check.Headless()))
			few := net.Expose(ctx, exposed("few", topologyAuto(), check.Headless()))
			hintedForEach(ctx, net, many, "a Service with 24 endpoints is created", zones)
			what := fmt.Sprintf("a Service with one endpoint for %d zones is created", len(zones))
			generated(ctx, net, few, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
				g.Expect(hintsByZone(found)).To(Equal(map[string]int{"without a hint": 1}), "endpoints by the zone that they have a hint for")
			})
		})

	check.It(spec.ProxyTopologyModeAuto, "gives the hints back when a node that had no zone gets one", check.Needs(spec.OwnNodes), check.Alone(), check.Long(), // hints of all Services go meanwhile
		func(ctx context.Context, net *check.Network) {
			names, zones := severalZones(net)
			podObjects(ctx, net, "many", enoughForZones, names...)
			many := net.Expose(ctx, exposed("many", topologyAuto(), check.Headless()))
			hintedForEach(ctx, net, many, "a Service with 24 endpoints is created", zones)
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			toTheZone(ctx, net, node.Name, "")
			for range 50 { // who takes no hints for it has seen the node within five seconds
				if hintsByZone(slicesNaming(ctx, net, many))["without a hint"] == enoughForZones {
					break
				}
				net.Pass(ctx, 100*time.Millisecond)
			}
			later := net.Expose(ctx, exposed("later", selecting("many"), check.Headless()))
			generated(ctx, net, later, "a node has no zone", func(g Gomega, found []discoveryv1.EndpointSlice) {
				g.Expect(addressesIn(found)).To(HaveLen(enoughForZones)) // what the controllers had begun is done
			})
			toTheZone(ctx, net, node.Name, zones[0])
			hintedForEach(ctx, net, many, "the node gets its zone", zones)
		})
})
