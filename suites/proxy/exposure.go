package proxy

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// exposed is a Service with port 80 for TCP and for UDP, which lead to the port of the backends.
func exposed(name string, options ...check.ServiceOption) *corev1.Service {
	ports := check.WithPorts(
		check.Port("tcp", corev1.ProtocolTCP, exposedPort, check.BackendPort), check.Port("udp", corev1.ProtocolUDP, exposedPort, check.BackendPort))
	return check.Service(name, append([]check.ServiceOption{ports}, options...)...)
}

const exposedPort = 80

// selecting sets the selector to app=<app>.
func selecting(app string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": app} })
}

// withoutSelector leaves the endpoints to the check.
func withoutSelector() check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.Selector = nil })
}

// onNodePorts makes the type NodePort.
func onNodePorts() check.ServiceOption { return check.OfType(corev1.ServiceTypeNodePort) }

// balanced makes the type LoadBalancer, of a class that nobody implements: the status is the check's, and no load balancer is made.
func balanced() check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		s.Spec.Type, s.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new("service-conformance/none")
	})
}

// internally sets internalTrafficPolicy.
func internally(policy corev1.ServiceInternalTrafficPolicy) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.InternalTrafficPolicy = new(policy) })
}

// externally sets externalTrafficPolicy.
func externally(policy corev1.ServiceExternalTrafficPolicy) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.ExternalTrafficPolicy = policy })
}

// onExternalIPs sets externalIPs.
func onExternalIPs(addresses ...netip.Addr) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		for _, a := range addresses {
			s.Spec.ExternalIPs = append(s.Spec.ExternalIPs, a.String())
		}
	})
}

// The traffic policies.
var (
	internalCluster = internally(corev1.ServiceInternalTrafficPolicyCluster)
	internalLocal   = internally(corev1.ServiceInternalTrafficPolicyLocal)
	externalCluster = externally(corev1.ServiceExternalTrafficPolicyCluster)
	externalLocal   = externally(corev1.ServiceExternalTrafficPolicyLocal)
)

// onNode is the first node port of the Service at the i-th node.
func onNode(net *check.Network, i int, svc *corev1.Service) netip.AddrPort {
	return onNodePort(net, i, svc, 0)
}

// onNodePort is the k-th node port of the Service at the i-th node.
func onNodePort(net *check.Network, i int, svc *corev1.Service, k int) netip.AddrPort {
	return netip.AddrPortFrom(nodeAddress(net, i), uint16(svc.Spec.Ports[k].NodePort))
}

// nodeAddress is the address of the i-th node in the primary family.
func nodeAddress(net *check.Network, i int) netip.Addr {
	return check.AddressOf(net.Nodes()[i].Addresses, net.PrimaryFamily())
}

// announce makes the addresses ingress points of the Service, as a load balancer does that has them delivered to the nodes.
func announce(ctx context.Context, net *check.Network, svc *corev1.Service, addresses ...netip.Addr) {
	ginkgo.GinkgoHelper()
	announceAs(ctx, net, svc, "", addresses...)
}

// announceAs is announce with an ipMode; an empty one is left to the server.
func announceAs(ctx context.Context, net *check.Network, svc *corev1.Service, mode corev1.LoadBalancerIPMode, addresses ...netip.Addr) {
	ginkgo.GinkgoHelper()
	var points []string
	for _, a := range addresses {
		point := fmt.Sprintf(`{"ip":%q}`, a)
		if mode != "" {
			point = fmt.Sprintf(`{"ip":%q,"ipMode":%q}`, a, mode)
		}
		points = append(points, point)
	}
	net.ChangeStatus(ctx, svc.Name, `{"status":{"loadBalancer":{"ingress":[`+strings.Join(points, ",")+`]}}}`)
}

// exposeOutside exposes the Service on node ports, on an external IP and, where the candidate has them, on a
// load-balancer address. It returns the Service with the addresses at which clients outside of the cluster reach it by
// their gateway.
func exposeOutside(ctx context.Context, net *check.Network, name string, options ...check.ServiceOption) (*corev1.Service, []netip.Addr) {
	ginkgo.GinkgoHelper()
	addresses := []netip.Addr{net.ExternalAddress()}
	kind := onNodePorts()
	if net.Has(spec.LoadBalancer) {
		kind = balanced()
	}
	svc := net.Expose(ctx, exposed(name, append(options, kind, onExternalIPs(addresses...))...))
	if net.Has(spec.LoadBalancer) {
		addresses = append(addresses, net.ExternalAddress())
		announce(ctx, net, svc, addresses[1])
	}
	return svc, addresses
}

// arrivals are calls of a client outside of the cluster that arrive at the i-th node. They go to its node ports, and to
// the addresses of exposeOutside, by TCP and by UDP.
func arrivals(net *check.Network, i int, svc *corev1.Service, addresses []netip.Addr, want check.Want) []check.Case {
	from := check.Outside(net.Node(i))
	var cases []check.Case
	for k := range 2 {
		cases = append(cases, check.Case{From: from, To: onNodePort(net, i, svc, k), Protocol: inTurn(k), Want: want})
	}
	return append(cases, calls(from, addresses, want)...)
}

// calls are from a client to each of the addresses, by TCP and by UDP.
func calls(from candidate.Client, addresses []netip.Addr, want check.Want) []check.Case {
	return toOutside(addresses, want, from)
}

// toOutside are calls from each of the clients to the addresses of exposeOutside, by TCP and by UDP.
func toOutside(addresses []netip.Addr, want check.Want, clients ...candidate.Client) []check.Case {
	var cases []check.Case
	for _, a := range addresses {
		cases = append(cases, eachWay(exposedAt(a), want, clients...)...)
	}
	return cases
}

// everyAddress are calls to all addresses of a Service of exposeOutside: from inside to its cluster IP, and from the
// others to its node ports, external IP and load-balancer address.
func everyAddress(net *check.Network, svc *corev1.Service, addresses []netip.Addr, want check.Want, inside, others []candidate.Client) []check.Case {
	return slices.Concat(toClusterIP(svc, want, inside...), toNodePorts(net, svc, want, others...), toOutside(addresses, want, others...))
}

// connections are those of the cases that are by TCP: where every shot counts, a datagram may be lost by the network.
func connections(cases []check.Case) []check.Case {
	return slices.DeleteFunc(slices.Clone(cases), func(c check.Case) bool { return c.Protocol == corev1.ProtocolUDP })
}

// clusterIPCalls are from each of the clients to the cluster IP: TCP and UDP in turn.
func clusterIPCalls(svc *corev1.Service, want check.Want, clients ...candidate.Client) []check.Case {
	var cases []check.Case
	for i, c := range clients {
		cases = append(cases, check.Case{From: c, To: check.ServiceAddress(svc, exposedPort), Protocol: inTurn(i), Want: want})
	}
	return cases
}

func inTurn(i int) corev1.Protocol {
	if i%2 == 0 {
		return corev1.ProtocolTCP
	}
	return corev1.ProtocolUDP
}

// ownAddress is the address that a client is seen from when nobody changes it. A pod that the client sends to directly
// sees it there.
func ownAddress(ctx context.Context, net *check.Network, client candidate.Client, pod candidate.Pod) netip.Addr {
	ginkgo.GinkgoHelper()
	to := netip.AddrPortFrom(check.AddressOf(pod.Addresses, net.PrimaryFamily()), check.BackendPort)
	o := net.Send(ctx, candidate.Probe{From: client, To: to, Protocol: corev1.ProtocolTCP, Timeout: check.LossTimeout})[0][0]
	if o.Result != candidate.Answered {
		check.Abort("the client in the %s does not reach pod %s at %s: %s", client, pod.Name, to, o.Result)
	}
	return o.Source.Addr().Unmap()
}

// asDeclared ends the check unless the implementation declares the value: what it may decide is judged by what it says of it.
func asDeclared(net *check.Network, d spec.Declarable, value string) {
	ginkgo.GinkgoHelper()
	switch declared := net.Declared(d); declared {
	case value:
	case "":
		check.LeaveUnjudged(check.ByImplementation, "it is judged where %s is declared to be %q; here nothing is declared of it", d, value)
	default:
		check.DoesNotBind("it is judged where %s is declared to be %q; here it is %q", d, value, declared)
	}
}

// onlyBy demands that each shot is answered by one of the pods. It sends as many shots as tell an answer by another
// endpoint that is chosen as often as any of n.
func onlyBy(n int, pods ...candidate.Pod) check.Want {
	return answeredOften(check.TrialsUntil(1/float64(n)), pods...)
}

// exposedAt is the port of an exposed Service at one of its addresses.
func exposedAt(a netip.Addr) netip.AddrPort { return netip.AddrPortFrom(a, exposedPort) }
