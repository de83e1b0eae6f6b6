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

// reverse asks for the names of an address. A server that does not know an address may ask others outside of the cluster. So checks ask only once a name has been found
// to have the address.
func reverse(address netip.Addr, want check.RecordsWant) check.Lookup {
	return check.Ask(candidate.PTR, candidate.ReverseName(address), want)
}

var _ = ginkgo.Describe("the DNS name of an address", func() {
	check.It(spec.ProxyDNSReverse, "is that of the Service whose virtual address it is, and later that of the next one",
		func(ctx context.Context, net *check.Network) {
			app, ports := net.Expose(ctx, exposed("app")), net.Expose(ctx, exposed("ports", onNodePorts()))
			at := func(svc *corev1.Service) netip.Addr { return check.ServiceAddress(svc, exposedPort).Addr() }
			net.ExpectRecords(ctx, "Services are created", named(net, app), named(net, ports))
			net.ExpectRecords(ctx, "their names are found", reverse(at(app), check.Names(nameOf(app))), reverse(at(ports), check.Names(nameOf(ports))))
			net.Unexpose(ctx, app.Name)
			next := exposed("next", check.WithClusterIP(app.Spec.ClusterIP))
			next.Namespace = net.Namespace()
			if made := net.Create(ctx, next); !made.Accepted() {
				check.Record("left out", "nobody but the first Service was looked at, as somebody else has its address: %s", made)
				return
			}
			net.ExpectRecords(ctx, "another Service gets the address", check.Ask(primaryType(net), nameOf(next), check.ResolvesTo(at(app))))
			net.ExpectRecordsWithin(ctx, "its name is found", missBound, reverse(at(app), check.Names(nameOf(next))), reverse(at(ports), check.Names(nameOf(ports))))
		})

	check.It(spec.ProxyDNSReverse, "is that of the Service for its address of each family", check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			dual := net.Expose(ctx, exposed("dual", inBothFamilies()))
			var forward, back []check.Lookup
			for _, family := range []corev1.IPFamily{net.PrimaryFamily(), net.OtherFamily()} {
				a := atFamily(dual, family).Addr()
				forward, back = append(forward, check.Ask(addressType(family), nameOf(dual), check.ResolvesTo(a))), append(back, reverse(a, check.Names(nameOf(dual))))
			}
			net.ExpectRecords(ctx, "the Service is created", forward...)
			net.ExpectRecords(ctx, "its name is found", back...)
		})

	check.It(spec.ProxyDNSHeadlessReverse, "is that of the endpoint of a headless Service, with a hostname and without",
		func(ctx context.Context, net *check.Network) {
			pods := []candidate.Pod{hosted(ctx, net, 0, "app", "web-0"), hosted(ctx, net, 1, "app", "web-1")}
			pods = append(pods, net.Backends(ctx, "app", net.Node(0))...)
			svc := net.Expose(ctx, headless("app"))
			ports := net.ExpectRecords(ctx, "the Service is created", resolving(net, svc, pods...),
				check.Ask(candidate.SRV, portOf(svc, "tcp", "tcp"), check.SomeRecords(len(pods))))[1]
			var names []check.Lookup
			for _, r := range ports.Records {
				names = append(names, check.Ask(primaryType(net), r.Target, check.SomeRecords(1)))
			}
			var back []check.Lookup
			for i, said := range net.ExpectRecords(ctx, "the targets of SRV records are asked for", names...) {
				back = append(back, reverse(said.Records[0].Address, check.NamesWith(names[i].Name)))
			}
			net.ExpectRecords(ctx, "their names are found", back...)
		})
})
