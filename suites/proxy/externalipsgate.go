package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("the feature gate AllowServiceExternalIPs", func() {
	check.It(spec.ProxyExternalIPsGate, "keeps the proxy from serving external IPs, and nothing else, while it is off", check.Claiming(spec.FeatureExternalIPs),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{FeatureGates: map[string]bool{"AllowServiceExternalIPs": false}})
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			svc, addresses := exposeOutside(ctx, net, "app")
			external := addresses[0]
			each := check.AnsweredByEach(pods...)
			net.Expect(ctx, "the Service is created", slices.Concat(
				eachWay(check.ServiceAddress(svc, exposedPort), each, client, check.Host(node.Name)),
				nodePortsAt(primaryOf(net, node), node.Name, svc, each),
				toOutside(addresses[1:], each, check.Outside(node.Name), client),
				eachWay(exposedAt(external), each, check.Outside(net.Node(0))), // where the gate is on
				once(eachWay(exposedAt(external), check.Unanswered(), check.Outside(node.Name), client)))...)
		})
})
