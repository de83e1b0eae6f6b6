package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// lopsided starts two backends on the first node and one on the second, none on the third.
func lopsided(ctx context.Context, net *check.Network, app string) (first, second, all []candidate.Pod) {
	ginkgo.GinkgoHelper()
	all = net.Backends(ctx, app, net.Node(0), net.Node(0), net.Node(1))
	return all[:2], all[2:], all
}

// clientPods starts a pod on each of the first three nodes to send from.
func clientPods(ctx context.Context, net *check.Network) []candidate.Client {
	ginkgo.GinkgoHelper()
	clients := make([]candidate.Client, 3)
	check.Concurrently(len(clients), func(i int) { clients[i] = net.ClientPod(ctx, net.Node(i)) })
	return clients
}

var _ = ginkgo.Describe("internalTrafficPolicy Cluster", func() {
	check.It(spec.ProxyInternalClusterAllEndpoints, "spreads traffic evenly over the endpoints of all nodes",
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			svc := net.Expose(ctx, exposed("app"))
			to := check.ServiceAddress(svc, exposedPort)
			net.Expect(ctx, "the Service is created", slices.Concat(
				[]check.Case{
					{From: clients[0], To: to, Want: check.Evenly(all...)},
					{From: clients[2], To: to, Want: check.Evenly(all...)},
					{From: check.Host(net.Node(1)), To: to, Want: check.Evenly(all...)},
				},
				clusterIPCalls(svc, check.AnsweredByEach(all...), clients[1], clients[2], check.Host(net.Node(2)), check.Host(net.Node(0))))...)
		})
})

var _ = ginkgo.Describe("internalTrafficPolicy Local", func() {
	check.It(spec.ProxyInternalLocalNodeEndpoints, "keeps traffic on the client's node",
		func(ctx context.Context, net *check.Network) {
			first, second, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			svc := net.Expose(ctx, exposed("app", internalLocal))
			net.Expect(ctx, "the Service is created", slices.Concat(
				clusterIPCalls(svc, check.AnsweredByEach(first...), clients[0], clients[0], check.Host(net.Node(0)), check.Host(net.Node(0))),
				clusterIPCalls(svc, onlyBy(len(all), second...), clients[1], clients[1], check.Host(net.Node(1)), check.Host(net.Node(1))))...)
		})

	check.It(spec.ProxyInternalLocalNodeEndpoints, "takes effect, and ends, when the field is changed", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			first, second, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			svc := net.Expose(ctx, exposed("app"))
			everywhere := clusterIPCalls(svc, check.AnsweredByEach(all...), clients[:2]...)
			net.Expect(ctx, "the Service is created", everywhere...)
			net.Change(ctx, svc.Name, `{"spec":{"internalTrafficPolicy":"Local"}}`)
			net.Expect(ctx, "internalTrafficPolicy becomes Local", append(
				clusterIPCalls(svc, check.AnsweredByEach(first...), clients[0]),
				clusterIPCalls(svc, onlyBy(len(all), second...), clients[1])...)...)
			net.Change(ctx, svc.Name, `{"spec":{"internalTrafficPolicy":"Cluster"}}`)
			net.Expect(ctx, "internalTrafficPolicy becomes Cluster", everywhere...)
		})

	check.It(spec.ProxyInternalLocalDrops, "serves no client on a node without endpoints, until it has one", check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			first, _, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			svc := net.Expose(ctx, exposed("app", internalLocal))
			none := net.NoEndpoints(net.Declared(spec.InternalLocalWithoutEndpoints))
			net.Expect(ctx, "the Service is created", slices.Concat(
				clusterIPCalls(svc, check.AnsweredByEach(first...), clients[0]),
				clusterIPCalls(svc, none, clients[2], clients[2], check.Host(net.Node(2)), check.Host(net.Node(2))))...)
			come := net.Backends(ctx, "app", net.Node(2))
			net.Expect(ctx, "an endpoint comes to the node", clusterIPCalls(svc, onlyBy(len(all)+1, come...), clients[2], check.Host(net.Node(2)))...)
			net.Remove(ctx, come[0])
			net.Expect(ctx, "the only endpoint of the node goes", append(
				toClusterIP(svc, none, clients[2], check.Host(net.Node(2))),
				clusterIPCalls(svc, check.AnsweredByEach(first...), clients[0])...)...)
		})

	check.It(spec.ProxyInternalPolicyScope, "does not govern node ports, external IPs and load-balancer addresses",
		func(ctx context.Context, net *check.Network) {
			first, _, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			svc, addresses := exposeOutside(ctx, net, "app", internalLocal)
			each := check.AnsweredByEach(all...)
			net.Expect(ctx, "the Service is created", slices.Concat(
				clusterIPCalls(svc, check.AnsweredByEach(first...), clients[0]), // the policy is in force
				arrivals(net, 0, svc, addresses, each),
				arrivals(net, 2, svc, addresses, each),
				calls(clients[2], addresses, each),
				[]check.Case{{From: clients[2], To: onNode(net, 0, svc), Want: each}})...)
		})
})
