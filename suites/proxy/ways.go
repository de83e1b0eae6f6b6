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

// The ports of backends in the host network of nodes, where others may listen too: above those of the agents of tier cluster, and below those of Services.
const firstHostPort, hostPorts = 29000, 1000

// hostBackend starts a backend in the host network of a node, on a number that it returns.
func hostBackend(ctx context.Context, net *check.Network, app, node string) (candidate.Pod, int) {
	ginkgo.GinkgoHelper()
	number := firstHostPort + net.Rand().IntN(hostPorts)
	return net.Start(ctx, candidate.Pod{
		PodName: candidate.PodName{Name: net.Name(app)}, Node: node, Labels: map[string]string{"app": app}, HostNetwork: true,
		Ports: []candidate.PodPort{{Name: "tcp", Protocol: corev1.ProtocolTCP, Number: number}, {Name: "udp", Protocol: corev1.ProtocolUDP, Number: number}},
	}), number
}

// hostBackends starts a program in the host network of each node, all on one number that it returns.
func hostBackends(ctx context.Context, net *check.Network, app string) ([]candidate.Pod, int) {
	ginkgo.GinkgoHelper()
	number := firstHostPort + net.Rand().IntN(hostPorts)
	return listeningOn(ctx, net, candidate.Pod{Labels: map[string]string{"app": app}, HostNetwork: true}, []int{number}, net.Node(0), net.Node(1), net.Node(2)), number
}

// programsAnswer are calls of pods to the programs of hostBackends at the address of each node.
func programsAnswer(net *check.Network, programs []candidate.Pod, number int, clients []candidate.Client) (cases []check.Case) {
	for i, p := range programs {
		cases = append(cases, eachWay(netip.AddrPortFrom(nodeAddress(net, i), uint16(number)), check.AnsweredBy(p), clients[(i+1)%3])...)
	}
	return cases
}

// everyWay are calls of every client to every address of a Service that exposeOutside has made: pods and hosts of three nodes to all of them, clients outside
// to those for them.
func everyWay(net *check.Network, svc *corev1.Service, addresses []netip.Addr, want check.Want, clients []candidate.Client) []check.Case {
	inside := append(slices.Clone(clients), hosts(net)...)
	cases := toClusterIP(svc, want, inside...)
	for _, c := range append(inside, outsiders(net)...) {
		for i := range 3 {
			for k := range 2 {
				cases = append(cases, check.Case{From: c, To: onNodePort(net, i, svc, k), Protocol: inTurn(k), Want: want})
			}
		}
		cases = append(cases, calls(c, addresses, want)...)
	}
	return cases
}

var _ = ginkgo.Describe("every client", func() {
	check.It(spec.ProxyEveryWay, "reaches a pod by every address", check.Long(), func(ctx context.Context, net *check.Network) {
		pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
		svc, addresses := exposeOutside(ctx, net, "app")
		net.Expect(ctx, "a Service with one endpoint is created", everyWay(net, svc, addresses, check.AnsweredBy(pods...), clients)...)
	})

	check.It(spec.ProxyEveryWay, "reaches a program in the host network of a node by every address", check.Long(), func(ctx context.Context, net *check.Network) {
		program, number := hostBackend(ctx, net, "program", net.Node(1))
		clients := clientPods(ctx, net)
		addressed := check.WithPorts(check.Port("tcp", corev1.ProtocolTCP, exposedPort, number), check.Port("udp", corev1.ProtocolUDP, exposedPort, number))
		svc, addresses := exposeOutside(ctx, net, "program", addressed)
		net.Expect(ctx, "a Service with an endpoint on a node is created", everyWay(net, svc, addresses, check.AnsweredBy(program), clients)...)
	})

	check.It(spec.ProxyEveryWayLocal, "inside reaches external addresses, and everybody the node that has the endpoint", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
			svc, addresses := exposeOutside(ctx, net, "app", externalLocal)
			want := check.AnsweredBy(pods...)
			inside := append(slices.Clone(clients), hosts(net)...)
			cases := append(toClusterIP(svc, want, inside...), toOutside(addresses, want, inside...)...)
			cases = append(cases, calls(check.Outside(net.Node(0)), addresses, want)...)
			for _, c := range append(inside, outsiders(net)...) {
				for k := range 2 {
					cases = append(cases, check.Case{From: c, To: onNodePort(net, 0, svc, k), Protocol: inTurn(k), Want: want})
				}
			}
			net.Expect(ctx, "a Service of policy Local with one endpoint is created", cases...)
		})
})
