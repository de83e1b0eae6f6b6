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

var _ = ginkgo.Describe("the nftables mode", func() {
	check.It(spec.ProxyNftablesUnusedPortRejected, "rejects traffic to a port of a cluster IP that the Service does not have",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			all := append(clients, check.Host(net.Node(0)), check.Outside(net.Node(1)))
			served := func(port int32) []check.Case {
				return eachWay(check.ServiceAddress(svc, port), check.AnsweredBy(pods...), all...)
			}
			unused := func(port int32) []check.Case {
				return eachWay(check.ServiceAddress(svc, port), check.ConnectionRefused(), all...)
			}
			net.Expect(ctx, "the Service is created", slices.Concat(served(exposedPort), unused(81), unused(check.BackendPort))...)
			moved := fmt.Sprintf(`[{"name":"tcp","protocol":"TCP","port":81,"targetPort":%[1]d},{"name":"udp","protocol":"UDP","port":81,"targetPort":%[1]d}]`,
				check.BackendPort)
			net.Change(ctx, svc.Name, `{"spec":{"ports":`+moved+`}}`)
			net.Expect(ctx, "its ports change", slices.Concat(served(81), unused(exposedPort))...)
		})

	check.It(spec.ProxyNftablesFailedUpdateFull, "serves everything again after the next change when somebody has deleted its table",
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.NFTables, SyncPeriod: interferencePeriod.String()})
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			served := func(svc *corev1.Service) []check.Case {
				each := check.AnsweredByEach(pods...)
				return append(eachWay(check.ServiceAddress(svc, exposedPort), each, client, check.Host(node.Name)), nodePortsAt(primaryOf(net, node), node.Name, svc, each)...)
			}
			before := net.Expose(ctx, exposed("before", selecting("app"), onNodePorts()))
			net.Expect(ctx, "a Service is created", served(before)...)
			check.Must(net.OwnNodes().Interfere(ctx, node.Name, candidate.FlushRules))
			after := net.Expose(ctx, exposed("after", selecting("app"), onNodePorts()))
			net.ExpectWithin(ctx, "somebody deletes the table, and another Service is created", repairBound, append(served(before), served(after)...)...)
		})

	check.It(spec.ProxyNftablesUnallocatedAddressDropped, "drops traffic to an address of the Service range that no Service has",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
			a := unallocated(ctx, net, net.CIDR())
			free := once(eachWay(netip.AddrPortFrom(a, exposedPort), check.Dropped(), clients[0], check.Host(net.Node(1)), check.Outside(net.Node(2))))
			net.Expect(ctx, "no Service has "+a.String(), free...)
			if allocated(ctx, net)[a.String()] {
				check.Abort("a Service of somebody else has got %s meanwhile", a)
			}
			svc := net.Expose(ctx, exposed("app", check.WithClusterIP(a.String())))
			net.Expect(ctx, "a Service gets "+a.String(),
				eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredBy(pods...), clients[0], check.Host(net.Node(1)))...)
			net.Unexpose(ctx, svc.Name)
			net.Expect(ctx, "the Service is deleted", free...)
		})

	check.It(spec.ProxyNftablesUnallocatedRangeAdded, "drops traffic to an address of a range that a ServiceCIDR has added",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
			settled(ctx, net, pods[0], hosts(net)...) // a proxy that has just started writes everything once more, the new range with it
			added := netip.MustParsePrefix("10.97.0.9/32")
			if net.PrimaryFamily() == corev1.IPv6Protocol {
				added = netip.MustParsePrefix("fd00:10:97::9/128")
			}
			net.AddServiceCIDR(ctx, added.String())
			net.Expect(ctx, "a ServiceCIDR adds "+added.String(), once(eachWay(netip.AddrPortFrom(added.Addr(), exposedPort), check.Dropped(),
				clients[0], check.Host(net.Node(1)), check.Outside(net.Node(2))))...)
		})

	check.It(spec.ProxyNftablesNodePortsPrimary, "serves node ports on the primary address of a node alone, and not on loopback where no gate asks for it", check.OwnNodes(2), check.Claiming(spec.FeatureNodePort),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			serves := func(what string, p candidate.ProxyConfiguration, onSecondary check.Want) {
				ginkgo.GinkgoHelper()
				node := net.AddNode(ctx, p)
				cases := nodePortsAt(primaryOf(net, node), node.Name, svc, check.AnsweredByEach(pods...))
				if secondary := check.AddressOf(node.SecondaryAddresses, net.PrimaryFamily()); secondary.IsValid() {
					cases = append(cases, nodePortsAt(secondary, node.Name, svc, onSecondary)...)
				}
				if net.PrimaryFamily() == corev1.IPv4Protocol {
					cases = append(cases, check.Case{From: check.Host(node.Name), To: onLoopback(uint16(svc.Spec.Ports[0].NodePort)), Want: turnedAway()})
				}
				net.Expect(ctx, what, cases...)
			}
			serves("a node comes whose configuration does not name addresses", candidate.ProxyConfiguration{Mode: candidate.NFTables}, turnedAway())
			serves("a node comes whose configuration names all addresses", candidate.ProxyConfiguration{Mode: candidate.NFTables, NodePortAddresses: everywhere},
				check.AnsweredByEach(pods...))
		})
})
