package proxy

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("a backend", func() {
	check.It(spec.ProxyHairpin, "reaches itself through its Service, by every address",
		func(ctx context.Context, net *check.Network) {
			pod := net.Backends(ctx, "app", net.Node(1))[0]
			external := net.ExternalAddress()
			svc := net.Expose(ctx, exposed("app", onNodePorts(), onExternalIPs(external)))
			self, want := check.From(pod), check.AnsweredBy(pod)
			net.Expect(ctx, "the Service is created", append(append(
				toClusterIP(svc, want, self),
				eachWay(exposedAt(external), want, self)...),
				toNodePorts(net, svc, want, self)...)...)
		})

	check.It(spec.ProxyHairpin, "reaches itself as one of several",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			var cases []check.Case
			for _, pod := range pods {
				cases = append(cases, clusterIPCalls(svc, check.AnsweredByEach(pods...), check.From(pod))...)
			}
			net.Expect(ctx, "the Service is created", cases...)
		})
})
