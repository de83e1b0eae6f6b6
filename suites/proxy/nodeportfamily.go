package proxy

import (
	"context"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// unusedPort is one that no program of a node has, and that is no node port.
const unusedPort = 1

var _ = ginkgo.Describe("a node port", func() {
	check.It(spec.ProxyNodePortOtherFamily, "is closed at node addresses of the family that its Service has not", check.DualStack(), check.Claiming(spec.FeatureNodePort),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			callers := func(i int) []candidate.Client {
				return []candidate.Client{clients[1-i], clients[2], check.Outside(net.Node(i))}
			}
			var unused []candidate.Probe
			for i := range 2 {
				to := netip.AddrPortFrom(check.AddressOf(net.Nodes()[i].Addresses, net.OtherFamily()), unusedPort)
				for _, c := range callers(i) {
					unused = append(unused, candidate.Probe{From: c, To: to, Protocol: corev1.ProtocolTCP})
				}
			}
			for i, shots := range net.Send(ctx, unused...) {
				if shots[0].Result != candidate.Refused {
					check.LeaveUnjudged("nodes that refuse connections to ports that nobody serves", "a connection to %s was %s", unused[i].To, shots[0].Result)
				}
			}
			svc := net.Expose(ctx, exposed("app", onNodePorts(), check.WithPolicy(corev1.IPFamilyPolicySingleStack)))
			var cases []check.Case
			for i := range 2 {
				for _, c := range callers(i) {
					cases = append(cases,
						check.Case{From: c, To: onNodePort(net, i, svc, 0), Want: check.AnsweredBy(pods...)},
						check.Case{From: c, To: onNodePortOf(net, i, svc, 0, net.OtherFamily()), Want: check.ConnectionRefused()})
				}
			}
			net.Expect(ctx, "a Service of one family is created", cases...)
		})
})
