package proxy

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// sourceRanges sets loadBalancerSourceRanges.
func sourceRanges(ranges ...netip.Prefix) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		for _, r := range ranges {
			s.Spec.LoadBalancerSourceRanges = append(s.Spec.LoadBalancerSourceRanges, r.String())
		}
	})
}

// alone is the range that holds only the address.
func alone(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, a.BitLen()) }

// everybody is the range of length zero of the family of an address.
func everybody(a netip.Addr) netip.Prefix { return netip.PrefixFrom(a, 0).Masked() }

// neighbours are two clients outside of the cluster with addresses of their own, and these addresses.
func neighbours(ctx context.Context, net *check.Network, gateway string, pod candidate.Pod) (clients [2]candidate.Client, addresses [2]netip.Addr) {
	ginkgo.GinkgoHelper()
	for i := range clients {
		clients[i] = candidate.Client{Gateway: gateway, Address: i}
		addresses[i] = ownAddress(ctx, net, clients[i], pod)
	}
	if addresses[0] == addresses[1] {
		check.Abort("two clients outside of the cluster have the same address %s", addresses[0])
	}
	return clients, addresses
}

// turnedAway demands that nobody answers: how an address refuses those that it does not serve is not said.
func turnedAway() check.Want {
	want := check.Unanswered()
	want.Shots = 1
	return want
}

var _ = ginkgo.Describe("loadBalancerSourceRanges", func() {
	check.It(spec.ProxyLoadBalancerSourceRanges, "admit only clients inside of them, and leave cluster IP and node port alone", check.Long(),
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			inside := net.ClientPod(ctx, net.Node(2))
			clients, own := neighbours(ctx, net, net.Node(0), all[0])
			pod := alone(ownAddress(ctx, net, inside, all[0]))
			svc := net.Expose(ctx, exposed("app", balanced(), sourceRanges(alone(own[0]), pod)))
			a := []netip.Addr{net.ExternalAddress()}
			announce(ctx, net, svc, a...)
			each := check.AnsweredByEach(all...)
			untouched := slices.Concat(
				clusterIPCalls(svc, each, inside, check.Host(net.Node(1))),
				[]check.Case{{From: clients[0], To: onNode(net, 0, svc), Want: each}, {From: clients[1], To: onNode(net, 0, svc), Want: each}})
			net.Expect(ctx, "an ingress point with source ranges is set", slices.Concat(
				calls(clients[0], a, each), calls(inside, a, each), calls(clients[1], a, turnedAway()), untouched)...)
			net.Change(ctx, svc.Name, fmt.Sprintf(`{"spec":{"loadBalancerSourceRanges":[%q]}}`, alone(own[1])))
			net.Expect(ctx, "the source ranges change", slices.Concat(
				calls(clients[0], a, turnedAway()), calls(inside, a, turnedAway()), calls(clients[1], a, each), untouched)...)
			net.Change(ctx, svc.Name, `{"spec":{"loadBalancerSourceRanges":null}}`)
			net.Expect(ctx, "the source ranges are taken away", slices.Concat(
				calls(clients[0], a, each), calls(inside, a, each), calls(clients[1], a, each), untouched)...)
		})

	check.It(spec.ProxyLoadBalancerSourceRanges, "admit under externalTrafficPolicy Local too",
		func(ctx context.Context, net *check.Network) {
			first, _, all := lopsided(ctx, net, "app")
			clients, own := neighbours(ctx, net, net.Node(0), all[0])
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal, sourceRanges(alone(own[0]))))
			a := []netip.Addr{net.ExternalAddress()}
			announce(ctx, net, svc, a...)
			net.Expect(ctx, "an ingress point with source ranges is set", append(
				calls(clients[0], a, check.AnsweredByEach(first...)), calls(clients[1], a, turnedAway())...)...)
		})

	check.It(spec.ProxyLoadBalancerSourceRangesZero, "admit everybody when one has length zero",
		func(ctx context.Context, net *check.Network) {
			_, _, all := lopsided(ctx, net, "app")
			clients, own := neighbours(ctx, net, net.Node(0), all[0])
			only := net.Expose(ctx, exposed("only", selecting("app"), balanced(), sourceRanges(everybody(own[0]))))
			among := net.Expose(ctx, exposed("among", selecting("app"), balanced(), sourceRanges(alone(own[0]), everybody(own[0]))))
			a, b := []netip.Addr{net.ExternalAddress()}, []netip.Addr{net.ExternalAddress()}
			announce(ctx, net, only, a...)
			announce(ctx, net, among, b...)
			each := check.AnsweredByEach(all...)
			net.Expect(ctx, "ingress points with source ranges are set", slices.Concat(
				calls(clients[0], a, each), calls(clients[1], a, each), calls(clients[0], b, each), calls(clients[1], b, each),
				toOutside(slices.Concat(a, b), each, net.ClientPod(ctx, net.Node(2)), check.Host(net.Node(1)), check.Outside(net.Node(2))))...)
		})
})
