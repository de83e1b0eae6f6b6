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

var _ = ginkgo.Describe("rules of other programs on a node", func() {
	check.It(spec.ProxyNeighboursUntouched, "stay in force, and the proxy follows changes beside them", check.Long(),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			open := candidate.NeighbourPorts[1] + 1
			var ports []candidate.PodPort
			for _, number := range append(candidate.NeighbourPorts[:], open) {
				ports = append(ports, candidate.PodPort{Protocol: corev1.ProtocolTCP, Number: number})
			}
			program := net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: net.Name("program")}, Node: node.Name, Ports: ports, HostNetwork: true})
			at := func(port int, want check.Want) []check.Case {
				to := netip.AddrPortFrom(primaryOf(net, node), uint16(port))
				return []check.Case{{From: client, To: to, Want: want}, {From: check.Host(net.Node(0)), To: to, Want: want}}
			}
			rules := func(want check.Want) []check.Case {
				cases := at(open, check.AnsweredBy(program))
				for _, port := range candidate.NeighbourPorts {
					cases = append(cases, at(port, want)...)
				}
				return cases
			}
			svc := exposeSelectorless(ctx, net, "app", onNodePorts())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			inside := []candidate.Client{client, check.Host(node.Name)}
			served := func(svc *corev1.Service, want check.Want) []check.Case {
				return append(toClusterIP(svc, want, inside...), nodePortsAt(primaryOf(net, node), node.Name, svc, want)...)
			}
			net.Expect(ctx, "a program listens on the node", append(rules(check.AnsweredBy(program)), served(svc, check.AnsweredBy(pods[0]))...)...)
			check.Must(net.OwnNodes().Interfere(ctx, node.Name, candidate.AddNeighbours))
			net.Expect(ctx, "another program writes rules", append(rules(check.ConnectionRefused()), served(svc, check.AnsweredBy(pods[0]))...)...)
			slice.Endpoints = net.Slice(svc, pods...).Endpoints
			net.UpdateSlice(ctx, slice)
			later := exposeSelectorless(ctx, net, "later", onNodePorts())
			net.CreateSlice(ctx, net.Slice(later, pods...))
			all := slices.Concat(rules(check.ConnectionRefused()), served(svc, check.AnsweredByEach(pods...)), served(later, check.AnsweredByEach(pods...)))
			net.Expect(ctx, "Services change beside the rules", all...)
			net.Unexpose(ctx, svc.Name)
			all = slices.Concat(rules(check.ConnectionRefused()), once(served(svc, check.NotBy(pods...))), served(later, check.AnsweredByEach(pods...)))
			net.Expect(ctx, "a Service is deleted beside the rules", all...)
			check.Must(net.OwnNodes().StopProxy(ctx, node.Name))
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
			net.Expect(ctx, "the proxy is started beside the rules", all...)
		})
})
