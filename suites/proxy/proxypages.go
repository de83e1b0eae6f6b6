package proxy

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
)

// runsIn is the question to the proxy of a node which mode it runs in, and the demand that it is this one.
func runsIn(node, mode string) check.Case {
	return check.Case{From: check.Host(node), To: onLoopback(candidate.ProxyMetricsPort), Path: "/proxyMode", Want: check.Want{
		Text: "the mode " + mode, Shots: 1,
		Met: func(os []candidate.Outcome) bool {
			return !slices.ContainsFunc(os, func(o candidate.Outcome) bool { return o.HTTP == nil || strings.TrimSpace(o.HTTP.Body) != mode })
		},
	}}
}

// healthOf asks the proxy of a node whether it is healthy and whether it is alive, as a load balancer does. It has the
// codes that are demanded.
func healthOf(net *check.Network, node candidate.Node, healthz, livez int) []check.Case {
	to := netip.AddrPortFrom(primaryOf(net, node), candidate.ProxyHealthPort)
	return []check.Case{
		{From: check.Outside(net.Node(0)), To: to, Path: "/healthz", Want: check.HTTPStatus(healthz)},
		{From: check.Outside(net.Node(0)), To: to, Path: "/livez", Want: check.HTTPStatus(livez)},
	}
}

// primaryOf is the address of a node in the primary family.
func primaryOf(net *check.Network, node candidate.Node) netip.Addr {
	return check.AddressOf(node.Addresses, net.PrimaryFamily())
}

// nodePortsAt are calls to both node ports of an exposed Service at an address. The client is outside of the cluster,
// and the node is its gateway.
func nodePortsAt(a netip.Addr, node string, svc *corev1.Service, want check.Want) []check.Case {
	return []check.Case{
		{From: check.Outside(node), To: netip.AddrPortFrom(a, uint16(svc.Spec.Ports[0].NodePort)), Want: want},
		{From: check.Outside(node), To: netip.AddrPortFrom(a, uint16(svc.Spec.Ports[1].NodePort)), Protocol: corev1.ProtocolUDP, Want: want},
	}
}
