package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("several EndpointSlices", func() {
	check.It(spec.ProxyEndpointSlicesJoined, "of a Service count together, as slices come, change and go",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app")
			among := func(listed ...candidate.Pod) []check.Case {
				return clusterIPCalls(svc, exactlyBy(3, listed...), append(clients, check.Host(net.Node(1)))...)
			}
			one, two := net.CreateSlice(ctx, net.Slice(svc, pods[0])), net.CreateSlice(ctx, net.Slice(svc, pods[1]))
			net.Expect(ctx, "two EndpointSlices are created", among(pods[:2]...)...)
			three := net.CreateSlice(ctx, net.Slice(svc, pods[2]))
			net.Expect(ctx, "a third EndpointSlice is created", among(pods...)...)
			net.DeleteSlice(ctx, two)
			net.Expect(ctx, "an EndpointSlice is deleted", among(pods[0], pods[2])...)
			one.Endpoints = nil
			net.UpdateSlice(ctx, one)
			net.Expect(ctx, "an EndpointSlice is emptied", among(pods[2])...)
			three.Endpoints = net.Slice(svc, pods...).Endpoints
			net.UpdateSlice(ctx, three)
			net.Expect(ctx, "an EndpointSlice gets more endpoints", among(pods...)...)
		})

	check.It(spec.ProxyEndpointSlicesJoined, "keep an endpoint in use that moves between them", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app")
			all := clusterIPCalls(svc, check.AnsweredByEach(pods...), append(clients, check.Host(net.Node(2)))...)
			one, two := net.CreateSlice(ctx, net.Slice(svc, pods...)), net.CreateSlice(ctx, net.Slice(svc))
			net.Expect(ctx, "the Service is created", all...)
			settled(ctx, net, pods[0], clients[0], check.Host(net.Node(2)))
			unbroken(ctx, net, check.ServiceAddress(svc, exposedPort), check.AnsweredBy(pods...), func() {
				two.Endpoints = net.Slice(svc, pods...).Endpoints
				two = net.UpdateSlice(ctx, two)
				one.Endpoints = nil
				one = net.UpdateSlice(ctx, one)
				net.Expect(ctx, "all endpoints move to another EndpointSlice", append(slices.Clone(all), caughtUp(ctx, net, pods[0], clients...)...)...)
				net.DeleteSlice(ctx, one)
				net.Expect(ctx, "the EndpointSlice that they have left is deleted", append(slices.Clone(all), caughtUp(ctx, net, pods[0], clients...)...)...)
			}, clients[0], check.Host(net.Node(2)))
		})

	check.It(spec.ProxyEndpointDuplicate, "that list the same endpoint do not make it count more",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app")
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			// So many that its share would be nine tenths if each counted: few connections tell that from a half.
			copies := make([]*discoveryv1.EndpointSlice, 8)
			for i := range copies {
				copies[i] = net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			}
			evenly := []check.Case{
				{From: clients[0], To: check.ServiceAddress(svc, exposedPort), Want: check.Evenly(pods...)},
				{From: clients[2], To: check.ServiceAddress(svc, exposedPort), Protocol: corev1.ProtocolUDP, Want: check.Evenly(pods...)},
			}
			net.Expect(ctx, "nine EndpointSlices list an endpoint and one of them lists another, too",
				append(evenly, caughtUp(ctx, net, pods[1], clients[0], clients[2])...)...)
			for _, c := range copies[1:] {
				net.DeleteSlice(ctx, c)
			}
			net.Expect(ctx, "seven of nine EndpointSlices that list an endpoint are deleted",
				append(evenly, caughtUp(ctx, net, pods[1], clients[0], clients[2])...)...)
		})

	check.It(spec.ProxyEndpointAddressReused, "that list a running and a terminating endpoint of one address lead to the running one",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			terminating := func(pod candidate.Pod) discoveryv1.Endpoint {
				e := check.Endpoint(pod, net.PrimaryFamily())
				no, yes := false, true
				e.Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: &yes, Terminating: &yes}
				return e
			}
			var cases []check.Case
			for _, order := range []string{"before", "after"} {
				svc := exposeSelectorless(ctx, net, order)
				running, ending := net.Slice(svc, pods...), net.Slice(svc)
				ending.Endpoints = []discoveryv1.Endpoint{terminating(pods[0])}
				// Whether the one or the other comes first, by its name and by its time.
				running.Name, ending.Name = order+"-b", order+"-a"
				if order == "after" {
					running.Name, ending.Name = ending.Name, running.Name
					net.CreateSlice(ctx, running)
					net.CreateSlice(ctx, ending)
				} else {
					net.CreateSlice(ctx, ending)
					net.CreateSlice(ctx, running)
				}
				cases = append(cases, clusterIPCalls(svc, check.AnsweredByEach(pods...), clients[0], clients[2])...)
			}
			net.Expect(ctx, "EndpointSlices list an address as running and as terminating",
				append(cases, caughtUp(ctx, net, pods[1], clients[0], clients[2])...)...)
		})

	check.It(spec.ProxyEndpointWithoutNodeRemote, "may hold an endpoint without a node name, which is local as declared",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(0))
			everywhere, local := exposeSelectorless(ctx, net, "everywhere"), exposeSelectorless(ctx, net, "local", internalLocal)
			list := func(svc *corev1.Service) *discoveryv1.EndpointSlice {
				slice := net.Slice(svc, pods...)
				slice.Endpoints[1].NodeName = nil
				return net.CreateSlice(ctx, slice)
			}
			list(everywhere)
			slice := list(local)
			atFirst := []candidate.Client{clients[0], check.Host(net.Node(0))}
			nodeless := clusterIPCalls(everywhere, check.AnsweredByEach(pods...), clients...)
			switch net.Declared(spec.NodelessEndpoints) {
			case "remote":
				none := net.NoEndpoints(net.Declared(spec.InternalLocalWithoutEndpoints))
				nodeless = slices.Concat(nodeless, toClusterIP(local, onlyBy(2, pods[0]), atFirst...), once(toClusterIP(local, none, clients[1])))
			case "local":
				nodeless = slices.Concat(nodeless, clusterIPCalls(local, check.AnsweredByEach(pods...), atFirst...), toClusterIP(local, check.AnsweredBy(pods[1]), clients[1]))
			}
			net.Expect(ctx, "an endpoint has no node name", nodeless...)
			slice.Endpoints[1].NodeName = slice.Endpoints[0].NodeName
			net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "the endpoint gets the name of its node", clusterIPCalls(local, check.AnsweredByEach(pods...), atFirst...)...)
		})

	check.It(spec.ProxyEndpointUnusableIgnored, "may hold what a proxy cannot use, beside what it can",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app")
			ready := func(address string) []discoveryv1.Endpoint {
				yes := true
				return []discoveryv1.Endpoint{{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: &yes, Serving: &yes}}}
			}
			named := net.Slice(svc)
			named.AddressType, named.Endpoints = discoveryv1.AddressTypeFQDN, ready(externalHost)
			net.CreateSlice(ctx, named)
			other := net.Slice(svc)
			other.AddressType, other.Endpoints = discoveryv1.AddressType(net.OtherFamily()), ready("2001:db8::1") // RFC 3849
			if net.OtherFamily() == corev1.IPv4Protocol {
				other.Endpoints = ready("192.0.2.1") // RFC 5737
			}
			net.CreateSlice(ctx, other)
			unnumbered := net.Slice(svc, pods[1]) // neither port of this one has a number
			for i := range unnumbered.Ports {
				unnumbered.Ports[i].Port = nil
			}
			net.CreateSlice(ctx, unnumbered)
			portless := net.Slice(svc, pods[1])
			portless.Ports = nil
			net.CreateSlice(ctx, portless)
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			at := append(clients, check.Host(net.Node(1)))
			net.Expect(ctx, "EndpointSlices of every kind are created", append(
				toClusterIP(svc, onlyBy(4, pods[0]), at...), caughtUp(ctx, net, pods[0], clients...)...)...)
			slice.Endpoints = net.Slice(svc, pods...).Endpoints
			net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "the usable one gets another endpoint", clusterIPCalls(svc, exactlyBy(4, pods...), at...)...)
		})

	check.It(spec.ProxyEndpointSlicesJoined, "that list the same pods, each for another port of the Service, serve every port", check.Also(spec.ProxyEndpointPortNameMatched),
		func(ctx context.Context, net *check.Network) {
			numbers := []int{check.BackendPort, 9090}
			pods := listening(ctx, net, "app", numbers, net.Node(0), net.Node(1))
			clients := clientPods(ctx, net)
			svc := exposeSelectorless(ctx, net, "app", check.WithPorts(check.Port("a", corev1.ProtocolTCP, 80, numbers[0]), check.Port("b", corev1.ProtocolTCP, 81, numbers[1])))
			for i := range numbers { // of the pods' two ports each slice tells one
				slice := net.Slice(svc, pods...)
				slice.Ports = slices.Clone(slice.Ports[i : i+1])
				net.CreateSlice(ctx, slice)
			}
			var cases []check.Case
			for _, c := range append(clients, check.Host(net.Node(1))) {
				for i, number := range numbers {
					cases = append(cases, check.Case{From: c, To: check.ServiceAddress(svc, 80+int32(i)), Want: byEachOf(pods, []int{number})})
				}
			}
			net.Expect(ctx, "EndpointSlices with a port each are created", cases...)
		})

	check.It(spec.ProxyEndpointPortNameMatched, "lead to a port of the Service by the ports that have its name",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			names := func(a, b string) check.ServiceOption {
				return check.WithPorts(check.Port(a, corev1.ProtocolTCP, 80, check.BackendPort), check.Port(b, corev1.ProtocolTCP, 81, check.BackendPort))
			}
			svc := exposeSelectorless(ctx, net, "app", names("a", "b"))
			offer := func(names check.ServiceOption, pod candidate.Pod, ports ...int) {
				like := check.Service(svc.Name, names)
				like.Namespace = svc.Namespace
				slice := net.Slice(like, pod)
				slice.Ports = slices.Clone(slice.Ports)
				var kept []discoveryv1.EndpointPort
				for _, i := range ports {
					protocol := corev1.ProtocolTCP
					kept = append(kept, slice.Ports[i])
					kept[len(kept)-1].Protocol = &protocol
				}
				slice.Ports = kept
				net.CreateSlice(ctx, slice)
			}
			offer(names("a", "b"), pods[0], 0)
			offer(names("a", "b"), pods[1], 1)
			offer(names("c", "A"), pods[2], 0) // "A" is no name of a port
			var cases []check.Case
			for _, c := range append(clients, check.Host(net.Node(0))) {
				cases = append(cases,
					check.Case{From: c, To: check.ServiceAddress(svc, 80), Want: onlyBy(3, pods[0])},
					check.Case{From: c, To: check.ServiceAddress(svc, 81), Want: onlyBy(3, pods[1])})
			}
			net.Expect(ctx, "EndpointSlices with a port each are created", append(cases, caughtUp(ctx, net, pods[0], clients...)...)...)
		})
})
