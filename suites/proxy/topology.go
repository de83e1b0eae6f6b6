package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// zones are two nodes in different zones, a pod of one Service on each, and a pod on each to send from.
type zones struct {
	names    [2]string // of the zones
	nodes    [2]string // of the nodes
	indices  [2]int    // of the nodes among those that are shared
	backends []candidate.Pod
	clients  [2]candidate.Client
}

func newZones(ctx context.Context, net *check.Network) *zones {
	ginkgo.GinkgoHelper()
	z := &zones{}
	all := net.Nodes()
	other := slices.IndexFunc(all, func(n candidate.Node) bool { return n.Zone != all[0].Zone })
	if all[0].Zone == "" || other < 0 || all[other].Zone == "" {
		check.LeaveUnjudged(check.ByZones, "the nodes are not in two zones (label topology.kubernetes.io/zone): %v", all)
	}
	z.indices = [2]int{0, other}
	for k, i := range z.indices {
		z.names[k], z.nodes[k] = all[i].Zone, all[i].Name
		z.clients[k] = net.ClientPod(ctx, all[i].Name)
	}
	z.backends = net.Backends(ctx, "app", z.nodes[0], z.nodes[1])
	return z
}

// hinted exposes a Service on node ports whose endpoints are given. It asks for the distribution that makes hints of
// such a kind, since a proxy may leave hints of a Service alone that asks for none. Before trafficDistribution was
// there, the annotation did.
func hinted(ctx context.Context, net *check.Network, name, distribution string, endpoints ...discoveryv1.Endpoint) (*corev1.Service, *discoveryv1.EndpointSlice) {
	ginkgo.GinkgoHelper()
	svc := net.Expose(ctx, exposed(name, withoutSelector(), onNodePorts(), check.With(func(s *corev1.Service) {
		if net.OfVersion(">=1.31") {
			s.Spec.TrafficDistribution = &distribution
		} else {
			s.Annotations = map[string]string{corev1.AnnotationTopologyMode: "Auto"}
		}
	})))
	slice := net.Slice(svc)
	slice.Endpoints = endpoints
	return svc, net.CreateSlice(ctx, slice)
}

// at is an endpoint as the controller would describe it to a proxy that may heed zones: with the zone of its node.
func at(net *check.Network, pod candidate.Pod) discoveryv1.Endpoint {
	e := check.Endpoint(pod, net.PrimaryFamily())
	for _, n := range net.Nodes() {
		if n.Name == pod.Node && n.Zone != "" {
			e.Zone = &n.Zone
		}
	}
	return e
}

// toZone is an endpoint with a hint for a zone; toNode is one with a hint for a node.
func toZone(net *check.Network, pod candidate.Pod, zone string) discoveryv1.Endpoint {
	e := at(net, pod)
	e.Hints = &discoveryv1.EndpointHints{ForZones: []discoveryv1.ForZone{{Name: zone}}}
	return e
}

func toNode(net *check.Network, pod candidate.Pod, node string) discoveryv1.Endpoint {
	e := at(net, pod)
	e.Hints = &discoveryv1.EndpointHints{ForNodes: []discoveryv1.ForNode{{Name: node}}}
	return e
}

// reach are calls from both nodes, of pods to the cluster IP and of outsiders to the node port.
func (z *zones) reach(net *check.Network, svc *corev1.Service, first, second check.Want) []check.Case {
	return slices.Concat(
		clusterIPCalls(svc, first, z.clients[0]), arrivals(net, z.indices[0], svc, nil, first),
		clusterIPCalls(svc, second, z.clients[1]), arrivals(net, z.indices[1], svc, nil, second))
}

var _ = ginkgo.Describe("topology hints", func() {
	check.It(spec.ProxyTopologyHintsUsed, "keep traffic with endpoints for the zone of the node",
		func(ctx context.Context, net *check.Network) {
			z := newZones(ctx, net)
			a, b := z.backends[0], z.backends[1]
			svc, slice := hinted(ctx, net, "app", corev1.ServiceTrafficDistributionPreferClose, toZone(net, a, z.names[0]), toZone(net, b, z.names[1]))
			net.Expect(ctx, "endpoints have hints for their own zones", z.reach(net, svc, onlyBy(2, a), onlyBy(2, b))...)
			// It is the hint that counts, not where the endpoint is.
			slice.Endpoints = []discoveryv1.Endpoint{toZone(net, a, z.names[1]), toZone(net, b, z.names[0])}
			net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "endpoints have hints for each other's zone", z.reach(net, svc, onlyBy(2, b), onlyBy(2, a))...)
		})

	check.It(spec.ProxyTopologyHintsUsed, "keep traffic with endpoints for the zone that the node had before its proxy started", check.OwnNodes(1),
		func(ctx context.Context, net *check.Network) {
			z := newZones(ctx, net)
			a, b := z.backends[0], z.backends[1]
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			client := net.ClientPod(ctx, node.Name)
			own, other := z.names[0], z.names[1]
			if node.Zone != own {
				check.Abort("node %s is in zone %q, not in %s", node.Name, node.Zone, own)
			}
			svc, slice := hinted(ctx, net, "app", corev1.ServiceTrafficDistributionPreferClose, toZone(net, a, own), toZone(net, b, other))
			for range 2 {
				check.Must(net.OwnNodes().StopProxy(ctx, node.Name))
				check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
				net.Expect(ctx, "the proxy has started on a node of "+own, clusterIPCalls(svc, onlyBy(2, a), client)...)
				a, b = b, a
				slice.Endpoints = []discoveryv1.Endpoint{toZone(net, a, own), toZone(net, b, other)}
				slice = net.UpdateSlice(ctx, slice)
				net.Expect(ctx, "endpoints have hints for each other's zone", clusterIPCalls(svc, onlyBy(2, a), client)...)
			}
		})

	check.It(spec.ProxyTopologyHintsUsed, "are used although an endpoint that is not ready has none",
		func(ctx context.Context, net *check.Network) {
			z := newZones(ctx, net)
			a, b := z.backends[0], z.backends[1]
			more := net.Backends(ctx, "more", z.nodes[0])[0]
			unready, no := at(net, more), false
			unready.Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &no}
			svc, _ := hinted(ctx, net, "app", corev1.ServiceTrafficDistributionPreferClose, toZone(net, a, z.names[0]), toZone(net, b, z.names[1]), unready)
			net.Expect(ctx, "the Service is created", z.reach(net, svc, onlyBy(3, a), onlyBy(3, b))...)
		})

	check.It(spec.ProxyTopologyHintsUsed, "keep traffic with endpoints for the node", check.Versions(">=1.34"),
		func(ctx context.Context, net *check.Network) {
			z := newZones(ctx, net)
			a, b := z.backends[0], z.backends[1]
			svc, slice := hinted(ctx, net, "app", corev1.ServiceTrafficDistributionPreferSameNode, toNode(net, a, z.nodes[0]), toNode(net, b, z.nodes[1]))
			net.Expect(ctx, "endpoints have hints for their own nodes", z.reach(net, svc, onlyBy(2, a), onlyBy(2, b))...)
			slice.Endpoints = []discoveryv1.Endpoint{toNode(net, a, z.nodes[1]), toNode(net, b, z.nodes[0])}
			net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "endpoints have hints for each other's node", z.reach(net, svc, onlyBy(2, b), onlyBy(2, a))...)
		})

	check.It(spec.ProxyTopologyHintsIncomplete, "are ignored where a ready endpoint has none", check.Also(spec.ProxyTopologyHintsUsed),
		func(ctx context.Context, net *check.Network) {
			z := newZones(ctx, net)
			a, b := z.backends[0], z.backends[1]
			svc, slice := hinted(ctx, net, "app", corev1.ServiceTrafficDistributionPreferClose, toZone(net, a, z.names[0]), at(net, b))
			both := check.AnsweredByEach(a, b)
			check.Deciding(func() {
				net.Expect(ctx, "the first endpoint has a hint and the second none", z.reach(net, svc, both, both)...)
			}, spec.ProxyTopologyHintsIncomplete)
			slice.Endpoints = []discoveryv1.Endpoint{toZone(net, a, z.names[0]), toZone(net, b, z.names[1])}
			slice = net.UpdateSlice(ctx, slice)
			check.Deciding(func() {
				net.Expect(ctx, "the second endpoint gets a hint too", z.reach(net, svc, onlyBy(2, a), onlyBy(2, b))...)
			}, spec.ProxyTopologyHintsUsed)
			slice.Endpoints[0].Hints = nil
			net.UpdateSlice(ctx, slice)
			check.Deciding(func() {
				net.Expect(ctx, "the first endpoint loses its hint", z.reach(net, svc, both, both)...)
			}, spec.ProxyTopologyHintsIncomplete)
		})

	check.It(spec.ProxyTopologyHintsIncomplete, "are ignored where no endpoint has one for the zone",
		func(ctx context.Context, net *check.Network) {
			z := newZones(ctx, net)
			a, b := z.backends[0], z.backends[1]
			svc, _ := hinted(ctx, net, "app", corev1.ServiceTrafficDistributionPreferClose, toZone(net, a, z.names[0]), toZone(net, b, z.names[0]))
			elsewhere, _ := hinted(ctx, net, "elsewhere", corev1.ServiceTrafficDistributionPreferClose, toZone(net, a, "elsewhere"), toZone(net, b, z.names[1]))
			both := check.AnsweredByEach(a, b)
			net.Expect(ctx, "the Services are created", slices.Concat(
				clusterIPCalls(svc, both, z.clients[1]), arrivals(net, z.indices[1], svc, nil, both),
				clusterIPCalls(elsewhere, both, z.clients[0]), arrivals(net, z.indices[0], elsewhere, nil, both))...)
		})

	check.It(spec.ProxyTopologyHintsIncomplete, "are ignored where no endpoint has one for the node", check.Versions(">=1.34"),
		func(ctx context.Context, net *check.Network) {
			z := newZones(ctx, net)
			a, b := z.backends[0], z.backends[1]
			// The client is on a node that holds no endpoint. A proxy that goes by where endpoints are would prefer one
			// on its node, which is another requirement.
			i := slices.IndexFunc(net.Nodes(), func(n candidate.Node) bool { return !slices.Contains(z.nodes[:], n.Name) })
			if i < 0 {
				check.LeaveUnjudged(check.ByZones, "there is no third node")
			}
			here := net.Node(i)
			client := net.ClientPod(ctx, here)
			svc, _ := hinted(ctx, net, "app", corev1.ServiceTrafficDistributionPreferSameNode, toNode(net, a, "elsewhere"), toNode(net, b, "elsewhere"))
			part, _ := hinted(ctx, net, "part", corev1.ServiceTrafficDistributionPreferSameNode, toNode(net, a, here), at(net, b))
			both := check.AnsweredByEach(a, b)
			net.Expect(ctx, "the Services are created", slices.Concat(
				clusterIPCalls(svc, both, client), arrivals(net, i, svc, nil, both),
				clusterIPCalls(part, both, client), arrivals(net, i, part, nil, both))...)
		})
})
