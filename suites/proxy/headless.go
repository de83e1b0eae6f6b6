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

var _ = ginkgo.Describe("a headless Service", func() {
	check.It(spec.ProxyHeadlessNotProxied, "is not proxied, on no address; its endpoints are reached directly",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			external := net.ExternalAddress()
			net.Expose(ctx, exposed("app", check.Headless(), onExternalIPs(external)))
			callers := append(outsiders(net), clients...)
			// The same address is served where a Service that is proxied has it.
			net.Expose(ctx, check.Service("other", selecting("app"), onExternalIPs(external),
				check.WithPorts(check.Port("", corev1.ProtocolTCP, 81, check.BackendPort))))
			cases := slices.Concat(
				once(eachWay(exposedAt(external), check.NotBy(pods...), callers...)),
				caughtUp(ctx, net, pods[0], clients...))
			for _, c := range callers {
				cases = append(cases, check.Case{From: c, To: netip.AddrPortFrom(external, 81), Want: check.AnsweredBy(pods...)})
			}
			for _, pod := range pods {
				a := check.AddressOf(pod.Addresses, net.PrimaryFamily())
				cases = append(cases, slices.Concat(
					eachWay(netip.AddrPortFrom(a, check.BackendPort), check.AnsweredBy(pod), clients...),
					once(eachWay(exposedAt(a), check.NotBy(pods...), clients...)))...)
			}
			net.Expect(ctx, "a headless Service is created, and then others", cases...)
		})
})
