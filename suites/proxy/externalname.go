package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// externalHost is a name that nobody has (RFC 2606).
const externalHost = "host.example.com"

var _ = ginkgo.Describe("type ExternalName", func() {
	check.It(spec.ProxyExternalNameNotProxied, "exposes no pods, whatever else the Service says",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			external := net.ExternalAddress()
			alias := net.Expose(ctx, exposed("app", selecting("app"), onExternalIPs(external), check.OfType(corev1.ServiceTypeExternalName),
				check.With(func(s *corev1.Service) { s.Spec.ExternalName = externalHost })))
			net.CreateSlice(ctx, net.Slice(alias, pods...))
			callers := append(outsiders(net), clients...)
			// The same address is served where a Service that is proxied has it.
			net.Expose(ctx, check.Service("other", selecting("app"), onExternalIPs(external),
				check.WithPorts(check.Port("", corev1.ProtocolTCP, 81, check.BackendPort))))
			cases := slices.Concat(once(eachWay(exposedAt(external), check.NotBy(pods...), callers...)), caughtUp(ctx, net, pods[0], clients...))
			for _, c := range callers {
				cases = append(cases, check.Case{From: c, To: netip.AddrPortFrom(external, 81), Want: check.AnsweredBy(pods...)})
			}
			net.Expect(ctx, "a Service of type ExternalName is created, and then others", cases...)
		})

	check.It(spec.ProxyExternalNameStopsProxying, "ends what served the cluster IP, the node port and the external IP; leaving it brings that back",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			external := net.ExternalAddress()
			svc := exposeSelectorless(ctx, net, "app", onNodePorts(), onExternalIPs(external))
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			inside := append(clients, check.Host(net.Node(0)))
			everywhere := func(svc *corev1.Service, want check.Want) []check.Case {
				return slices.Concat(
					toClusterIP(svc, want, inside...), toNodePorts(net, svc, want, outsiders(net)...),
					eachWay(exposedAt(external), want, outsiders(net)...))
			}
			net.Expect(ctx, "the Service is created", everywhere(svc, check.AnsweredBy(pods...))...)
			net.Change(ctx, svc.Name, `{"spec":{"type":"ExternalName","externalName":"`+externalHost+`"}}`)
			net.Expect(ctx, "its type becomes ExternalName", append(once(everywhere(svc, check.NotBy(pods...))), caughtUp(ctx, net, pods[0], inside...)...)...)
			now := net.Change(ctx, svc.Name, `{"spec":{"type":"NodePort","externalName":null}}`)
			net.Expect(ctx, "its type becomes NodePort", everywhere(now, check.AnsweredByEach(pods...))...)
		})
})
