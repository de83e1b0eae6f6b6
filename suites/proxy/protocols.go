package proxy

import (
	"context"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// forwards demands that a port of the protocol is forwarded, for every kind of client.
func forwards(ctx context.Context, net *check.Network, protocol corev1.Protocol) {
	ginkgo.GinkgoHelper()
	// A port for the protocol, and one that the controls of the prober know.
	ports := []candidate.PodPort{{Protocol: protocol, Number: 9090}, {Protocol: corev1.ProtocolTCP, Number: check.BackendPort}}
	pods, clients := make([]candidate.Pod, 2), []candidate.Client(nil)
	check.Concurrently(3, func(i int) {
		if i == 2 {
			clients = clientPods(ctx, net)
			return
		}
		pods[i] = net.Start(ctx, candidate.Pod{Node: net.Node(i), Labels: map[string]string{"app": "app"}, Ports: ports})
	})
	options := []check.ServiceOption{check.WithPorts(check.Port("", protocol, exposedPort, 9090))}
	var external netip.Addr
	if protocol == corev1.ProtocolSCTP { // the others are sent to node ports and external IPs by the checks of these
		external = net.ExternalAddress()
		options = append(options, onNodePorts(), onExternalIPs(external))
	}
	svc := net.Expose(ctx, check.Service("app", options...))
	var cases []check.Case
	call := func(to netip.AddrPort, want check.Want, clients ...candidate.Client) {
		for _, c := range clients {
			cases = append(cases, check.Case{From: c, To: to, Protocol: protocol, Want: want})
		}
	}
	call(check.ServiceAddress(svc, exposedPort), check.AnsweredBy(pods...), append(clients, check.Host(net.Node(0)), check.Host(net.Node(2)))...)
	if external.IsValid() {
		for i := range 3 {
			call(onNode(net, i, svc), check.AnsweredBy(pods...), check.Outside(net.Node(i)), clients[2])
		}
		call(exposedAt(external), check.AnsweredBy(pods...), append(outsiders(net), clients[0])...)
	}
	net.Expect(ctx, "the Service is created", cases...)
}

var _ = ginkgo.Describe("a port of a Service", func() {
	check.It(spec.ProxyTCPForwarded, "forwards TCP, also on connections that stay open", func(ctx context.Context, net *check.Network) {
		forwards(ctx, net, corev1.ProtocolTCP)
		pod := net.Backends(ctx, "kept", net.Node(1))[0]
		svc := net.Expose(ctx, exposed("kept", onNodePorts()))
		kept := []check.Case{
			{From: check.Host(net.Node(0)), To: check.ServiceAddress(svc, exposedPort), Connection: "kept", Want: check.AnsweredBy(pod)},
			{From: check.Outside(net.Node(2)), To: onNode(net, 2, svc), Connection: "kept", Want: check.AnsweredBy(pod)},
		}
		net.Expect(ctx, "a second Service is created", kept...)
		net.Expect(ctx, "a third Service is created", append(kept, caughtUp(ctx, net, pod, check.Host(net.Node(0)))...)...)
	})
	check.It(spec.ProxyUDPForwarded, "forwards UDP", func(ctx context.Context, net *check.Network) { forwards(ctx, net, corev1.ProtocolUDP) })
	check.It(spec.ProxySCTPForwarded, "forwards SCTP", func(ctx context.Context, net *check.Network) { forwards(ctx, net, corev1.ProtocolSCTP) })
})
