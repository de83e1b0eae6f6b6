package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("a node port", func() {
	check.It(spec.ProxyNodePortReachable, "leads to the backends from every kind of client",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			net.Expect(ctx, "the Service is created", slices.Concat(
				toNodePorts(net, svc, check.AnsweredByEach(pods...), outsiders(net)...),
				toNodePorts(net, svc, check.AnsweredBy(pods...), slices.Concat(clients, hosts(net))...))...)
		})

	check.It(spec.ProxyNodePortReachable, "leads to the target of its own port",
		func(ctx context.Context, net *check.Network) {
			targets := []int{check.BackendPort, 9090, 9091, 9092}
			pods := listening(ctx, net, "app", targets, net.Node(0), net.Node(1))
			var ports []corev1.ServicePort
			for i, t := range targets {
				ports = append(ports, check.Port(fmt.Sprintf("p%d", i), inTurn(i), int32(80+i), t))
			}
			svc := net.Expose(ctx, check.Service("app", onNodePorts(), check.WithPorts(ports...)))
			var cases []check.Case
			for i, t := range targets {
				cases = append(cases, check.Case{From: check.Outside(net.Node(2)), To: onNodePort(net, 2, svc, i), Protocol: inTurn(i), Want: onPort(t, pods...)})
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyNodePortEveryNode, "is served on every node, wherever the backend is",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			var cases []check.Case
			for i, n := range net.Nodes() {
				cases = append(cases, eachWay(onNode(net, i, svc), check.AnsweredBy(pods...), check.Outside(n.Name))[0],
					eachWay(onNodePort(net, i, svc, 1), check.AnsweredBy(pods...), check.Outside(n.Name))[1])
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyNodePortSameEndpoints, "and the cluster IP lead to the same endpoints, as these change",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app", onNodePorts())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[:2]...))
			same := func(listed ...candidate.Pod) []check.Case {
				want := exactlyBy(3, listed...)
				return append(
					clusterIPCalls(svc, want, clients[0], clients[2]), toNodePorts(net, svc, want, check.Outside(net.Node(0)), check.Outside(net.Node(2)))...)
			}
			net.Expect(ctx, "the Service is created", same(pods[:2]...)...)
			slice.Endpoints = net.Slice(svc, pods[1:]...).Endpoints
			net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "an endpoint is replaced", same(pods[1:]...)...)
		})

	check.It(spec.ProxyNodePortLoopbackDeclared, "is served on the loopback address of a node, or is not, as declared",
		func(ctx context.Context, net *check.Network) {
			declared := net.Declared(spec.NodePortLoopback)
			switch {
			case net.PrimaryFamily() != corev1.IPv4Protocol:
				check.LeaveUnjudged(check.ByAnotherRange+" of IPv4", "it is about the loopback address in IPv4")
			case declared == "":
				check.LeaveUnjudged(check.ByImplementation, "it is about %s, which is not declared", spec.NodePortLoopback)
			}
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			want := check.AnsweredBy(pods...)
			if declared == "not-served" {
				want = turnedAway()
			}
			// That the node serves the Service shows at its address.
			cases := toNodePorts(net, svc, check.AnsweredBy(pods...), check.Host(net.Node(0)), check.Host(net.Node(2)))
			for _, i := range []int{0, 2} {
				cases = append(cases, check.Case{From: check.Host(net.Node(i)), To: onLoopback(uint16(svc.Spec.Ports[0].NodePort)), Want: want})
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyNodePortClusterIP, "leaves the cluster IP of its Service in service",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			net.Expect(ctx, "the Service is created", clusterIPCalls(svc, check.AnsweredByEach(pods...), slices.Concat(clients, hosts(net))...)...)
		})
})
