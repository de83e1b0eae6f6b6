package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("syncPeriod", func() {
	check.It(spec.ProxySyncPeriodInterference, "is how long it takes at most until rules that somebody flushed are back", check.Long(),
		check.Also(spec.ProxySyncConfigurable),
		func(ctx context.Context, net *check.Network) {
			const period = 2 * time.Second
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: "iptables", SyncPeriod: period.String()})
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			paths := slices.Concat(
				eachWay(check.At(svc, exposedPort), check.AnsweredByEach(pods...), client, check.Host(node.Name)),
				nodePortsAt(primaryOf(net, node), node.Name, svc, check.AnsweredByEach(pods...)))
			net.Expect(ctx, "the Service is created", paths...)
			check.Must(net.Plane().Interfere(ctx, node.Name, candidate.FlushRules))
			net.Expect(ctx, "somebody flushes the rules", paths...)
			// Whoever looks for what he has put there must put it there again, and has time to: see the deviations of the requirement.
			net.Pass(ctx, 6*period)
			check.Must(net.Plane().Interfere(ctx, node.Name, candidate.FlushRules))
			net.Expect(ctx, "somebody flushes the rules once more", paths...)
		})
})
