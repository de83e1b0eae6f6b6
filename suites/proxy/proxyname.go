package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// withLabel gives the Service a label.
func withLabel(label, value string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Labels = map[string]string{label: value} })
}

var _ = ginkgo.Describe("the label service-proxy-name", func() {
	check.It(spec.ProxyServiceProxyName, "keeps the default proxy away from a Service while it is there", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			inside := append(clients, check.Host(net.Node(0)))
			svc, addresses := exposeOutside(ctx, net, "app", withLabel(check.LabelProxyName, "another-proxy"))
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

var _ = ginkgo.Describe("the label headless", func() {
	check.It(spec.ProxyHeadlessLabel, "on a Service with a virtual address keeps nobody from it",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			callers := append(clients, hosts(net)...)
			labelled, later := net.Expose(ctx, exposed("app", withLabel(corev1.IsHeadlessService, ""))), net.Expose(ctx, exposed("later", selecting("app")))
			served := func(svc *corev1.Service) []check.Case { return toClusterIP(svc, check.AnsweredBy(pods...), callers...) }
			net.Expect(ctx, "Services with and without the label are created", append(served(labelled), served(later)...)...)
			net.Change(ctx, later.Name, `{"metadata":{"labels":{"`+corev1.IsHeadlessService+`":""}}}`)
			settled(ctx, net, pods[0], callers...)
			net.ExpectNow(ctx, "the label is set", served(later)...)
			net.Change(ctx, labelled.Name, `{"metadata":{"labels":{"`+corev1.IsHeadlessService+`":null}}}`)
			net.Expect(ctx, "the label is removed", served(labelled)...)
		})
})
