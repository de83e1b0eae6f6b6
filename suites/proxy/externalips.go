package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("an external IP", func() {
	check.It(spec.ProxyExternalIPReachable, "leads to the backends at every node where its traffic arrives",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			one, two := net.ExternalAddress(), net.ExternalAddress()
			svc := net.Expose(ctx, exposed("app", onExternalIPs(one, two)))
			want := check.AnsweredByEach(pods...)
			net.Expect(ctx, "the Service is created", slices.Concat(
				eachWay(exposedAt(one), want, slices.Concat(outsiders(net), clients)...),
				eachWay(exposedAt(two), want, outsiders(net)...),
				toClusterIP(svc, want, clients[0]))...)
		})

	check.It(spec.ProxyExternalIPReachable, "is one that the Service lists now, and leads to ports of the Service only", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			one, two := net.ExternalAddress(), net.ExternalAddress()
			svc := exposeSelectorless(ctx, net, "app", onExternalIPs(one))
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			callers := append(outsiders(net), clients[2])
			served := func(a netip.Addr) []check.Case { return eachWay(exposedAt(a), check.AnsweredBy(pods...), callers...) }
			silent := func(a netip.Addr, port uint16) []check.Case {
				return once(eachWay(netip.AddrPortFrom(a, port), check.NotBy(pods...), callers...))
			}
			other := net.Expose(ctx, exposed("other", selecting("app"), onNodePorts()))
			net.Expect(ctx, "the Service is created", slices.Concat(
				served(one), silent(one, exposedPort+1), silent(one, check.BackendPort), silent(one, uint16(other.Spec.Ports[0].NodePort)), silent(two, exposedPort))...)
			net.Change(ctx, svc.Name, `{"spec":{"externalIPs":["`+two.String()+`"]}}`)
			net.Expect(ctx, "the external IP is replaced", append(served(two), silent(one, exposedPort)...)...)
			net.Change(ctx, svc.Name, `{"spec":{"externalIPs":null}}`)
			net.Expect(ctx, "the external IP is removed",
				append(silent(two, exposedPort), toClusterIP(svc, check.AnsweredBy(pods...), clients...)...)...)
		})

	check.It(spec.ProxyExternalIPReachable, "does not lead to programs of the nodes at the number where these listen",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			programs, number := hostBackends(ctx, net, "program")
			svc, addresses := exposeOutside(ctx, net, "app")
			served := programsAnswer(net, programs, number, clients)
			var cases []check.Case
			for i := range 3 {
				served = append(served, arrivals(net, i, svc, addresses, check.AnsweredBy(pods...))...)
			}
			for _, a := range addresses {
				cases = append(cases, once(eachWay(netip.AddrPortFrom(a, uint16(number)), check.NotBy(append(programs, pods...)...), slices.Concat(outsiders(net), clients, hosts(net))...))...)
			}
			net.Expect(ctx, "programs listen on the nodes", served...)
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyExternalIPReachable, "may belong to several Services on different ports",
		func(ctx context.Context, net *check.Network) {
			one, clients := backendsAndClients(ctx, net, "one", net.Node(0))
			two := net.Backends(ctx, "two", net.Node(1))
			shared := net.ExternalAddress()
			net.Expose(ctx, exposed("one", onExternalIPs(shared)))
			net.Expose(ctx, check.Service("two", onExternalIPs(shared), check.WithPorts(check.Port("", "TCP", 81, check.BackendPort))))
			var cases []check.Case
			for _, c := range append(outsiders(net), clients[2]) {
				cases = append(cases,
					check.Case{From: c, To: exposedAt(shared), Want: onlyBy(2, one...)},
					check.Case{From: c, To: netip.AddrPortFrom(shared, 81), Want: onlyBy(2, two...)})
			}
			net.Expect(ctx, "Services are created", cases...)
		})
})
