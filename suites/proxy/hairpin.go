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
			svc, addresses := exposeOutside(ctx, net, "app")
			self, want := check.FromPod(pod), check.AnsweredBy(pod)
			cases := append(toClusterIP(svc, want, self), toNodePorts(net, svc, want, self)...)
			for _, a := range addresses {
				cases = append(cases, eachWay(exposedAt(a), want, self)...)
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyHairpin, "reaches itself where its endpoint names no node",
		func(ctx context.Context, net *check.Network) {
			pod := net.Backends(ctx, "app", net.Node(1))[0]
			svc := net.Expose(ctx, exposed("app", withoutSelector()))
			slice := net.Slice(svc, pod)
			slice.Endpoints[0].NodeName = nil
			net.CreateSlice(ctx, slice)
			want := check.AnsweredBy(pod)
			// The other client shows that the Service is served.
			net.Expect(ctx, "the Service is created", append(toClusterIP(svc, want, net.ClientPod(ctx, net.Node(1))), toClusterIP(svc, want, check.FromPod(pod))...)...)
		})

	check.It(spec.ProxyHairpin, "reaches itself as one of several",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			var cases []check.Case
			for _, pod := range pods {
				cases = append(cases, clusterIPCalls(svc, check.AnsweredByEach(pods...), check.FromPod(pod))...)
			}
			net.Expect(ctx, "the Service is created", cases...)
		})
})
