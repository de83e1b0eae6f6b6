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

// listening starts a pod on each of the nodes that answers TCP and UDP on each of the port numbers.
func listening(ctx context.Context, net *check.Network, app string, numbers []int, nodes ...string) []candidate.Pod {
	ginkgo.GinkgoHelper()
	return listeningOn(ctx, net, candidate.Pod{Labels: map[string]string{"app": app}}, numbers, nodes...)
}

// listeningOn is listening with pods like the one that is given. They are named by their label.
func listeningOn(ctx context.Context, net *check.Network, like candidate.Pod, numbers []int, nodes ...string) []candidate.Pod {
	ginkgo.GinkgoHelper()
	var ports []candidate.PodPort
	for _, n := range numbers {
		ports = append(ports, candidate.PodPort{Protocol: corev1.ProtocolTCP, Number: n}, candidate.PodPort{Protocol: corev1.ProtocolUDP, Number: n})
	}
	pods := make([]candidate.Pod, len(nodes))
	check.Concurrently(len(nodes), func(i int) {
		pod := like
		pod.PodName, pod.Node, pod.Ports = candidate.PodName{Name: net.Name(like.Labels["app"])}, nodes[i], ports
		pods[i] = net.Start(ctx, pod)
	})
	return pods
}

// onPort demands an answer of one of the pods on the port.
func onPort(port int, pods ...candidate.Pod) check.Want {
	return check.AllOf(check.AnsweredBy(pods...), check.OnPort(port))
}

var _ = ginkgo.Describe("the ports of a Service", func() {
	check.It(spec.ProxyCapturesPort, "are the only ones of its cluster IP that lead to its backends",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			callers := []candidate.Client{clients[0], clients[2], check.Host(net.Node(1))}
			cases := clusterIPCalls(svc, check.AnsweredByEach(pods...), callers...)
			none := net.NoEndpoints(net.Declared(spec.UnusedPort))
			// The port next to it, that of the backends, and a node port, which is one of the addresses of nodes.
			for _, port := range []int32{exposedPort + 1, check.BackendPort, svc.Spec.Ports[0].NodePort} {
				cases = append(cases, once(eachWay(check.ServiceAddress(svc, port), none, callers...))...)
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyCapturesPort, "do not lead to programs of the nodes at the number where these listen",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			programs, number := hostBackends(ctx, net, "program")
			svc := net.Expose(ctx, exposed("app"))
			inside := append(clients, hosts(net)...)
			net.Expect(ctx, "programs listen on the nodes", append(programsAnswer(net, programs, number, clients), toClusterIP(svc, check.AnsweredBy(pods...), inside...)...)...)
			net.Expect(ctx, "the Service is created", once(eachWay(check.ServiceAddress(svc, int32(number)), check.NotBy(append(programs, pods...)...), inside...))...)
		})

	check.It(spec.ProxyCapturesPort, "are served for one protocol only if they name one", check.Claiming(spec.FeatureUDP),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			callers := []candidate.Client{clients[0], clients[2], check.Host(net.Node(1))}
			none := net.NoEndpoints(net.Declared(spec.UnusedPort))
			var cases []check.Case
			for i, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
				svc := net.Expose(ctx, check.Service(net.Name("app"), selecting("app"), check.WithPorts(check.Port("", p, exposedPort, check.BackendPort))))
				for _, c := range callers {
					cases = append(cases,
						check.Case{From: c, To: check.ServiceAddress(svc, exposedPort), Protocol: p, Want: check.AnsweredBy(pods...)},
						check.Case{From: c, To: check.ServiceAddress(svc, exposedPort), Protocol: inTurn(i + 1), Want: none, Shots: 1})
				}
			}
			net.Expect(ctx, "Services with one port are created", cases...)
		})

	check.It(spec.ProxyCapturesProtocol, "may have one number and different protocols, each with a target of its own",
		func(ctx context.Context, net *check.Network) {
			pods := listening(ctx, net, "app", []int{check.BackendPort, 9090}, net.Node(0), net.Node(1))
			clients := clientPods(ctx, net)
			external := net.ExternalAddress()
			svc := net.Expose(ctx, check.Service("app", onNodePorts(), onExternalIPs(external), check.WithPorts(
				check.Port("tcp", corev1.ProtocolTCP, 53, check.BackendPort), check.Port("udp", corev1.ProtocolUDP, 53, 9090))))
			targets := []int{check.BackendPort, 9090}
			var cases []check.Case
			for k := range 2 {
				call := func(from candidate.Client, to netip.AddrPort) {
					cases = append(cases, check.Case{From: from, To: to, Protocol: inTurn(k), Want: onPort(targets[k], pods...)})
				}
				for _, c := range append(slices.Clone(clients), check.Host(net.Node(2))) {
					call(c, check.ServiceAddress(svc, 53))
				}
				call(check.Outside(net.Node(0)), onNodePort(net, 0, svc, k))
				call(check.Outside(net.Node(2)), onNodePort(net, 2, svc, k))
				call(check.Outside(net.Node(2)), netip.AddrPortFrom(external, 53))
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyPortsIndependent, "lead each to a target of its own",
		func(ctx context.Context, net *check.Network) {
			targets := []int{check.BackendPort, 9090, 9091, 9092}
			pods := listening(ctx, net, "app", targets, net.Node(0), net.Node(1))
			clients := clientPods(ctx, net)
			var ports []corev1.ServicePort
			for i, t := range targets {
				ports = append(ports, check.Port(fmt.Sprintf("p%d", i), inTurn(i), int32(80+i), t))
			}
			svc := net.Expose(ctx, check.Service("app", check.WithPorts(ports...)))
			var cases []check.Case
			for i, t := range targets {
				for _, c := range append(slices.Clone(clients), check.Host(net.Node(2))) {
					cases = append(cases, check.Case{From: c, To: check.ServiceAddress(svc, int32(80+i)), Protocol: inTurn(i), Want: onPort(t, pods...)})
				}
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyTargetPortNumber, "lead to another number, and end, when the ports change", check.Also(spec.ProxyCapturesPort),
		func(ctx context.Context, net *check.Network) {
			targets := []int{check.BackendPort, 9090, 9091, 9092}
			pods := listening(ctx, net, "app", targets, net.Node(0), net.Node(1))
			clients := clientPods(ctx, net)
			var ports []corev1.ServicePort
			var before []check.Case
			for i, t := range targets {
				ports = append(ports, check.Port(fmt.Sprintf("p%d", i), inTurn(i), int32(80+i), t))
			}
			svc := net.Expose(ctx, check.Service("app", onNodePorts(), check.WithPorts(ports...)))
			for i, t := range targets {
				before = append(before, check.Case{From: clients[0], To: check.ServiceAddress(svc, int32(80+i)), Protocol: inTurn(i), Want: onPort(t, pods...)})
			}
			check.Deciding(func() { net.Expect(ctx, "the Service is created", before...) }, spec.ProxyTargetPortNumber)
			// Two ports less, and another target for one of those that stay.
			svc = net.Change(ctx, svc.Name, fmt.Sprintf(`{"spec":{"ports":[{"name":"p0","port":80,"targetPort":9092,"nodePort":%d},`+
				`{"name":"p1","protocol":"UDP","port":81,"targetPort":9090,"nodePort":%d}]}}`, svc.Spec.Ports[0].NodePort, svc.Spec.Ports[1].NodePort))
			check.Deciding(func() {
				net.Expect(ctx, "two ports are removed and one gets another target",
					check.Case{From: clients[0], To: check.ServiceAddress(svc, 80), Want: onPort(9092, pods...)},
					check.Case{From: clients[0], To: check.ServiceAddress(svc, 81), Protocol: corev1.ProtocolUDP, Want: onPort(9090, pods...)},
					check.Case{From: check.Outside(net.Node(2)), To: onNodePort(net, 2, svc, 0), Want: onPort(9092, pods...)})
			}, spec.ProxyTargetPortNumber)
			check.Deciding(func() {
				net.Expect(ctx, "two ports are removed",
					check.Case{From: clients[0], To: check.ServiceAddress(svc, 82), Want: check.NotBy(pods...), Shots: 1},
					check.Case{From: clients[2], To: check.ServiceAddress(svc, 83), Protocol: corev1.ProtocolUDP, Want: check.NotBy(pods...), Shots: 1})
			}, spec.ProxyCapturesPort)
		})

	check.It(spec.ProxyTargetPortNumber, "lead to the number of targetPort, or to their own where there is none",
		func(ctx context.Context, net *check.Network) {
			pods := listening(ctx, net, "app", []int{80, check.BackendPort, 9090}, net.Node(0), net.Node(1))
			clients := append(clientPods(ctx, net), check.Host(net.Node(0)))
			same := net.Expose(ctx, check.Service("same", selecting("app"), check.WithPorts(check.Port("", corev1.ProtocolTCP, 9090, 0))))
			other := net.Expose(ctx, check.Service("other", selecting("app"), check.WithPorts(check.Port("", corev1.ProtocolTCP, 80, check.BackendPort))))
			var cases, changed []check.Case
			for _, c := range clients {
				cases = append(cases,
					check.Case{From: c, To: check.ServiceAddress(same, 9090), Want: onPort(9090, pods...)},
					check.Case{From: c, To: check.ServiceAddress(other, 80), Want: onPort(check.BackendPort, pods...)})
				changed = append(changed, check.Case{From: c, To: check.ServiceAddress(other, 80), Want: onPort(9090, pods...)})
			}
			net.Expect(ctx, "Services are created", cases...)
			net.Change(ctx, other.Name, `{"spec":{"ports":[{"port":80,"targetPort":9090}]}}`)
			net.Expect(ctx, "targetPort is changed", changed...)
		})

	check.It(spec.ProxyAppProtocolForwarded, "are forwarded whatever their appProtocol says",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			var ports []corev1.ServicePort
			for i, protocol := range []string{"http", "https", "kubernetes.io/h2c", "kubernetes.io/ws", "conformance.example.com/unknown", "no-such-protocol"} {
				p := check.Port(fmt.Sprintf("p%d", i), corev1.ProtocolTCP, int32(80+i), check.BackendPort)
				p.AppProtocol = &protocol
				ports = append(ports, p)
			}
			svc := net.Expose(ctx, check.Service("app", onNodePorts(), check.WithPorts(ports...)))
			var cases []check.Case
			for i, p := range ports {
				for _, c := range []candidate.Client{clients[0], clients[2], check.Host(net.Node(0))} {
					cases = append(cases, check.Case{From: c, To: check.ServiceAddress(svc, p.Port), Want: check.AnsweredBy(pods...)})
				}
				cases = append(cases, check.Case{From: check.Outside(net.Node(2)), To: onNodePort(net, 2, svc, i), Want: check.AnsweredBy(pods...)})
			}
			net.Expect(ctx, "the Service is created", cases...)
		})
})
