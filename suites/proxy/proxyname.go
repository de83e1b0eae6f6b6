package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// servedByOther leaves the Service to a proxy that there is not.
func servedByOther() check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Labels = map[string]string{check.LabelProxyName: "another-proxy"} })
}

var _ = ginkgo.Describe("the label service-proxy-name", func() {
	check.It(spec.ProxyServiceProxyName, "keeps the default proxy away from a Service while it is there", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			inside := append(clients, check.Host(net.Node(0)))
			svc, addresses := exposeOutside(ctx, net, "app", servedByOther())
			served := slices.Concat(
				clusterIPCalls(svc, check.AnsweredByEach(pods...), inside...), toNodePorts(net, svc, check.AnsweredBy(pods...), outsiders(net)...),
				toOutside(addresses, check.AnsweredBy(pods...), outsiders(net)...))
			ignored := once(slices.Concat(
				toClusterIP(svc, check.NotBy(pods...), inside...), toNodePorts(net, svc, check.NotBy(pods...), outsiders(net)...),
				toOutside(addresses, check.NotBy(pods...), outsiders(net)...)))
			net.Expect(ctx, "a Service with the label is created, and then another", append(ignored, caughtUp(ctx, net, pods[0], inside...)...)...)
			net.Change(ctx, svc.Name, `{"metadata":{"labels":{"`+check.LabelProxyName+`":null}}}`)
			net.Expect(ctx, "the label is removed", served...)
			net.Change(ctx, svc.Name, `{"metadata":{"labels":{"`+check.LabelProxyName+`":"another-proxy"}}}`)
			net.Expect(ctx, "the label is set", append(ignored, caughtUp(ctx, net, pods[0], inside...)...)...)
		})
})
