package proxy

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("a pod whose readiness probe fails", func() {
	check.It(spec.ProxyUnreadyEndpointAvoided, "is avoided until the probe succeeds", check.Needs(spec.Kubelet, spec.EndpointControllers),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			client := net.ClientPod(ctx, net.Node(0))
			among := func(ready ...candidate.Pod) []check.Case {
				return clusterIPCalls(svc, exactlyBy(len(pods), ready...), client, check.Host(net.Node(1)))
			}
			net.Expect(ctx, "the Service is created", among(pods...)...)
			net.AnswerReadiness(ctx, pods[0], false)
			net.Expect(ctx, "the readiness probe of a pod fails", among(pods[1])...)
			net.AnswerReadiness(ctx, pods[0], true)
			net.Expect(ctx, "the readiness probe succeeds again", among(pods...)...)
		})
})
