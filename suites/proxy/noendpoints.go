package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// everyPath are calls to the cluster IP from pods and nodes. They are also calls to node ports, the external IP and the load-balancer address
// from outside of the cluster and from a pod, and to node ports from a node. Not among them are those of a node to addresses from outside:
// kube-proxy refuses nothing there, for its chain KUBE-EXTERNAL-SERVICES is of INPUT and FORWARD (pkg/proxy/iptables/proxier.go, v1.37.1, line 365).
func everyPath(net *check.Network, svc *corev1.Service, addresses []netip.Addr, clients []candidate.Client, want check.Want) []check.Case {
	return slices.Concat(
		toClusterIP(svc, want, slices.Concat(clients, hosts(net))...),
		toOutside(addresses, want, check.Outside(net.Node(0)), clients[2]),
		toNodePorts(net, svc, want, check.Outside(net.Node(1)), clients[2], check.Host(net.Node(0))))
}

var _ = ginkgo.Describe("a Service without endpoints", func() {
	check.It(spec.ProxyNoEndpointsRefused, "refuses connections by every address until it has an endpoint, and again when that goes",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app", withoutSelector())
			refused := everyPath(net, svc, addresses, clients, check.ConnectionRefused())
			answered := everyPath(net, svc, addresses, clients, check.AnsweredBy(pods...))
			net.Expect(ctx, "a Service without endpoints is created", refused...)
			slice := net.CreateSlice(ctx, net.Slice(svc, pods...))
			net.Expect(ctx, "its first endpoint comes", answered...)
			slice.Endpoints = nil
			slice = net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "its only endpoint goes", refused...)
			slice.Endpoints = net.Slice(svc, pods...).Endpoints
			net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "an endpoint comes back", answered...)
			net.DeleteSlice(ctx, slice)
			net.Expect(ctx, "its only EndpointSlice is deleted", refused...)
		})

	check.It(spec.ProxyNoEndpointsRefused, "is one whose only endpoint is not ready, too",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app")
			net.Expect(ctx, "the Service is created", everyPath(net, svc, addresses, clients, check.AnsweredBy(pods...))...)
			net.SetReady(ctx, pods[0], false)
			net.Expect(ctx, "its only endpoint becomes unready", everyPath(net, svc, addresses, clients, check.ConnectionRefused())...)
			net.SetReady(ctx, pods[0], true)
			net.Expect(ctx, "its only endpoint becomes ready", everyPath(net, svc, addresses, clients, check.AnsweredBy(pods...))...)
		})
})
