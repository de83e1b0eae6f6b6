package proxy

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("the shares of endpoints", func() {
	check.It(spec.ProxyInternalClusterAllEndpoints, "are equal for three of them, and for seven",
		func(ctx context.Context, net *check.Network) {
			a, b, c := net.Node(0), net.Node(1), net.Node(2)
			seven := net.Backends(ctx, "seven", a, b, c, a, b, c, a)
			three := net.Backends(ctx, "three", a, b, c)
			client := net.ClientPod(ctx, b)
			few, many := net.Expose(ctx, exposed("three")), net.Expose(ctx, exposed("seven"))
			net.Expect(ctx, "the Services are created",
				check.Case{From: client, To: check.ServiceAddress(few, exposedPort), Want: check.Equally(three...)},
				check.Case{From: client, To: check.ServiceAddress(many, exposedPort), Want: check.Evenly(seven...)})
		})
})
