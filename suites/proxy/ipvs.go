package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// ipvsNode adds a node in ipvs mode, and a pod on it to send from.
func ipvsNode(ctx context.Context, net *check.Network, p candidate.ProxyConfiguration) (candidate.Node, candidate.Client) {
	ginkgo.GinkgoHelper()
	p.Mode = candidate.IPVS
	node := net.AddNode(ctx, p)
	return node, net.ClientPod(ctx, node.Name)
}

var _ = ginkgo.Describe("the ipvs mode", func() {
	check.It(spec.ProxyIPVSWatches, "follows Services and endpoints that come and go",
		func(ctx context.Context, net *check.Network) {
			node, client := ipvsNode(ctx, net, candidate.ProxyConfiguration{})
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app", onNodePorts())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[:2]...))
			paths := func(want check.Want) []check.Case {
				return slices.Concat(
					eachWay(check.ServiceAddress(svc, exposedPort), want, client), nodePortsAt(primaryOf(net, node), node.Name, svc, want))
			}
			net.Expect(ctx, "the Service is created", paths(exactlyBy(3, pods[:2]...))...)
			for _, now := range [][]candidate.Pod{pods, pods[1:], pods[2:]} {
				slice.Endpoints = net.Slice(svc, now...).Endpoints
				slice = net.UpdateSlice(ctx, slice)
				net.Expect(ctx, "its endpoints change", paths(exactlyBy(3, now...))...)
			}
			net.Unexpose(ctx, svc.Name)
			net.Expect(ctx, "it is deleted", append(once(paths(notBy(pods...))), caughtUp(ctx, net, pods[0], client)...)...)
		})

	check.It(spec.ProxyIPVSBalances, "directs traffic to one of the backends of the Service, and uses each",
		func(ctx context.Context, net *check.Network) {
			node, client := ipvsNode(ctx, net, candidate.ProxyConfiguration{})
			pods, others := net.Backends(ctx, "app", net.Node(0), net.Node(1), node.Name), net.Backends(ctx, "other", net.Node(0))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			other := net.Expose(ctx, exposed("other"))
			net.Expect(ctx, "Services are created", slices.Concat(
				eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredByEach(pods...), client, check.Host(node.Name)),
				nodePortsAt(primaryOf(net, node), node.Name, svc, check.AnsweredByEach(pods...)),
				eachWay(check.ServiceAddress(other, exposedPort), check.AnsweredBy(others...), client))...)
		})

	// Somebody meddles with the real servers, and nothing changes in the API. The backends are three, so that what one of them would get shows.
	meddled := func(ctx context.Context, net *check.Network, what candidate.Interference) {
		ginkgo.GinkgoHelper()
		node, client := ipvsNode(ctx, net, candidate.ProxyConfiguration{SyncPeriod: "2s"})
		pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
		svc := net.Expose(ctx, exposed("app"))
		paths := eachWay(check.ServiceAddress(svc, exposedPort), exactlyBy(len(pods)+1, pods...), client)
		net.Expect(ctx, "the Service is created", paths...)
		for range 2 {
			check.Must(net.OwnNodes().Interfere(ctx, node.Name, what))
			net.Expect(ctx, "somebody interferes: "+string(what), paths...)
		}
	}

	check.It(spec.ProxyIPVSPeriodicSync, "puts back real servers that somebody has removed",
		func(ctx context.Context, net *check.Network) { meddled(ctx, net, candidate.DropRealServers) })

	check.It(spec.ProxyIPVSDesiredState, "sends nothing to a real server that somebody has added, once it has synced",
		func(ctx context.Context, net *check.Network) { meddled(ctx, net, candidate.AddRealServer) })

	check.It(spec.ProxyIPVSDesiredState, "removes a virtual server that somebody has added, once it has synced",
		func(ctx context.Context, net *check.Network) {
			if net.PrimaryFamily() != corev1.IPv4Protocol {
				check.LeaveUnjudged(check.ByAnotherRange+" of IPv4", "the twins of virtual servers are of IPv4")
			}
			if net.Declared(spec.HostAccess) != "served" {
				check.LeaveUnjudged(check.ByImplementation, "only processes of the node reach the address of a virtual server that somebody adds, and nothing is declared of these (host-access)")
			}
			const tries = 5
			node, client := ipvsNode(ctx, net, candidate.ProxyConfiguration{SyncPeriod: interferencePeriod.String()})
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			served := eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredBy(pods...), client, check.Host(node.Name))
			net.Expect(ctx, "the Service is created", served...)
			at := check.ServiceAddress(svc, exposedPort)
			twin := netip.AddrPortFrom(candidate.TwinAddress(at.Addr()), at.Port())
			by := check.Host(node.Name)
			for try := 0; ; try++ {
				check.Must(net.OwnNodes().Interfere(ctx, node.Name, candidate.AddVirtualServer))
				if net.Send(ctx, candidate.Probe{From: by, To: twin, Protocol: corev1.ProtocolTCP})[0][0].Result == candidate.Answered {
					break
				}
				if try == tries {
					check.Abort("a virtual server was added %d times at %s, and never served", tries+1, twin)
				}
			}
			net.Expect(ctx, "somebody adds a virtual server", append(served, check.Case{From: by, To: twin, Want: turnedAway()})...)
		})
})
