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

var _ = ginkgo.Describe("type ClusterIP", func() {
	check.It(spec.ProxyClusterIPClusterInternal, "is not served on the addresses of nodes",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			cases := clusterIPCalls(svc, check.AnsweredByEach(pods...), slices.Concat(clients, hosts(net))...)
			for i := range 3 {
				for _, port := range []uint16{exposedPort, check.BackendPort} {
					to := netip.AddrPortFrom(nodeAddress(net, i), port)
					cases = append(cases, eachWay(to, check.NotBy(pods...), check.Outside(net.Node(i)), clients[i], clients[(i+1)%3])...)
				}
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyClusterIPClusterInternal, "ends node ports when it is given to a Service that has them", check.Claiming(spec.FeatureNodePort),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app", onNodePorts())
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			served := clusterIPCalls(svc, check.AnsweredByEach(pods...), clients...)
			callers := append(outsiders(net), clients[0])
			net.Expect(ctx, "the Service is created", slices.Concat(served, toNodePorts(net, svc, check.AnsweredBy(pods...), callers...))...)
			net.Change(ctx, svc.Name, `{"spec":{"type":"`+string(corev1.ServiceTypeClusterIP)+`"}}`)
			net.Expect(ctx, "its type becomes ClusterIP", slices.Concat(served, once(toNodePorts(net, svc, check.NotBy(pods...), callers...)))...)
		})
})
