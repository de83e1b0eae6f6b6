package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// flows are datagrams that each of the cases sends from one socket for as long as the check lasts.
func flows(cases []check.Case) []check.Case {
	var steady []check.Case
	for _, c := range cases {
		if c.Protocol == corev1.ProtocolUDP {
			c.Connection = "to " + c.To.String()
			steady = append(steady, c)
		}
	}
	return steady
}

// neverPausing are flows that go on between the shots too, so fast that a proxy which forgets a flow before it has changed its rules meets it again at once.
func neverPausing(flows []check.Case) []check.Case {
	busy := slices.Clone(flows)
	for i := range busy {
		busy[i].Rate = 1000
	}
	return busy
}

// beginFlows waits until fresh sockets are served, and then begins the flows: a proxy that works at sockets decides once where a socket sends to.
func beginFlows(ctx context.Context, net *check.Network, what string, steady []check.Case) {
	ginkgo.GinkgoHelper()
	fresh := slices.Clone(steady)
	for i := range fresh {
		fresh[i].Connection, fresh[i].Rate = "", 0
	}
	net.Expect(ctx, what, fresh...)
	net.Expect(ctx, "flows begin", steady...)
}

// settledBeside waits until the nodes of the clients have followed a change, and keeps the flows going meanwhile: a flow without datagrams ends by itself.
func settledBeside(ctx context.Context, net *check.Network, pod candidate.Pod, clients []candidate.Client, flows func(check.Want) []check.Case) {
	ginkgo.GinkgoHelper()
	anything := check.Want{Text: "anything", Shots: 1, Met: func([]candidate.Outcome) bool { return true }}
	everyShot(ctx, net, func() { settled(ctx, net, pod, clients...) }, flows(anything)...)
}

// flowBound is how long a flow may go on once the nodes have followed a change.
const flowBound = 10 * time.Second

var _ = ginkgo.Describe("a steady flow of UDP", func() {
	check.It(spec.ProxyUDPFlowFollowsEndpoints, "moves to a remaining backend when its own is removed, through every address", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.UDPFlows, "follow")
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app", withoutSelector())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			steady := func(want check.Want) []check.Case {
				cases := slices.Concat(
					toClusterIP(svc, want, append(slices.Clone(clients), check.Host(net.Node(0)), check.Host(net.Node(2)))...),
					toOutside(addresses, want, outsiders(net)...))
				for i, c := range outsiders(net) {
					cases = append(cases, check.Case{From: c, To: onNodePort(net, i, svc, 1), Protocol: corev1.ProtocolUDP, Want: want})
				}
				return flows(cases)
			}
			list := func(listed ...candidate.Pod) {
				slice.Endpoints = net.Slice(svc, listed...).Endpoints
				slice = net.UpdateSlice(ctx, slice)
			}
			beginFlows(ctx, net, "the Service is created with one endpoint", steady(check.AnsweredBy(pods[0])))
			list(pods...)
			net.Expect(ctx, "another endpoint is added", append(steady(check.AnsweredBy(pods...)),
				clusterIPCalls(svc, check.AnsweredByEach(pods...), clients...)...)...)
			list(pods[1]) // the other goes on answering
			net.Expect(ctx, "the endpoint that served the flows is removed", steady(check.AnsweredBy(pods[1]))...)
		})

	check.It(spec.ProxyUDPFlowFollowsEndpoints, "that began before there was an endpoint, or goes on without one, is served when one comes", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.UDPFlows, "follow")
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app", withoutSelector())
			callers := append(clients, check.Host(net.Node(0)))
			steady := func(want check.Want) []check.Case {
				return flows(append(toClusterIP(svc, want, callers...), toOutside(addresses, want, outsiders(net)...)...))
			}
			net.Expect(ctx, "a Service without endpoints is created", append(once(steady(check.NotBy(pods...))), caughtUp(ctx, net, pods[0], clients...)...)...)
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			net.Expect(ctx, "its first endpoint comes", steady(check.AnsweredBy(pods[0]))...)
			slice.Endpoints = nil
			slice = net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "its only endpoint goes", once(steady(check.NotBy(pods...)))...)
			slice.Endpoints = net.Slice(svc, pods[1]).Endpoints
			net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "another endpoint comes", steady(check.AnsweredBy(pods[1]))...)
		})

	check.It(spec.ProxyUDPFlowFollowsEndpoints, "leaves its backend with the last endpoint, at a node port", check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.UDPFlows, "follow")
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app", onNodePorts())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			steady := func(want check.Want) []check.Case {
				var cases []check.Case
				for i := range 2 {
					cases = append(cases, check.Case{From: arriving(net, i), To: onNodePort(net, i, svc, 1), Protocol: corev1.ProtocolUDP, Want: want})
				}
				return flows(cases)
			}
			beginFlows(ctx, net, "the Service is created", steady(check.AnsweredBy(pods[0])))
			slice.Endpoints = nil
			net.UpdateSlice(ctx, slice) // the pod goes on answering
			settledBeside(ctx, net, pods[1], clients, steady)
			net.ExpectWithin(ctx, "its only endpoint goes", flowBound, once(steady(check.NotBy(pods...)))...)
		})

	check.It(spec.ProxyUDPFlowFollowsEndpoints, "that meets a node whose proxy is stopped is served once it runs, and has left what went meanwhile", check.AloneUnless(spec.OwnNodes),
		check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.UDPFlows, "follow")
			node := stoppable(ctx, net)
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			callers := []candidate.Client{client, check.Host(node.Name)}
			svc := exposeSelectorless(ctx, net, "app")
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			beginFlows(ctx, net, "a Service is created", flows(toClusterIP(svc, check.AnsweredBy(pods[0]), callers...)))

			check.Must(net.OwnNodes().StopProxy(ctx, node.Name))
			slice.Endpoints = net.Slice(svc, pods[1]).Endpoints
			net.UpdateSlice(ctx, slice) // the other goes on answering
			late := exposeSelectorless(ctx, net, "late")
			net.CreateSlice(ctx, net.Slice(late, pods[0]))
			net.ExpectNow(ctx, "the proxy is stopped", once(flows(toClusterIP(late, check.NotBy(pods...), callers...)))...)
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
			net.Expect(ctx, "the proxy is started", append(
				flows(toClusterIP(late, check.AnsweredBy(pods[0]), callers...)), flows(toClusterIP(svc, check.AnsweredBy(pods[1]), callers...))...)...)
		})

	check.It(spec.ProxyUDPFlowFollowsEndpoints, "that sends a thousand datagrams a second from one port is served when an endpoint comes, and moves to the next one", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.UDPFlows, "follow")
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app", withoutSelector())
			callers := append(clients, check.Host(net.Node(0)))
			busy := func(want check.Want) []check.Case {
				return neverPausing(flows(append(toClusterIP(svc, want, callers...), toOutside(addresses, want, outsiders(net)[:1]...)...)))
			}
			atNodePort := func(want check.Want) []check.Case { // that it leaves its backend with the last endpoint is a check of its own
				return append(busy(want), neverPausing(flows([]check.Case{{From: arriving(net, 0), To: onNodePort(net, 0, svc, 1), Protocol: corev1.ProtocolUDP, Want: want}}))...)
			}
			net.Expect(ctx, "a Service without endpoints is created", append(once(atNodePort(check.NotBy(pods...))), caughtUp(ctx, net, pods[0], clients...)...)...)
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			net.Expect(ctx, "its first endpoint comes", atNodePort(check.AnsweredBy(pods[0]))...)
			slice.Endpoints = net.Slice(svc, pods[1]).Endpoints
			slice = net.UpdateSlice(ctx, slice) // the other goes on answering
			net.Expect(ctx, "another endpoint takes its place", atNodePort(check.AnsweredBy(pods[1]))...)
			slice.Endpoints = nil
			slice = net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "its only endpoint goes", once(busy(check.NotBy(pods...)))...)
			slice.Endpoints = net.Slice(svc, pods[0]).Endpoints
			net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "an endpoint comes back", atNodePort(check.AnsweredBy(pods[0]))...)
		})

	check.It(spec.ProxyUDPFlowEndsWithService, "ends with its Service", check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.UDPFlows, "follow")
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app", onStaticAddress(ctx, net))
			net.CreateSlice(ctx, net.Slice(svc, pods[0])) // it stays when the Service goes
			steady := func(want check.Want) []check.Case {
				return flows(toClusterIP(svc, want, append(slices.Clone(clients), check.Host(net.Node(2)))...))
			}
			beginFlows(ctx, net, "the Service is created", steady(check.AnsweredBy(pods[0])))
			net.Unexpose(ctx, svc.Name)
			settledBeside(ctx, net, pods[1], clients, steady)
			net.ExpectWithin(ctx, "the Service is deleted", flowBound, once(steady(check.NotBy(pods...)))...)
		})
})
