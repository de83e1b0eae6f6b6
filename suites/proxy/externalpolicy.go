package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("externalTrafficPolicy Cluster", func() {
	check.It(spec.ProxyExternalClusterAllEndpoints, "spreads traffic evenly over the endpoints of all nodes, whichever receives it",
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			svc, addresses := exposeOutside(ctx, net, "app")
			even, each := check.Evenly(all...), check.AnsweredByEach(all...)
			cases := slices.Concat(
				arrivals(net, 0, svc, addresses, each),
				arrivals(net, 1, svc, addresses, each),
				arrivals(net, 2, svc, addresses, each))
			for i := range 3 {
				cases = append(cases, check.Case{From: check.Outside(net.Node(i)), To: onNode(net, i, svc), Want: even})
			}
			net.Expect(ctx, "the Service is created", cases...)
		})
})

var _ = ginkgo.Describe("externalTrafficPolicy Local", func() {
	check.It(spec.ProxyExternalLocalNodeEndpoints, "keeps traffic on the node that receives it",
		func(ctx context.Context, net *check.Network) {
			first, second, all := lopsided(ctx, net, "app")
			svc, addresses := exposeOutside(ctx, net, "app", externalLocal)
			net.Expect(ctx, "the Service is created", append(
				arrivals(net, 0, svc, addresses, check.AnsweredByEach(first...)),
				arrivals(net, 1, svc, addresses, onlyBy(len(all), second...))...)...)
		})

	check.It(spec.ProxyExternalLocalNodeEndpoints, "takes effect, and ends, when the field is changed", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			first, second, all := lopsided(ctx, net, "app")
			svc, addresses := exposeOutside(ctx, net, "app")
			everywhere := append(
				arrivals(net, 0, svc, addresses, check.AnsweredByEach(all...)),
				arrivals(net, 1, svc, addresses, check.AnsweredByEach(all...))...)
			net.Expect(ctx, "the Service is created", everywhere...)
			net.Change(ctx, svc.Name, `{"spec":{"externalTrafficPolicy":"Local"}}`)
			net.Expect(ctx, "externalTrafficPolicy becomes Local", append(
				arrivals(net, 0, svc, addresses, check.AnsweredByEach(first...)),
				arrivals(net, 1, svc, addresses, onlyBy(len(all), second...))...)...)
			net.Change(ctx, svc.Name, `{"spec":{"externalTrafficPolicy":"Cluster"}}`)
			net.Expect(ctx, "externalTrafficPolicy becomes Cluster", everywhere...)
		})

	check.It(spec.ProxyExternalLocalClientAddress, "lets the endpoint see the client's own address",
		func(ctx context.Context, net *check.Network) {
			first, second, all := lopsided(ctx, net, "app")
			svc, addresses := exposeOutside(ctx, net, "app", externalLocal)
			var cases []check.Case
			for i, pods := range [][]candidate.Pod{first, second} {
				for address := range 2 {
					from := candidate.Client{Gateway: net.Node(i), Address: address}
					want := check.AllOf(check.AnsweredBy(pods...), check.SeenFrom(ownAddress(ctx, net, from, all[i])))
					for _, c := range arrivals(net, i, svc, addresses, want) {
						c.From = from
						cases = append(cases, c)
					}
				}
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyExternalLocalClientAddress, "lets the endpoint see the client's own address at the second address of a node, too", check.Needs(spec.ProxyConfiguration), check.Claiming(spec.FeatureNodePort), check.Long(),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Absent: true})
			secondary := check.AddressOf(node.SecondaryAddresses, net.PrimaryFamily())
			if !secondary.IsValid() {
				check.LeaveUnjudged("nodes with two addresses", "nodes have one address only")
			}
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{NodePortAddresses: everywhere}))
			pods := net.Backends(ctx, "app", net.Node(0), node.Name)
			svc := net.Expose(ctx, exposed("app", onNodePorts(), externalLocal))
			from := check.Outside(node.Name)
			want := check.AllOf(check.AnsweredBy(pods[1]), check.SeenFrom(ownAddress(ctx, net, from, pods[1])))
			net.Expect(ctx, "the Service is created", append(nodePortsAt(primaryOf(net, node), node.Name, svc, want), nodePortsAt(secondary, node.Name, svc, want)...)...)
		})

	check.It(spec.ProxyExternalLocalDrops, "makes a node without endpoints serve no client outside, until it has one", check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			first, _, all := lopsided(ctx, net, "app")
			svc, addresses := exposeOutside(ctx, net, "app", externalLocal)
			none := net.NoEndpoints(net.Declared(spec.ExternalLocalWithoutEndpoints))
			net.Expect(ctx, "the Service is created", append(
				arrivals(net, 0, svc, addresses, check.AnsweredByEach(first...)),
				arrivals(net, 2, svc, addresses, none)...)...)
			come := net.Backends(ctx, "app", net.Node(2))
			net.Expect(ctx, "an endpoint comes to the node", arrivals(net, 2, svc, addresses, onlyBy(len(all)+1, come...))...)
			net.Remove(ctx, come[0])
			net.Expect(ctx, "the only endpoint of the node goes", append(
				arrivals(net, 0, svc, addresses, check.AnsweredByEach(first...)),
				arrivals(net, 2, svc, addresses, none)...)...)
		})

	check.It(spec.ProxyExternalLocalSilent, "leaves what arrives at a node without endpoints unanswered", check.Long(),
		func(ctx context.Context, net *check.Network) {
			first, _, _ := lopsided(ctx, net, "app")
			svc, addresses := exposeOutside(ctx, net, "app", externalLocal)
			net.Expect(ctx, "the Service is created", append(
				arrivals(net, 0, svc, addresses, check.AnsweredByEach(first...)),
				arrivals(net, 2, svc, addresses, check.Dropped())...)...)
		})

	check.It(spec.ProxyExternalPolicyScope, "does not govern the cluster IP",
		func(ctx context.Context, net *check.Network) {
			first, _, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			svc, addresses := exposeOutside(ctx, net, "app", externalLocal)
			each := check.AnsweredByEach(all...)
			net.Expect(ctx, "the Service is created", slices.Concat(
				arrivals(net, 0, svc, addresses, check.AnsweredByEach(first...)), // the policy is in force
				clusterIPCalls(svc, each, clients[0], clients[2], check.Host(net.Node(2)), check.Host(net.Node(1))))...)
		})

	check.It(spec.ProxyExternalLocalFromCluster, "does not govern what pods and nodes send to external addresses",
		func(ctx context.Context, net *check.Network) {
			first, _, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			svc, addresses := exposeOutside(ctx, net, "app", externalLocal)
			each := check.AnsweredByEach(all...)
			net.Expect(ctx, "the Service is created", slices.Concat(
				arrivals(net, 0, svc, addresses, check.AnsweredByEach(first...)), // the policy is in force
				calls(clients[0], addresses, each),
				calls(clients[2], addresses, each),
				calls(check.Host(net.Node(1)), addresses, each),
				calls(check.Host(net.Node(2)), addresses, each))...)
		})
})

var _ = ginkgo.Describe("the traffic policies", func() {
	check.It(spec.ProxyPoliciesIndependent, "hold each for its own traffic", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			first, second, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			inward := net.Expose(ctx, exposed("inward", selecting("app"), onNodePorts(), internalLocal, externalCluster))
			outward := net.Expose(ctx, exposed("outward", selecting("app"), onNodePorts(), internalCluster, externalLocal))
			each, one, two := check.AnsweredByEach(all...), check.AnsweredByEach(first...), onlyBy(len(all), second...)
			paths := func(internal, external *corev1.Service) []check.Case {
				return slices.Concat(
					clusterIPCalls(internal, one, clients[0]), clusterIPCalls(internal, two, clients[1]),
					arrivals(net, 0, internal, nil, each), arrivals(net, 1, internal, nil, each), arrivals(net, 2, internal, nil, each),
					arrivals(net, 0, external, nil, one), arrivals(net, 1, external, nil, two),
					clusterIPCalls(external, each, clients...))
			}
			net.Expect(ctx, "two Services with opposite policies are created", paths(inward, outward)...)
			net.Change(ctx, inward.Name, `{"spec":{"internalTrafficPolicy":"Cluster","externalTrafficPolicy":"Local"}}`)
			net.Change(ctx, outward.Name, `{"spec":{"internalTrafficPolicy":"Local","externalTrafficPolicy":"Cluster"}}`)
			net.Expect(ctx, "both Services change their policies", paths(outward, inward)...)
		})

	check.It(spec.ProxyPolicyReadyBackends, "lead to ready backends only", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(0), net.Node(1), net.Node(2))
			ready, unready, alone, far := pods[0], pods[1], pods[2], pods[3]
			net.SetReady(ctx, unready, false)
			net.SetReady(ctx, alone, false)
			clients := clientPods(ctx, net)
			cluster := net.Expose(ctx, exposed("cluster", selecting("app"), onNodePorts()))
			local := net.Expose(ctx, exposed("local", selecting("app"), onNodePorts(), internalLocal, externalLocal))
			both := check.AnsweredByEach(ready, far)
			here := onlyBy(len(pods), ready)
			net.Expect(ctx, "backends become unready", slices.Concat(
				clusterIPCalls(cluster, both, clients[:2]...),
				arrivals(net, 0, cluster, nil, both), arrivals(net, 1, cluster, nil, both),
				clusterIPCalls(local, here, clients[0]), arrivals(net, 0, local, nil, here),
				clusterIPCalls(local, check.Unanswered(), clients[1]),
				arrivals(net, 1, local, nil, check.Unanswered()))...)
			net.SetReady(ctx, alone, true)
			three := check.AnsweredByEach(ready, alone, far)
			net.Expect(ctx, "a backend becomes ready", slices.Concat(
				clusterIPCalls(cluster, three, clients[0]), arrivals(net, 1, cluster, nil, three),
				clusterIPCalls(local, onlyBy(len(pods), alone), clients[1]), arrivals(net, 1, local, nil, onlyBy(len(pods), alone)))...)
		})
})
