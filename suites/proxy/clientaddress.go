package proxy

import (
	"context"
	"net/netip"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("the address that a backend sees", func() {
	check.It(spec.ProxyClientAddressKept, "is that of the pod which connects to a cluster IP",
		func(ctx context.Context, net *check.Network) {
			near, far := net.Backends(ctx, "near", net.Node(0))[0], net.Backends(ctx, "far", net.Node(1))[0]
			clients := []candidate.Pod{
				net.Start(ctx, candidate.Pod{Node: net.Node(0)}), net.Start(ctx, candidate.Pod{Node: net.Node(2)}),
				near, // a backend of another Service
			}
			var cases []check.Case
			for _, pod := range []candidate.Pod{near, far} {
				svc := exposeSelectorless(ctx, net, net.Name("app"))
				net.CreateSlice(ctx, net.Slice(svc, pod))
				for _, c := range clients {
					if c.PodName != pod.PodName { // a pod that reaches itself may see another address
						own := check.SeenFrom(check.AddressOf(c.Addresses, net.PrimaryFamily()))
						cases = append(cases, toClusterIP(svc, check.AllOf(own, check.AnsweredBy(pod)), check.FromPod(c))...)
					}
				}
			}
			net.Expect(ctx, "Services are created", cases...)
		})

	check.It(spec.ProxyNodePortClientAddressAltered, "is not that of a client outside of the cluster which connects to a node port",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", onNodePorts(), externalCluster))
			var own []netip.Addr
			for _, c := range outsiders(net) {
				own = append(own, ownAddress(ctx, net, c, pods[0]))
			}
			net.Expect(ctx, "the Service is created",
				toNodePorts(net, svc, check.AllOf(check.NotSeenFrom(own...), check.AnsweredByEach(pods...)), outsiders(net)...)...)
		})
})
