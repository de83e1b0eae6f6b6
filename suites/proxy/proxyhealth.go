package proxy

import (
	"context"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("the health of the proxy", func() {
	check.It(spec.ProxyHealthz, "is good while it follows changes, and on a node that is about to be removed that of the node is bad and its own good",
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			s := newSwitching(ctx, net, "app", node.Name)
			healthy := healthOf(net, node, http.StatusOK, http.StatusOK)
			for range 3 {
				s.change(ctx)
				net.Expect(ctx, "an endpoint is exchanged", append(healthy, s.call(node.Name))...)
			}
			patch := func(content string) {
				ginkgo.GinkgoHelper()
				check.Must(candidate.Patch(ctx, net.Client().CoreV1().Nodes(), node.Name, types.MergePatchType, content))
			}
			patch(drainTaint)
			net.Expect(ctx, "the node is about to be removed", append(healthOf(net, node, http.StatusServiceUnavailable, http.StatusOK), s.call(node.Name))...)
			patch(`{"spec":{"taints":null}}`)
			net.Expect(ctx, "the node is to stay after all", append(healthy, s.call(node.Name))...)
		})

	check.It(spec.ProxyHealthz, "is bad once a change is overdue, and good again when it is made", check.Needs(spec.NFTablesMode),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.NFTables, SyncPeriod: interferencePeriod.String()})
			s := newSwitching(ctx, net, "app", node.Name)
			healthz := func(code int) check.Case { return healthOf(net, node, code, code)[0] }
			net.Expect(ctx, "the Service is created", healthz(http.StatusOK))
			check.Must(net.OwnNodes().Interfere(ctx, node.Name, candidate.BlockRules))
			s.change(ctx)
			net.Expect(ctx, "the proxy can write no rules, and an endpoint is exchanged", healthz(http.StatusServiceUnavailable))
			check.Must(net.OwnNodes().Interfere(ctx, node.Name, candidate.FlushRules))
			net.Expect(ctx, "the proxy can write rules again", healthz(http.StatusOK), s.call(node.Name))
		})
})
