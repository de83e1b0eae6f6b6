package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// bothFamilies are the IP families.
var bothFamilies = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}

// inBothFamilies makes the Service dual stack.
func inBothFamilies() check.ServiceOption {
	return check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)
}

// atFamily is the port of an exposed Service at its virtual address of the family.
func atFamily(svc *corev1.Service, family corev1.IPFamily) netip.AddrPort {
	ginkgo.GinkgoHelper()
	for _, ip := range svc.Spec.ClusterIPs {
		if a, err := netip.ParseAddr(ip); err == nil && a.Is4() == (family == corev1.IPv4Protocol) {
			return exposedAt(a)
		}
	}
	check.Abort("Service %s has no virtual address of family %s: %v", svc.Name, family, svc.Spec.ClusterIPs)
	return netip.AddrPort{}
}

// sliceOf is an EndpointSlice of the family, not created yet, that lists the pods.
func sliceOf(net *check.Network, svc *corev1.Service, family corev1.IPFamily, pods ...candidate.Pod) *discoveryv1.EndpointSlice {
	slice := net.Slice(svc)
	slice.AddressType = discoveryv1.AddressType(family)
	for _, p := range pods {
		slice.Endpoints = append(slice.Endpoints, check.Endpoint(p, family))
	}
	return slice
}

// onNodePortOf is the k-th node port of the Service at the i-th node's address of the family.
func onNodePortOf(net *check.Network, i int, svc *corev1.Service, k int, family corev1.IPFamily) netip.AddrPort {
	return netip.AddrPortFrom(check.AddressOf(net.Nodes()[i].Addresses, family), uint16(svc.Spec.Ports[k].NodePort))
}

var _ = ginkgo.Describe("a dual-stack Service", func() {
	check.It(spec.ProxyDualStackAddresses, "is served on the addresses of both families by endpoints of that family", check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			selecting, byHand := net.Expose(ctx, exposed("app", inBothFamilies())), exposeSelectorless(ctx, net, "by-hand", inBothFamilies())
			for i, f := range bothFamilies {
				net.CreateSlice(ctx, sliceOf(net, byHand, f, pods[i]))
			}
			var cases []check.Case
			for i, f := range bothFamilies {
				all := slices.Concat(clients, hosts(net), []candidate.Client{check.FromPod(pods[0])})
				cases = slices.Concat(cases,
					eachWay(atFamily(selecting, f), check.AnsweredBy(pods...), all...),
					eachWay(atFamily(selecting, f), check.AnsweredByEach(pods...), clients[0]),
					eachWay(atFamily(byHand, f), exactlyBy(2, pods[i]), all...))
			}
			net.Expect(ctx, "dual-stack Services are created", cases...)
		})

	check.It(spec.ProxyDualStackAddresses, "is served in the family whose endpoints come later, whichever that is", check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			callers := append(clients, check.Host(net.Node(2)))
			for i, name := range []string{"one", "two"} {
				svc := exposeSelectorless(ctx, net, name, inBothFamilies())
				first, later := bothFamilies[i], bothFamilies[1-i]
				net.CreateSlice(ctx, sliceOf(net, svc, first, pods[0]))
				served := eachWay(atFamily(svc, first), exactlyBy(2, pods[0]), callers...)
				net.Expect(ctx, "endpoints of "+string(first)+" come", append(served, once(eachWay(atFamily(svc, later), check.NotBy(pods...), callers...))...)...)
				net.CreateSlice(ctx, sliceOf(net, svc, later, pods[1]))
				net.Expect(ctx, "endpoints of "+string(later)+" come too", append(served, eachWay(atFamily(svc, later), exactlyBy(2, pods[1]), callers...)...)...)
			}
		})

	check.It(spec.ProxyDualStackAddresses, "with a family first that the cluster has second is served on both", check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			reversed := net.Expose(ctx, exposed("app", inBothFamilies(), check.WithFamilies(net.OtherFamily(), net.PrimaryFamily())))
			single := net.Expose(ctx, exposed("single", selecting("app"), check.WithFamilies(net.OtherFamily())))
			cases := eachWay(atFamily(single, net.OtherFamily()), check.AnsweredBy(pods...), append(clients, check.Host(net.Node(2)))...)
			for _, f := range bothFamilies {
				cases = append(cases, eachWay(atFamily(reversed, f), check.AnsweredBy(pods...), append(clients, check.Host(net.Node(2)))...)...)
			}
			net.Expect(ctx, "Services are created that begin with the other family", cases...)
		})

	check.It(spec.ProxyDualStackNodePorts, "has its node ports on node addresses of both families", check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", inBothFamilies(), onNodePorts()))
			var cases []check.Case
			for _, f := range bothFamilies {
				for i := range 3 {
					for _, c := range []candidate.Client{check.Outside(net.Node(i)), clients[i], clients[(i+1)%3]} {
						for k := range 2 {
							cases = append(cases, check.Case{From: c, To: onNodePortOf(net, i, svc, k, f), Protocol: inTurn(k), Want: check.AnsweredBy(pods...)})
						}
					}
				}
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyDualStackPolicies, "follows its traffic policies in each family by itself", check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app", inBothFamilies(), onNodePorts(), internalLocal, externalLocal)
			internally := check.Unanswered()
			externally := check.Unanswered()
			var cases []check.Case
			for i, f := range bothFamilies { // the first node has an endpoint of one family, the second node one of the other
				net.CreateSlice(ctx, sliceOf(net, svc, f, pods[i]))
				to, without := atFamily(svc, f), 1-i
				cases = slices.Concat(cases,
					eachWay(to, onlyBy(2, pods[i]), clients[i], check.Host(net.Node(i))),
					once(eachWay(to, internally, clients[without], clients[2])),
					[]check.Case{
						{From: check.Outside(net.Node(i)), To: onNodePortOf(net, i, svc, 0, f), Want: onlyBy(2, pods[i])},
						{From: check.Outside(net.Node(i)), To: onNodePortOf(net, i, svc, 1, f), Protocol: corev1.ProtocolUDP, Want: onlyBy(2, pods[i])},
						{From: check.Outside(net.Node(without)), To: onNodePortOf(net, without, svc, 0, f), Want: externally, Shots: 1},
						{From: check.Outside(net.Node(2)), To: onNodePortOf(net, 2, svc, 0, f), Want: externally, Shots: 1},
					})
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyDualStackPolicies, "has session affinity in each family", check.KeepsTimeline(), check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app", inBothFamilies(), sticky())
			var cases []check.Case
			for _, f := range bothFamilies {
				net.CreateSlice(ctx, sliceOf(net, svc, f, pods...))
				for _, c := range append(clients, check.Host(net.Node(2))) {
					cases = append(cases, check.Case{From: c, To: atFamily(svc, f), Want: check.AlwaysBySame(pods...)})
				}
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyDualStackTransition, "comes from and becomes one of a single family without a connection lost", check.KeepsTimeline(), check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app", check.WithPolicy(corev1.IPFamilyPolicySingleStack), onNodePorts())
			for _, f := range bothFamilies {
				net.CreateSlice(ctx, sliceOf(net, svc, f, pods...))
			}
			callers := append(clients, check.Host(net.Node(0)))
			primary := clusterIPCalls(svc, check.AnsweredByEach(pods...), callers...)
			net.Expect(ctx, "the Service is created in one family", primary...)
			settled(ctx, net, pods[0], clients[0], clients[2])
			unbroken(ctx, net, check.ServiceAddress(svc, exposedPort), check.AnsweredBy(pods...), func() {
				both := net.Change(ctx, svc.Name, `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`)
				secondary := atFamily(both, net.OtherFamily())
				net.Expect(ctx, "the other family is added", slices.Concat(
					primary, eachWay(secondary, check.AnsweredBy(pods...), callers...),
					[]check.Case{{From: check.Outside(net.Node(0)), To: onNodePortOf(net, 0, svc, 0, net.OtherFamily()), Want: check.AnsweredBy(pods...)}})...)
				net.Change(ctx, svc.Name, `{"spec":{"ipFamilyPolicy":"SingleStack"}}`)
				net.Expect(ctx, "the other family is removed", append(slices.Clone(primary), once(eachWay(secondary, check.NotBy(pods...), callers...))...)...)
			}, clients[0], clients[2])
		})
})
