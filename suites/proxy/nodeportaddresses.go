package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// everywhere are the ranges that hold all addresses.
var everywhere = []string{"0.0.0.0/0", "::/0"}

// nodePortsOn adds a node that serves node ports on the addresses that choose returns. It demands that the node does so
// on its two addresses as said.
func nodePortsOn(ctx context.Context, net *check.Network, onPrimary, onSecondary bool, choose func(primary, secondary netip.Addr) []string) {
	ginkgo.GinkgoHelper()
	node := net.AddNode(ctx, candidate.ProxyConfiguration{Absent: true})
	primary, secondary := primaryOf(net, node), check.AddressOf(node.SecondaryAddresses, net.PrimaryFamily())
	if !secondary.IsValid() {
		check.LeaveUnjudged("nodes with two addresses", "nodes have one address only")
	}
	check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{NodePortAddresses: choose(primary, secondary)}))
	app := net.Name("app")
	pods := net.Backends(ctx, app, net.Node(0), net.Node(1))
	svc := net.Expose(ctx, exposed(app, onNodePorts()))
	want := func(served bool) check.Want {
		if served {
			return check.AnsweredByEach(pods...)
		}
		return turnedAway()
	}
	net.Expect(ctx, "the Service is created", slices.Concat(
		eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredByEach(pods...), check.Host(node.Name)),
		nodePortsAt(primary, node.Name, svc, want(onPrimary)),
		nodePortsAt(secondary, node.Name, svc, want(onSecondary)))...)
}

var _ = ginkgo.Describe("nodePortAddresses", func() {
	check.It(spec.ProxyHealthCheckNodePortAddresses, "serve health check node ports in the ranges that they name and nowhere else",
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Absent: true})
			primary, secondary := primaryOf(net, node), check.AddressOf(node.SecondaryAddresses, net.PrimaryFamily())
			if !secondary.IsValid() {
				check.LeaveUnjudged("nodes with two addresses", "nodes have one address only")
			}
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{NodePortAddresses: []string{alone(secondary).String()}}))
			net.Backends(ctx, "app", net.Node(0), node.Name)
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal))
			at := func(a netip.Addr, want check.Want) check.Case {
				return check.Case{From: check.Outside(node.Name), To: netip.AddrPortFrom(a, uint16(svc.Spec.HealthCheckNodePort)), Path: candidate.HealthCheckPath, Want: want}
			}
			net.Expect(ctx, "the Service is created", at(secondary, health(1)), at(primary, noHealth(svc)))
		})

	check.It(spec.ProxyNodePortAddresses, "serve node ports in the ranges that they name and nowhere else", check.OwnNodes(2), check.Claiming(spec.FeatureNodePort),
		func(ctx context.Context, net *check.Network) {
			nodePortsOn(ctx, net, false, true, func(_, secondary netip.Addr) []string { return []string{alone(secondary).String()} })
			nodePortsOn(ctx, net, true, true, func(primary, secondary netip.Addr) []string {
				return []string{alone(primary).String(), alone(secondary).String()}
			})
		})

	check.It(spec.ProxyNodePortAddresses, "serve node ports on every address where they name all", check.Claiming(spec.FeatureNodePort),
		func(ctx context.Context, net *check.Network) {
			nodePortsOn(ctx, net, true, true, func(_, _ netip.Addr) []string { return everywhere })
		})

	check.It(spec.ProxyNodePortAddresses, "serve node ports on the primary address alone where they say so", check.Claiming(spec.FeatureNodePort), check.Versions(">=1.30"),
		func(ctx context.Context, net *check.Network) {
			nodePortsOn(ctx, net, true, false, func(_, _ netip.Addr) []string { return []string{"primary"} })
		})
})
