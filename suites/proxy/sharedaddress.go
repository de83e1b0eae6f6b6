package proxy

import (
	"context"
	"encoding/json"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// secondPort is that of the other Service of an address that two Services have.
const secondPort = exposedPort + 1

// beside is a Service like exposed, on secondPort.
func beside(name string, options ...check.ServiceOption) *corev1.Service {
	return check.Service(name, append([]check.ServiceOption{check.WithPorts(
		check.Port("tcp", corev1.ProtocolTCP, secondPort, check.BackendPort), check.Port("udp", corev1.ProtocolUDP, secondPort, check.BackendPort))}, options...)...)
}

var _ = ginkgo.Describe("two Services on different ports of one external IP", func() {
	check.It(spec.ProxyExternalIPShared, "have policies and backends of their own, and the second outlives the first", check.Long(),
		func(ctx context.Context, net *check.Network) {
			one := net.Backends(ctx, "one", net.Node(0), net.Node(1))
			two := net.Backends(ctx, "two", net.Node(0), net.Node(1))
			shared := net.ExternalAddress()
			net.Expose(ctx, exposed("one", onNodePorts(), onExternalIPs(shared), externalLocal, sticky()))
			second := net.Expose(ctx, beside("two", onNodePorts(), onExternalIPs(shared)))
			ofSecond := func(want check.Want) []check.Case {
				return eachWay(netip.AddrPortFrom(shared, secondPort), want, append(outsiders(net), net.ClientPod(ctx, net.Node(2)))...)
			}
			net.Expect(ctx, "one Service has policy Local and affinity", slices.Concat(
				eachWay(exposedAt(shared), onlyBy(2, one[0]), check.Outside(net.Node(0))),
				eachWay(exposedAt(shared), onlyBy(2, one[1]), check.Outside(net.Node(1))),
				ofSecond(check.AnsweredByEach(two...)))...)
			net.Change(ctx, second.Name, `{"spec":{"externalTrafficPolicy":"Local"}}`)
			net.Change(ctx, "one", `{"spec":{"externalTrafficPolicy":"Cluster","sessionAffinity":"None"}}`)
			net.Expect(ctx, "they exchange their policies", slices.Concat(
				eachWay(exposedAt(shared), check.AnsweredByEach(one...), outsiders(net)...),
				eachWay(netip.AddrPortFrom(shared, secondPort), onlyBy(2, two[0]), check.Outside(net.Node(0))))...)
			net.Change(ctx, second.Name, `{"spec":{"externalTrafficPolicy":"Cluster"}}`)
			net.Unexpose(ctx, "one")
			net.Expect(ctx, "one of them is deleted", append(ofSecond(check.AnsweredByEach(two...)),
				once(eachWay(exposedAt(shared), check.NotBy(slices.Concat(one, two)...), outsiders(net)...))...)...)
		})
})

var _ = ginkgo.Describe("two Services on different ports of one load-balancer address", func() {
	check.It(spec.ProxyLoadBalancerAddressShared, "have source ranges and policies of their own, and the second outlives the first", check.Long(),
		func(ctx context.Context, net *check.Network) {
			one := net.Backends(ctx, "one", net.Node(0), net.Node(1))
			two := net.Backends(ctx, "two", net.Node(0), net.Node(1))
			clients, own := neighbours(ctx, net, net.Node(0), one[0])
			shared := net.ExternalAddress()
			first := net.Expose(ctx, exposed("one", balanced(), sourceRanges(alone(own[0]))))
			second := net.Expose(ctx, beside("two", balanced(), externalLocal))
			announce(ctx, net, first, shared)
			announce(ctx, net, second, shared)
			at := func(port uint16, want check.Want, from ...candidate.Client) []check.Case {
				return eachWay(netip.AddrPortFrom(shared, port), want, from...)
			}
			net.Expect(ctx, "one Service has source ranges, and the other has policy Local", slices.Concat(
				at(exposedPort, check.AnsweredByEach(one...), clients[0]),
				once(at(exposedPort, turnedAway(), clients[1])),
				at(secondPort, onlyBy(2, two[0]), clients[:]...))...)
			net.Unexpose(ctx, first.Name)
			net.Expect(ctx, "the Service with source ranges is deleted", append(
				at(secondPort, onlyBy(2, two[0]), clients[:]...),
				once(at(exposedPort, check.NotBy(slices.Concat(one, two)...), clients[:]...))...)...)
		})
})

var _ = ginkgo.Describe("two Services of one load-balancer address", func() {
	check.It(spec.ProxyLoadBalancerAddressShared, "are each served at its port when they have swapped them", check.Long(),
		func(ctx context.Context, net *check.Network) {
			one := net.Backends(ctx, "one", net.Node(0), net.Node(1))
			two := net.Backends(ctx, "two", net.Node(0), net.Node(1))
			shared := net.ExternalAddress()
			first, second := net.Expose(ctx, exposed("one", balanced())), net.Expose(ctx, beside("two", balanced()))
			announce(ctx, net, first, shared)
			announce(ctx, net, second, shared)
			clients := append(outsiders(net), net.ClientPod(ctx, net.Node(2)))
			at := func(port uint16, pods []candidate.Pod) []check.Case {
				return eachWay(netip.AddrPortFrom(shared, port), check.AnsweredByEach(pods...), clients...)
			}
			net.Expect(ctx, "they get the address", append(at(exposedPort, one), at(secondPort, two)...)...)
			moved := func(svc *corev1.Service, port int32) {
				ginkgo.GinkgoHelper()
				ports := slices.Clone(svc.Spec.Ports)
				for i := range ports {
					ports[i].Port = port
				}
				text, err := json.Marshal(ports)
				check.Must(err)
				net.Change(ctx, svc.Name, `{"spec":{"ports":`+string(text)+`}}`)
			}
			moved(first, secondPort)
			moved(second, exposedPort)
			net.Expect(ctx, "they swap their ports", append(at(secondPort, one), at(exposedPort, two)...)...)
		})

	check.It(spec.ProxyLoadBalancerAddressShared, "are both served by a proxy that is started anew", check.Needs(spec.OwnNodes), check.Long(),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			one, client := net.Backends(ctx, "one", net.Node(0), node.Name), net.ClientPod(ctx, node.Name)
			two := net.Backends(ctx, "two", net.Node(0), net.Node(1))
			shared := net.ExternalAddress()
			first, second := net.Expose(ctx, exposed("one", balanced())), net.Expose(ctx, beside("two", balanced()))
			announce(ctx, net, first, shared)
			announce(ctx, net, second, shared)
			all := func() []check.Case {
				return append(eachWay(exposedAt(shared), check.AnsweredByEach(one...), client, check.Outside(node.Name)),
					eachWay(netip.AddrPortFrom(shared, secondPort), check.AnsweredByEach(two...), client, check.Outside(node.Name))...)
			}
			net.Expect(ctx, "they get the address", all()...)
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
			later := net.Expose(ctx, exposed("later", selecting("one")))
			net.Expect(ctx, "the proxy is started anew", append(toClusterIP(later, check.AnsweredByEach(one...), client), all()...)...)
		})

	check.It(spec.ProxyLoadBalancerAddressShared, "do not go with a third one that is deleted while they come", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			old := net.Expose(ctx, exposed("old", balanced(), selecting("app")))
			announce(ctx, net, old, net.ExternalAddress())
			clients := append(outsiders(net), net.ClientPod(ctx, net.Node(2)))
			shared := net.ExternalAddress()
			first, second := net.Expose(ctx, exposed("one", balanced(), selecting("app"))), net.Expose(ctx, beside("two", balanced(), selecting("app")))
			announce(ctx, net, first, shared)
			announce(ctx, net, second, shared)
			net.Unexpose(ctx, old.Name)
			each := check.AnsweredByEach(pods...)
			net.Expect(ctx, "a Service is deleted while others come", append(eachWay(exposedAt(shared), each, clients...), eachWay(netip.AddrPortFrom(shared, secondPort), each, clients...)...)...)
		})
})

var _ = ginkgo.Describe("two Services on one port number of one load-balancer address", func() {
	check.It(spec.ProxyLoadBalancerAddressShared, "are served if their protocols differ, and the second outlives the first", check.Claiming(spec.FeatureUDP),
		func(ctx context.Context, net *check.Network) {
			one, clients := backendsAndClients(ctx, net, "one", net.Node(0), net.Node(1))
			two := net.Backends(ctx, "two", net.Node(0), net.Node(1))
			shared := net.ExternalAddress()
			first := net.Expose(ctx, check.Service("one", balanced(), check.WithPorts(check.Port("tcp", corev1.ProtocolTCP, exposedPort, check.BackendPort))))
			second := net.Expose(ctx, check.Service("two", balanced(), check.WithPorts(check.Port("udp", corev1.ProtocolUDP, exposedPort, check.BackendPort))))
			announce(ctx, net, first, shared)
			announce(ctx, net, second, shared)
			at := func(protocol corev1.Protocol, want check.Want) []check.Case {
				return fromEachOf(append(outsiders(net), clients[2]), exposedAt(shared), protocol, want)
			}
			net.Expect(ctx, "they get the address", append(at(corev1.ProtocolTCP, check.AnsweredByEach(one...)), at(corev1.ProtocolUDP, check.AnsweredByEach(two...))...)...)
			net.Unexpose(ctx, first.Name)
			net.Expect(ctx, "the one with TCP is deleted", append(
				at(corev1.ProtocolUDP, check.AnsweredByEach(two...)), once(at(corev1.ProtocolTCP, check.NotBy(slices.Concat(one, two)...)))...)...)
		})
})

// fromEachOf sends from each of the clients to one destination, with one demand.
func fromEachOf(clients []candidate.Client, to netip.AddrPort, protocol corev1.Protocol, want check.Want) []check.Case {
	cases := fromEach(clients, to, protocol)
	for i := range cases {
		cases[i].Want = want
	}
	return cases
}

// otherFamilyThan is an address for documentation, of the family that the other address is not of. Nobody sends there.
func otherFamilyThan(a netip.Addr) netip.Addr {
	if a.Is6() {
		return netip.MustParseAddr("198.51.100.77")
	}
	return netip.MustParseAddr("2001:db8:7::1")
}

var _ = ginkgo.Describe("an ingress address of another family", func() {
	check.It(spec.ProxyLoadBalancerOtherFamily, "leaves the Service and others to their own addresses, and nodes to follow changes",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			ingress := net.ExternalAddress()
			svc := net.Expose(ctx, exposed("app", balanced()))
			announce(ctx, net, svc, otherFamilyThan(ingress), ingress)
			served := func(svc *corev1.Service) []check.Case {
				return toClusterIP(svc, check.AnsweredByEach(pods...), append(clients, check.Host(net.Node(2)))...)
			}
			net.Expect(ctx, "the Service gets an ingress address of another family", append(served(svc), eachWay(exposedAt(ingress), check.AnsweredByEach(pods...), outsiders(net)...)...)...)
			later := net.Expose(ctx, exposed("later", selecting("app")))
			net.Expect(ctx, "another Service is created", served(later)...)
			announce(ctx, net, svc, otherFamilyThan(ingress))
			net.Expect(ctx, "no other ingress address is left", append(served(svc), once(eachWay(exposedAt(ingress), check.NotBy(pods...), outsiders(net)...))...)...)
		})
})

var _ = ginkgo.Describe("an external IP of another family", func() {
	check.It(spec.ProxyExternalIPOtherFamily, "leaves the Service and others to their own addresses",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			external := net.ExternalAddress()
			other := otherFamilyThan(external)
			svc := net.Expose(ctx, exposed("app", onNodePorts(), onExternalIPs(other, external)))
			paths := func(svc *corev1.Service) []check.Case {
				return slices.Concat(
					toClusterIP(svc, check.AnsweredByEach(pods...), append(clients, check.Host(net.Node(2)))...),
					toNodePorts(net, svc, check.AnsweredByEach(pods...), check.Outside(net.Node(1))))
			}
			net.Expect(ctx, "a Service with an external IP of another family is created",
				append(paths(svc), eachWay(exposedAt(external), check.AnsweredByEach(pods...), outsiders(net)...)...)...)
			later := net.Expose(ctx, exposed("later", selecting("app"), onNodePorts()))
			net.Expect(ctx, "another Service is created", paths(later)...)
			net.Change(ctx, svc.Name, `{"spec":{"externalIPs":["`+other.String()+`"]}}`)
			net.Expect(ctx, "no other external IP is left", append(paths(svc),
				once(eachWay(exposedAt(external), check.NotBy(pods...), outsiders(net)...))...)...)
		})
})

var _ = ginkgo.Describe("an external IP that is an address of a node", func() {
	check.It(spec.ProxyExternalIPOfNode, "takes the ports of its Service and leaves the others", check.Claiming(spec.FeatureNodePort), check.Long(),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			pods, client := net.Backends(ctx, "app", net.Node(0), node.Name), net.ClientPod(ctx, node.Name)
			others := net.Backends(ctx, "other", net.Node(0), net.Node(1))
			program, number := hostBackend(ctx, net, "program", node.Name)
			address := primaryOf(net, node)
			beside := net.Expose(ctx, exposed("other", onNodePorts()))
			each, ofOther := check.AnsweredByEach(pods...), check.AnsweredByEach(others...)
			// From the node itself, its pods, another node, its pods, and outside.
			near := []candidate.Client{client, check.Host(node.Name), check.Host(net.Node(0)), net.ClientPod(ctx, net.Node(1)), check.Outside(node.Name)}
			besides := func() []check.Case {
				var cases []check.Case
				for _, c := range near {
					for k := range 2 {
						to := netip.AddrPortFrom(address, uint16(beside.Spec.Ports[k].NodePort))
						cases = append(cases, check.Case{From: c, To: to, Protocol: inTurn(k), Want: ofOther})
					}
				}
				return append(cases, eachWay(netip.AddrPortFrom(address, uint16(number)), check.AnsweredBy(program), near...)...)
			}
			net.Expect(ctx, "a Service with node ports is created, and a program listens on the node", besides()...)
			svc := net.Expose(ctx, exposed("app", onExternalIPs(address)))
			net.Expect(ctx, "a Service has the address of the node as external IP", append(besides(), eachWay(exposedAt(address), each, near...)...)...)
			net.Change(ctx, svc.Name, `{"spec":{"externalIPs":null}}`)
			net.Expect(ctx, "it gives the address up", append(besides(), once(eachWay(exposedAt(address), check.NotBy(pods...), near...))...)...)
		})
})
