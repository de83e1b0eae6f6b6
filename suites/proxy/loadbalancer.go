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

// withoutNodePorts sets allocateLoadBalancerNodePorts to false.
func withoutNodePorts() check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = new(false) })
}

// throughEach are calls to the addresses by clients outside of the cluster through each of the first three nodes: TCP and UDP in turn.
func throughEach(net *check.Network, addresses []netip.Addr, want check.Want) []check.Case {
	var cases []check.Case
	for i := range 3 {
		for k, a := range addresses {
			cases = append(cases, check.Case{From: check.Outside(net.Node(i)), To: exposedAt(a), Protocol: inTurn(i + k), Want: want})
		}
	}
	return cases
}

var _ = ginkgo.Describe("a load-balancer address", func() {
	check.It(spec.ProxyLoadBalancerReachable, "leads to the endpoints through every node, as does each one of several",
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			svc := net.Expose(ctx, exposed("app", balanced()))
			addresses := []netip.Addr{net.ExternalAddress(), net.ExternalAddress()}
			announce(ctx, net, svc, addresses...)
			net.Expect(ctx, "ingress points are set", throughEach(net, addresses, check.AnsweredByEach(all...))...)
		})

	check.It(spec.ProxyLoadBalancerReachable, "leads to the Service whose status names it now", check.Long(),
		func(ctx context.Context, net *check.Network) {
			one, two := net.Backends(ctx, "one", net.Node(0), net.Node(1)), net.Backends(ctx, "two", net.Node(0), net.Node(1))
			first, second := net.Expose(ctx, exposed("one", balanced())), net.Expose(ctx, exposed("two", balanced()))
			a := []netip.Addr{net.ExternalAddress()}
			b := []netip.Addr{net.ExternalAddress()}
			announce(ctx, net, first, a...)
			announce(ctx, net, second, b...)
			net.Expect(ctx, "ingress points are set", append(
				throughEach(net, a, check.AnsweredByEach(one...)), throughEach(net, b, check.AnsweredByEach(two...))...)...)
			// First both give theirs up: what happens while two Services have one address is nobody's promise.
			announce(ctx, net, first)
			announce(ctx, net, second)
			net.Expect(ctx, "ingress points are taken away", append(
				throughEach(net, a, notBy(one...)), throughEach(net, b, notBy(two...))...)...)
			announce(ctx, net, first, b...)
			announce(ctx, net, second, a...)
			net.Expect(ctx, "two Services exchange their ingress points", append(
				throughEach(net, b, check.AnsweredByEach(one...)), throughEach(net, a, check.AnsweredByEach(two...))...)...)
		})

	check.It(spec.ProxyLoadBalancerClientAddressAltered, "lets endpoints see another address than the client's",
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			svc := net.Expose(ctx, exposed("app", balanced()))
			a := []netip.Addr{net.ExternalAddress()}
			announce(ctx, net, svc, a...)
			var cases []check.Case
			for i := range 3 {
				from := check.Outside(net.Node(i))
				cases = append(cases, calls(from, a, check.AllOf(check.AnsweredByEach(all...), check.NotSeenFrom(ownAddress(ctx, net, from, all[0]))))...)
			}
			net.Expect(ctx, "an ingress point is set", cases...)
		})

	check.It(spec.ProxyLoadBalancerWithoutNodePorts, "works without node ports",
		func(ctx context.Context, net *check.Network) {
			first, second, all := lopsided(ctx, net, "app")
			cluster := net.Expose(ctx, exposed("cluster", selecting("app"), balanced(), withoutNodePorts()))
			local := net.Expose(ctx, exposed("local", selecting("app"), balanced(), withoutNodePorts(), externalLocal))
			a, b := []netip.Addr{net.ExternalAddress()}, []netip.Addr{net.ExternalAddress()}
			announce(ctx, net, cluster, a...)
			announce(ctx, net, local, b...)
			net.Expect(ctx, "ingress points are set", slices.Concat(
				throughEach(net, a, check.AnsweredByEach(all...)),
				calls(check.Outside(net.Node(0)), b, check.AnsweredByEach(first...)),
				calls(check.Outside(net.Node(1)), b, onlyBy(len(all), second...)))...)
		})

	check.It(spec.ProxyLoadBalancerMixedProtocols, "serves TCP and UDP on one port number",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			net.Start(ctx, candidate.Pod{Node: net.Node(2), Labels: map[string]string{"app": "apart"}, Ports: []candidate.PodPort{
				{Name: "tcp", Protocol: corev1.ProtocolTCP, Number: check.BackendPort},
				{Name: "udp", Protocol: corev1.ProtocolUDP, Number: check.BackendPort + 1}}})
			same := net.Expose(ctx, exposed("app", balanced()))
			// The protocols of one number lead to ports of their own.
			different := net.Expose(ctx, check.Service("apart", balanced(), check.WithPorts(
				check.Port("tcp", corev1.ProtocolTCP, exposedPort, check.BackendPort), check.Port("udp", corev1.ProtocolUDP, exposedPort, check.BackendPort+1))))
			a, b := net.ExternalAddress(), net.ExternalAddress()
			announce(ctx, net, same, a)
			announce(ctx, net, different, b)
			from := check.Outside(net.Node(0))
			each := check.AnsweredByEach(pods...)
			net.Expect(ctx, "ingress points are set",
				check.Case{From: from, To: exposedAt(a), Want: each},
				check.Case{From: from, To: exposedAt(a), Protocol: corev1.ProtocolUDP, Want: each},
				check.Case{From: from, To: exposedAt(b), Want: check.OnPort(check.BackendPort)},
				check.Case{From: from, To: exposedAt(b), Protocol: corev1.ProtocolUDP, Want: check.OnPort(check.BackendPort + 1)})
		})
})

// notBy is check.NotBy with one shot, which silence may make long.
func notBy(pods ...candidate.Pod) check.Want {
	want := check.NotBy(pods...)
	want.Shots = 1
	return want
}

var _ = ginkgo.Describe("ipMode", func() {
	check.It(spec.ProxyLoadBalancerIPModeVIP, "VIP lets every node serve the address",
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			svc := net.Expose(ctx, exposed("app", balanced()))
			a := []netip.Addr{net.ExternalAddress()}
			announceAs(ctx, net, svc, corev1.LoadBalancerIPModeVIP, a...)
			net.Expect(ctx, "an ingress point with ipMode VIP is set", throughEach(net, a, check.AnsweredByEach(all...))...)
		})

	check.It(spec.ProxyLoadBalancerFromCluster, "VIP lets every node serve the address for its pods and itself",
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			svc := net.Expose(ctx, exposed("app", balanced()))
			a := []netip.Addr{net.ExternalAddress()}
			announce(ctx, net, svc, a...)
			each := check.AnsweredByEach(all...)
			var cases []check.Case
			for i := range clients {
				cases = append(append(cases, calls(clients[i], a, each)...), calls(check.Host(net.Node(i)), a, each)...)
			}
			net.Expect(ctx, "an ingress point is set", cases...)
		})

	check.It(spec.ProxyLoadBalancerIPModeProxy, "Proxy leaves the address to the load balancer",
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			clients := clientPods(ctx, net)
			// The load balancer is a pod, which can be told from the endpoints.
			balancer := net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: "balancer"}, Node: net.Node(2), Ports: []candidate.PodPort{
				{Name: "tcp", Protocol: corev1.ProtocolTCP, Number: exposedPort}, {Name: "udp", Protocol: corev1.ProtocolUDP, Number: exposedPort}}})
			svc := net.Expose(ctx, exposed("app", balanced()))
			a := []netip.Addr{check.AddressOf(balancer.Addresses, net.PrimaryFamily())}
			announceAs(ctx, net, svc, corev1.LoadBalancerIPModeProxy, a...)
			net.Expect(ctx, "an ingress point with ipMode Proxy is set", slices.Concat(
				calls(clients[0], a, check.AnsweredBy(balancer)), calls(clients[1], a, check.AnsweredBy(balancer)),
				calls(check.Host(net.Node(1)), a, check.AnsweredBy(balancer)), calls(check.Host(net.Node(2)), a, check.AnsweredBy(balancer)),
				throughEach(net, a, check.AnsweredBy(balancer)),
				// What the load balancer forwards is served.
				arrivals(net, 2, svc, nil, check.AnsweredByEach(all...)))...)
		})

	check.It(spec.ProxyLoadBalancerIPModeProxy, "Proxy ends what VIP has begun, and the other way round", check.Long(), check.Also(spec.ProxyLoadBalancerIPModeVIP),
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			client := net.ClientPod(ctx, net.Node(2))
			svc := net.Expose(ctx, exposed("app", balanced()))
			a := []netip.Addr{net.ExternalAddress()}
			outside := func(want check.Want) []check.Case {
				return append(calls(check.Outside(net.Node(0)), a, want), calls(check.Outside(net.Node(2)), a, want)...)
			}
			served := outside(check.AnsweredByEach(all...))
			announceAs(ctx, net, svc, corev1.LoadBalancerIPModeVIP, a...)
			check.Deciding(func() { net.Expect(ctx, "an ingress point with ipMode VIP is set", served...) }, spec.ProxyLoadBalancerIPModeVIP)
			announceAs(ctx, net, svc, corev1.LoadBalancerIPModeProxy, a...)
			check.Deciding(func() {
				net.Expect(ctx, "ipMode becomes Proxy", append(outside(notBy(all...)), calls(client, a, notBy(all...))...)...)
			}, spec.ProxyLoadBalancerIPModeProxy)
			announceAs(ctx, net, svc, corev1.LoadBalancerIPModeVIP, a...)
			check.Deciding(func() { net.Expect(ctx, "ipMode becomes VIP", served...) }, spec.ProxyLoadBalancerIPModeVIP)
		})
})
