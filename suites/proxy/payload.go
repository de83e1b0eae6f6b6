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

// The sizes of contents: datagrams that take three and six packets, a stream that takes many round trips, and one that is more than a packet.
const (
	someFragments = 4000
	manyFragments = 8000
	largeStream   = 1 << 20
	somePackets   = 64 << 10
)

// carrying are the cases of a protocol, each of whose shots carries one of the contents, in turn. Two shots of each do: nothing is chosen at random.
func carrying(cases []check.Case, protocol corev1.Protocol, payloads ...int) []check.Case {
	var loaded []check.Case
	for _, c := range cases {
		if c.Protocol != protocol && (c.Protocol != "" || protocol != corev1.ProtocolTCP) {
			continue
		}
		c.Payload = payloads[len(loaded)%len(payloads)]
		c.Want, c.Shots = check.AllOf(c.Want, check.Carrying(c.Payload)), 2
		loaded = append(loaded, c)
	}
	return loaded
}

// toBothNodes are calls to every address of two Services, whose one endpoint is on the first node and on the second. The clients are pods and
// hosts of three nodes, and hosts outside.
func toBothNodes(ctx context.Context, net *check.Network) []check.Case {
	ginkgo.GinkgoHelper()
	clients := clientPods(ctx, net)
	var cases []check.Case
	for i, app := range []string{"first", "second"} {
		pod := net.Backends(ctx, app, net.Node(i))[0]
		svc, addresses := exposeOutside(ctx, net, app)
		want := check.AnsweredBy(pod)
		cases = append(cases, everyAddress(net, svc, addresses, want, append(clients, hosts(net)...), outsiders(net))...)
		for k := range 2 { // the other protocol of each node port
			cases = append(cases, check.Case{From: check.Outside(net.Node(k)), To: onNodePort(net, k, svc, 1-i), Protocol: inTurn(1 - i), Want: want})
		}
		local := net.Expose(ctx, exposed(app+"-local", selecting(app), onNodePorts(), externalLocal))
		cases = append(cases, arrivals(net, i, local, nil, want)...)
	}
	return cases
}

var _ = ginkgo.Describe("a datagram of several packets", func() {
	check.It(spec.ProxyLargeDatagrams, "arrives whole and is answered by one of its size, through every address", check.Long(),
		func(ctx context.Context, net *check.Network) {
			net.Expect(ctx, "Services are created", carrying(toBothNodes(ctx, net), corev1.ProtocolUDP, manyFragments, someFragments)...)
		})
})

var _ = ginkgo.Describe("a datagram whose packets come in another order", func() {
	check.It(spec.ProxyLargeDatagrams, "arrives whole from outside, through every address", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pod := net.Backends(ctx, "app", net.Node(0))[0]
			svc, addresses := exposeOutside(ctx, net, "app")
			want := check.AnsweredBy(pod)
			cases := carrying(append(arrivals(net, 0, svc, addresses, want), arrivals(net, 1, svc, addresses, want)...), corev1.ProtocolUDP, someFragments, manyFragments)
			for i := range cases {
				cases[i].Reversed = true
			}
			net.Expect(ctx, "the Service is created", cases...)
		})
})

var _ = ginkgo.Describe("a stream of a megabyte", func() {
	check.It(spec.ProxyLargeStreams, "arrives whole and is answered by one of its size, through every address", check.Long(),
		func(ctx context.Context, net *check.Network) {
			net.Expect(ctx, "Services are created", carrying(toBothNodes(ctx, net), corev1.ProtocolTCP, largeStream)...)
		})
})

// loaded are cases that carry contents by both protocols.
func loaded(cases []check.Case) []check.Case {
	return append(carrying(cases, corev1.ProtocolTCP, somePackets), carrying(cases, corev1.ProtocolUDP, someFragments)...)
}

var _ = ginkgo.Describe("a link that takes smaller packets", func() {
	check.It(spec.ProxyNarrowLinks, "before a backend keeps no content from it", check.Long(), func(ctx context.Context, net *check.Network) {
		pod := net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: net.Name("narrow")}, Node: net.Node(0), Labels: map[string]string{"app": "app"}, Narrow: true})
		clients := clientPods(ctx, net)
		svc, addresses := exposeOutside(ctx, net, "app")
		want := check.AnsweredBy(pod)
		net.Expect(ctx, "the Service is created", loaded(slices.Concat(
			toClusterIP(svc, want, append(clients, hosts(net)...)...), arrivals(net, 0, svc, addresses, want), arrivals(net, 1, svc, addresses, want)))...)
	})

	check.It(spec.ProxyNarrowLinks, "before a client keeps no content from it", check.Long(), func(ctx context.Context, net *check.Network) {
		pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
		inside := check.FromPod(net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: net.Name("narrow")}, Node: net.Node(0), Narrow: true}))
		var cases []check.Case
		for i, app := range []string{"app", "far"} {
			pod := pods[0]
			if i == 1 {
				pod = net.Backends(ctx, app, net.Node(1))[0]
			}
			svc, addresses := exposeOutside(ctx, net, app)
			want := check.AnsweredBy(pod)
			if i == 0 {
				want = check.AnsweredBy(pods...)
			}
			cases = append(cases, toClusterIP(svc, want, inside)...)
			for k := range 2 {
				for _, c := range arrivals(net, k, svc, addresses, want) {
					c.From.Address = candidate.NarrowAddress
					cases = append(cases, c)
				}
			}
		}
		net.Expect(ctx, "Services are created", loaded(cases)...)
	})
})

var _ = ginkgo.Describe("endpoints outside of the cluster", func() {
	check.It(spec.ProxyOutsideBackends, "are reached through every address of a Service without a selector", check.Long(), func(ctx context.Context, net *check.Network) {
		anyPorts := []candidate.PodPort{{Name: "tcp", Protocol: corev1.ProtocolTCP}, {Name: "udp", Protocol: corev1.ProtocolUDP}}
		var hostsOutside []candidate.Pod
		for i := range 2 {
			hostsOutside = append(hostsOutside, net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: net.Name("host")}, Node: net.Node(i), Ports: anyPorts, Outside: true}))
		}
		clients := clientPods(ctx, net)
		svc, addresses := exposeOutside(ctx, net, "app", withoutSelector())
		for _, h := range hostsOutside { // each has ports of its own
			slice := net.Slice(svc, h)
			for i := range slice.Ports {
				slice.Ports[i].Port = new(int32(h.Ports[i].Number))
			}
			slice.Endpoints[0].NodeName = nil
			net.CreateSlice(ctx, slice)
		}
		want := check.AnsweredByEach(hostsOutside...)
		cases := toClusterIP(svc, want, append(clients, hosts(net)...)...)
		cases = append(cases, arrivals(net, 2, svc, addresses, want)...) // a client that is no endpoint
		net.Expect(ctx, "EndpointSlices of hosts outside are created", cases...)
	})
})
