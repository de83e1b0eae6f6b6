package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// byEachOf demands that connections are answered by the pods on the ports, and each combination answers at least once.
func byEachOf(pods []candidate.Pod, ports []int) check.Want {
	type endpoint struct {
		pod  candidate.PodName
		port int
	}
	n := len(pods) * len(ports)
	by := check.AnsweredBy(pods...)
	return check.Want{
		Text:  fmt.Sprintf("%s, each on each of the ports %v", by.Text, ports),
		Still: &by,
		Shots: check.TrialsUntil(1/float64(n)) + 2*n, // more by ln n / -ln(1-1/n) for the union bound
		Met: func(os []candidate.Outcome) bool {
			seen := map[endpoint]bool{}
			for _, o := range os {
				if !slices.Contains(ports, o.PodPort) {
					return false
				}
				seen[endpoint{o.Pod, o.PodPort}] = true
			}
			return by.Met(os) && len(seen) == n
		},
	}
}

var _ = ginkgo.Describe("endpoints", func() {
	check.It(spec.ProxySelectorlessSlicesUsed, "of hand-made EndpointSlices are used for a Service without a selector",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app", onNodePorts())
			net.CreateSlice(ctx, net.Slice(svc, pods[0], pods[2])) // the third has the same label
			want := exactlyBy(3, pods[0], pods[2])
			net.Expect(ctx, "an EndpointSlice is created", append(
				clusterIPCalls(svc, want, append(clients, check.Host(net.Node(1)))...),
				toNodePorts(net, svc, want, check.Outside(net.Node(1)))...)...)
		})

	check.It(spec.ProxyEveryEndpointSelected, "are each chosen, also when they have one address and different ports",
		func(ctx context.Context, net *check.Network) {
			numbers := []int{check.BackendPort, 9090}
			pods := listening(ctx, net, "app", numbers, net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app")
			for _, n := range numbers {
				slice := net.Slice(svc, pods...)
				for i := range slice.Ports {
					number := int32(n)
					slice.Ports[i].Port = &number
				}
				net.CreateSlice(ctx, slice)
			}
			net.Expect(ctx, "the Service is created",
				toClusterIP(svc, byEachOf(pods, numbers), check.FromPod(pods[0]), check.FromPod(pods[2]), check.Host(net.Node(1)))...)
		})

	check.It(spec.ProxyEndpointAdded, "that are added receive connections, and those that are removed receive none", check.Also(spec.ProxyEndpointRemoved),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app", onNodePorts())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			list := func(what string, listed ...candidate.Pod) {
				slice.Endpoints = net.Slice(svc, listed...).Endpoints
				slice = net.UpdateSlice(ctx, slice)
				want := exactlyBy(3, listed...)
				net.Expect(ctx, what, append(
					clusterIPCalls(svc, want, append(clients, check.Host(net.Node(2)))...),
					toNodePorts(net, svc, want, check.Outside(net.Node(0)))...)...)
			}
			net.Expect(ctx, "the Service is created", toClusterIP(svc, check.AnsweredBy(pods[0]), clients...)...)
			check.Deciding(func() { list("an endpoint is added to one", pods[0], pods[1]) }, spec.ProxyEndpointAdded)
			check.Deciding(func() { list("the first of two endpoints is removed", pods[1]) }, spec.ProxyEndpointRemoved)
			list("two endpoints are added and one removed", pods[2], pods[0])
		})

	check.It(spec.ProxyEndpointAdded, "that are added receive connections through external addresses, and those that are removed receive none",
		check.Also(spec.ProxyEndpointRemoved, spec.ProxyExternalIPReachable, spec.ProxyLoadBalancerReachable),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app", withoutSelector())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			list := func(what string, deciding spec.ID, listed ...candidate.Pod) {
				slice.Endpoints = net.Slice(svc, listed...).Endpoints
				slice = net.UpdateSlice(ctx, slice)
				check.Deciding(func() { net.Expect(ctx, what, toOutside(addresses, exactlyBy(2, listed...), outsiders(net)...)...) }, deciding)
			}
			for i, kind := range []spec.ID{spec.ProxyExternalIPReachable, spec.ProxyLoadBalancerReachable}[:len(addresses)] {
				check.Deciding(func() {
					net.Expect(ctx, "the Service is created", toOutside(addresses[i:i+1], check.AnsweredBy(pods[0]), outsiders(net)...)...)
				}, kind)
			}
			list("an endpoint is added to one", spec.ProxyEndpointAdded, pods...)
			list("the first of two endpoints is removed", spec.ProxyEndpointRemoved, pods[1])
		})

	check.It(spec.ProxyEndpointRemoved, "that are removed receive none from the ports either that clients had connections from before",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app")
			slice := net.CreateSlice(ctx, net.Slice(svc, pods...))
			again := func(want check.Want) []check.Case {
				var cases []check.Case
				for i := range check.TrialsUntil(1 / float64(len(pods))) { // so that some had the endpoint that goes
					cases = append(cases, check.Case{From: clients[i%2], To: check.ServiceAddress(svc, exposedPort), SourcePort: firstChosenPort + i, Want: want})
				}
				return cases
			}
			// A kernel remembers an attempt from before the Service was served, and lets others from that port go the same way.
			net.Expect(ctx, "the Service is created", toClusterIP(svc, check.AnsweredByEach(pods...), clients[:2]...)...)
			net.Expect(ctx, "clients choose their ports", again(check.AnsweredBy(pods...))...)
			slice.Endpoints = net.Slice(svc, pods[1]).Endpoints
			net.UpdateSlice(ctx, slice) // the other goes on answering
			net.Expect(ctx, "one of two endpoints is removed", again(check.AnsweredBy(pods[1]))...)
		})

	check.It(spec.ProxyEndpointRemoved, "of pods that are deleted receive no connections",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := net.Expose(ctx, exposed("app"))
			net.Expect(ctx, "the Service is created", clusterIPCalls(svc, check.AnsweredByEach(pods...), clients...)...)
			net.Remove(ctx, pods[0])
			net.Expect(ctx, "a pod is deleted", clusterIPCalls(svc, exactlyBy(3, pods[1:]...), clients...)...)
		})

	check.It(spec.ProxyUnreadyEndpointAvoided, "of pods that are not ready are avoided until they are",
		func(ctx context.Context, net *check.Network) {
			pods := make([]candidate.Pod, 3)
			clients := make([]candidate.Client, 3)
			check.Concurrently(4, func(i int) {
				if i == 3 {
					clients = clientPods(ctx, net)
					return
				}
				pods[i] = net.Start(ctx, candidate.Pod{Node: net.Node(i), Labels: map[string]string{"app": "app"}, Unready: i == 2})
			})
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			among := func(ready ...candidate.Pod) []check.Case {
				want := exactlyBy(3, ready...)
				return append(clusterIPCalls(svc, want, append(clients, check.FromPod(pods[2]), check.Host(net.Node(2)))...),
					toNodePorts(net, svc, want, check.Outside(net.Node(2)))...)
			}
			net.Expect(ctx, "a Service with an unready pod is created", among(pods[:2]...)...)
			net.SetReady(ctx, pods[2], true)
			net.Expect(ctx, "a pod becomes ready", among(pods...)...)
			net.SetReady(ctx, pods[0], false)
			net.Expect(ctx, "a pod becomes unready", among(pods[1:]...)...)
		})

	check.It(spec.ProxyReadyUnsetUsed, "are used where their EndpointSlice does not say whether they are ready",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app")
			slice := net.Slice(svc, pods...)
			slice.Endpoints[0].Conditions.Ready = nil                        // "A nil value should be interpreted as true"
			slice.Endpoints[1].Conditions = discoveryv1.EndpointConditions{} // none is set
			net.CreateSlice(ctx, slice)
			net.Expect(ctx, "an EndpointSlice is created", clusterIPCalls(svc, exactlyBy(3, pods...), append(clients, check.Host(net.Node(0)))...)...)
		})

	check.It(spec.ProxyUnreadyEndpointAvoided, "of an EndpointSlice by hand are avoided if it says that they are not ready",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app")
			slice := net.Slice(svc, pods...)
			no := false
			slice.Endpoints[2].Conditions = discoveryv1.EndpointConditions{Ready: &no}
			net.CreateSlice(ctx, slice)
			net.Expect(ctx, "an EndpointSlice is created", clusterIPCalls(svc, exactlyBy(3, pods[:2]...), append(clients, check.Host(net.Node(0)))...)...)
		})
})
