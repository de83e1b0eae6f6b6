package proxy

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// equalPort is a port that programs of both sides use, as those of SIP do. Clients need no right to have it.
const equalPort = 5060

var _ = ginkgo.Describe("a client whose own port is that of the Service", func() {
	check.It(spec.ProxyRedirectTransparent, "is answered through every address",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			ports := check.WithPorts(check.Port("tcp", corev1.ProtocolTCP, equalPort, check.BackendPort), check.Port("udp", corev1.ProtocolUDP, equalPort, check.BackendPort))
			svc, addresses := exposeOutside(ctx, net, "app", ports)
			want := check.AnsweredBy(pods...)
			cases := eachWay(check.ServiceAddress(svc, equalPort), want, clients...)
			for i, from := range outsiders(net) {
				for k, a := range addresses {
					from.Address = k // two connections of one address and port may meet at a backend: that is another check
					cases = append(cases, eachWay(netip.AddrPortFrom(a, equalPort), want, from)...)
				}
				from.Address = 0
				for k := range 2 {
					cases = append(cases, check.Case{From: from, To: onNodePort(net, i, svc, k), Protocol: inTurn(k), Want: want})
				}
			}
			// A kernel remembers an attempt from before the Service was served, and lets others from that port go the same way.
			net.Expect(ctx, "the Service is created", cases...)
			equal := slices.Clone(cases)
			for i := range equal {
				equal[i].SourcePort, equal[i].Connection = int(equal[i].To.Port()), "equal ports to "+equal[i].To.String()
			}
			net.Expect(ctx, "clients send from the port that they send to", equal...)
		})
})
