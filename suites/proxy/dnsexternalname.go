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

// aliases demand that the name of a Service is an alias for a full name, whatever type of records is asked for.
func aliases(svc *corev1.Service, target string) []check.Lookup {
	var lookups []check.Lookup
	for _, t := range []candidate.RecordType{candidate.CNAME, candidate.A, candidate.AAAA} {
		lookups = append(lookups, check.Ask(t, nameOf(svc), check.AliasFor(target)))
	}
	return lookups
}

// aliasWithin is check.AliasFor a name of the domain cluster.local, which is that of the cluster or another one.
func aliasWithin(name string) check.RecordsWant {
	short, full := check.AliasFor(name), check.AliasFor(name+".cluster.local.")
	return check.RecordsWant{Text: full.Text, Met: func(q candidate.Question, said candidate.Resolution) bool {
		return short.Met(q, said) || full.Met(q, said)
	}}
}

// leadingTo demands an alias, and in the same answer an address.
func leadingTo(alias check.RecordsWant, address netip.Addr) check.RecordsWant {
	return check.RecordsWant{Text: alias.Text + " and " + address.String(), Met: func(q candidate.Question, said candidate.Resolution) bool {
		return alias.Met(q, said) && slices.ContainsFunc(said.Records, func(r candidate.Record) bool { return r.Type == q.Type && r.Address == address })
	}}
}

var _ = ginkgo.Describe("the DNS name of a Service of type ExternalName", func() {
	check.It(spec.ProxyDNSExternalName, "is an alias for its externalName for as long as it is of that type",
		func(ctx context.Context, net *check.Network) {
			svc := net.Expose(ctx, check.Service("alias", check.ExternalName(externalHost)))
			net.ExpectRecords(ctx, "the Service is created", aliases(svc, externalHost+".")...)
			net.Change(ctx, svc.Name, `{"spec":{"externalName":"other.example.com"}}`)
			net.ExpectRecords(ctx, "its externalName is changed", aliases(svc, "other.example.com.")...)
			svc = net.Change(ctx, svc.Name, `{"spec":{"type":"ClusterIP","externalName":null,"ports":[{"port":80}]}}`)
			net.ExpectRecords(ctx, "its type becomes ClusterIP", named(net, svc))
			net.Change(ctx, svc.Name, `{"spec":{"type":"ExternalName","externalName":"`+externalHost+`"}}`)
			net.ExpectRecords(ctx, "its type becomes ExternalName", aliases(svc, externalHost+".")...)
			net.Unexpose(ctx, svc.Name)
			net.ExpectRecords(ctx, "it is deleted", check.Ask(candidate.CNAME, nameOf(svc), check.NoRecords()))
		})

	check.It(spec.ProxyDNSExternalName, "is an alias for a name of the cluster too, whether or not that exists, and whatever selector its Service has",
		func(ctx context.Context, net *check.Network) {
			target := net.Expose(ctx, exposed("target", withoutSelector()))
			to := func(name string, options ...check.ServiceOption) (*corev1.Service, string) {
				full := name + "." + target.Namespace + ".svc"
				return net.Expose(ctx, check.Service("alias-"+name, append(options, check.ExternalName(full+".cluster.local"))...)), full
			}
			exists, existing := to(target.Name)
			dangling, missing := to("missing")
			selector := net.Expose(ctx, check.Service("selecting", check.ExternalName(externalHost), selecting("app")))
			net.ExpectRecords(ctx, "Services are created",
				check.Ask(candidate.CNAME, nameOf(exists), aliasWithin(existing)),
				check.Ask(candidate.CNAME, nameOf(dangling), aliasWithin(missing)),
				check.Ask(candidate.CNAME, nameOf(selector), check.AliasFor(externalHost+".")))
		})

	check.It(spec.ProxyDNSExternalNameFollowed, "leads on to the address of a Service whose name it is an alias for",
		func(ctx context.Context, net *check.Network) {
			target := net.Expose(ctx, exposed("target", withoutSelector()))
			alias := net.Expose(ctx, check.Service("alias", check.ExternalName(nameOf(target)+".cluster.local")))
			address := check.ServiceAddress(target, exposedPort).Addr()
			net.ExpectRecords(ctx, "Services are created", named(net, target), check.Ask(candidate.CNAME, nameOf(alias), aliasWithin(nameOf(target))))
			net.ExpectRecords(ctx, "its address is asked for", check.Ask(primaryType(net), nameOf(alias), leadingTo(aliasWithin(nameOf(target)), address)))
		})

	check.It(spec.ProxyDNSExternalNameDangling, "is an alias also to who asks for an address that there is not",
		func(ctx context.Context, net *check.Network) {
			missing := "missing." + net.Namespace() + ".svc"
			alias := net.Expose(ctx, check.Service("alias", check.ExternalName(missing+".cluster.local")))
			net.ExpectRecords(ctx, "the Service is created", check.Ask(candidate.CNAME, nameOf(alias), aliasWithin(missing)))
			net.ExpectRecords(ctx, "its address is asked for", check.Ask(primaryType(net), nameOf(alias), aliasWithin(missing)))
		})

	check.It(spec.ProxyDNSExternalName, "has no names below it, also where another Service has the name of its namespace",
		func(ctx context.Context, net *check.Network) {
			net.Expose(ctx, exposed(net.Namespace(), withoutSelector()))
			alias := net.Expose(ctx, check.Service("alias", check.ExternalName(externalHost)))
			net.ExpectRecords(ctx, "the Service is created", aliases(alias, externalHost+".")...)
			var below []check.Lookup
			for _, t := range []candidate.RecordType{candidate.CNAME, candidate.A, candidate.SRV} {
				below = append(below, check.Ask(t, "web."+nameOf(alias), check.NoRecords()), check.Ask(t, "_http._tcp."+nameOf(alias), check.NoRecords()))
			}
			net.ExpectRecords(ctx, "the Service is there", below...)
		})

	check.It(spec.ProxyDNSExternalNameTrailingDot, "is an alias for the same name whether its externalName ends in a dot or not",
		func(ctx context.Context, net *check.Network) {
			with := net.Expose(ctx, check.Service("with", check.ExternalName(externalHost+".")))
			without := net.Expose(ctx, check.Service("without", check.ExternalName(externalHost)))
			net.ExpectRecords(ctx, "Services are created", append(aliases(with, externalHost+"."), aliases(without, externalHost+".")...)...)
		})
})
