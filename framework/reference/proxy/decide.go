package proxy

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Packet is the first packet of a connection, or a datagram, as it enters a node.
type Packet struct {
	Source, To netip.AddrPort
	Protocol   corev1.Protocol
	// Inside says that it comes from a pod or the host network of a node of the cluster; Host, from that of this very node.
	Inside, Host bool
	// Namespace of the pod that sends it; empty otherwise.
	Namespace string
}

// Answer is what a node does with a packet.
type Answer int

// The answers.
const (
	// Pass leaves it to the network: no Service is concerned.
	Pass Answer = iota
	// Forward sends it to an endpoint.
	Forward
	// Refuse rejects it.
	Refuse
	// Drop is silent.
	Drop
)

// Decision is what a node does with a packet.
type Decision struct {
	Answer Answer
	// To is the endpoint, Source the address that it sees.
	To     netip.AddrPort
	Source netip.Addr
	// On is the node that the endpoint is said to be on; empty if nobody said.
	On string
	// Service is the Service and port that it is for, to recognise its flow later.
	Service string
	// Kind is that of the address. ExternalLocal says that the Service has the policy Local for external traffic.
	Kind          Kind
	ExternalLocal bool
}

// connection is the first packet of one, and what is known where it enters.
type connection struct {
	*Node // where it enters
	*Packet
	dest   *destination // what it is for
	now    time.Time
	random *rand.Rand
	open   func(netip.AddrPort) int
}

func (c *connection) serviceSpec() *corev1.ServiceSpec { return &c.dest.port.service.Spec }

// Decide says what becomes of a packet that enters the node. open counts the connections that are open to an endpoint, for IPVS.
func (n *Node) Decide(now time.Time, p *Packet, random *rand.Rand, open func(netip.AddrPort) int) Decision {
	if !n.inEffect.Do(n) {
		return Decision{Answer: Pass}
	}
	c := &connection{Node: n, Packet: p, now: now, random: random, open: open}
	if c.dest = c.destination(); c.dest == nil {
		if c.takenForNode.Do(c) {
			return Decision{Answer: Forward, To: netip.AddrPortFrom(c.Address(p.To.Addr()), p.To.Port()), On: c.Name, Source: p.Source.Addr(), Kind: ClusterIP}
		}
		return Decision{Answer: c.unclaimed()}
	}
	for i := range c.admits {
		if !c.admits[i].Do(c) {
			return Decision{Answer: Drop}
		}
	}
	among, none := c.candidates()
	if c.ipvs() && c.realServers == addedRealServer && c.realServerWins() {
		return Decision{Answer: Drop} // it went to an address where nobody is
	}
	if len(among) == 0 {
		return Decision{Answer: none}
	}
	chosen := c.sticky(among)
	if chosen == nil {
		chosen = c.choose(among)
		c.remember(chosen)
	}
	return Decision{
		Answer: Forward, To: chosen.Address, On: chosen.Node, Source: c.seen(chosen), Service: c.dest.port.flow(), Kind: c.dest.kind,
		ExternalLocal: c.serviceSpec().ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal,
	}
}

// flow is what a flow of datagrams for the port is recognised by.
func (p *servicePort) flow() string { return string(p.service.UID) + p.port.Name }

// realServerWins is how often a foreign real server is chosen.
func (c *connection) realServerWins() bool {
	return c.random.IntN(1+len(c.dest.port.v4)+len(c.dest.port.v6)) == 0
}

// What was programmed stays in effect when the proxy stops.
var inEffect = rule.New("proxy-programmed-rules-in-effect", func(n *Node) bool {
	return n.programmed != nil && !n.flushed && !(n.ipvs() && n.config.WithoutIPVS)
}, spec.ProxyRestartKeepsTraffic, spec.ProxyIPVSBalances)

// destination returns what a packet is for; nil if no Service claims it.
func (c *connection) destination() *destination {
	t := c.targeted.Do(c.To.Addr(), c.To.Port(), c.Protocol)
	if c.has(t.address) && c.servesNodePorts.Do(c.Node, t.address) {
		everyAddress := t
		everyAddress.address = netip.Addr{}
		if ds := c.programmed.byTarget[everyAddress]; len(ds) > 0 {
			return ds[0]
		}
	}
	if d := c.twin(t); d != nil {
		return d
	}
	return c.claims.Do(c, t)
}

// twin returns what a virtual server that others have added leads to.
func (c *connection) twin(t target) *destination {
	if !c.ipvs() || !c.twins {
		return nil
	}
	for u, ds := range c.programmed.byTarget {
		if u.port == t.port && u.protocol == t.protocol && u.address.Is4() && candidate.TwinAddress(u.address) == t.address {
			return ds[0]
		}
	}
	return nil
}

// Rules for what a packet is for.
var (
	// Ports of one number and different protocols are distinct.
	targeted = rule.New("proxy-target-of-packet", func(address netip.Addr, port uint16, protocol corev1.Protocol) target {
		return target{address: address, port: port, protocol: protocol}
	}, spec.ProxyCapturesPort, spec.ProxyCapturesProtocol)

	// A Service claims its own addresses and ports for every client.
	claims = rule.New("proxy-service-claims", func(c *connection, t target) *destination {
		for _, d := range c.programmed.byTarget[t] {
			if !c.ignored(d) {
				return d
			}
		}
		return nil
	}, spec.ProxyCapturesPort, spec.ProxyEqualPortsSeparate, spec.ProxyClusterIPReachable, spec.ProxyNoClientKnowledge, spec.ProxyClusterIPAcrossNamespaces,
		spec.ProxyLoadBalancerFromCluster, spec.ProxyRedirectTransparent)

	// The administrator can forbid external IPs.
	externalIPsOff = rule.New("proxy-external-ips-off-by-gate", func(c *connection, d *destination) bool {
		allowed, set := c.config.FeatureGates["AllowServiceExternalIPs"]
		return d.kind == ExternalIP && set && !allowed
	}, spec.ProxyExternalIPsGate, spec.ProxyExternalIPReachable)
)

// ignored reports whether what is sent to the destination does not concern the node.
func (c *connection) ignored(d *destination) bool {
	if d.kind == ClusterIP && c.dropped {
		return true
	}
	for i := range c.ignores {
		if c.ignores[i].Do(c, d) {
			return true
		}
	}
	return false
}

// unclaimed is what becomes of a packet that is for no port of a Service.
func (c *connection) unclaimed() Answer {
	to := c.To.Addr()
	switch {
	case c.programmed.virtualIPs[to]:
		return c.unusedPort.Do(c.Node)
	case slices.ContainsFunc(c.programmed.ServiceRanges, func(r netip.Prefix) bool { return r.Contains(to) }):
		return c.unallocated.Do(c.Node)
	}
	return Pass
}

// Rules for what no Service claims. They are those of the nftables mode, and here of every mode.
var (
	// The addresses of Services are none of the node, whose programs listen on every address that it has.
	takenForNode = rule.New("proxy-service-address-taken-for-node", func(*connection) bool { return false }, spec.ProxyCapturesPort, spec.ProxyExternalIPReachable, spec.ProxyExternalIPOfNode)

	unusedPort = rule.New("proxy-unused-port-refused", func(*Node) Answer { return Refuse }, spec.ProxyNftablesUnusedPortRejected, spec.ProxyCapturesPort)

	unallocated = rule.New("proxy-unallocated-address-dropped", func(*Node) Answer { return Drop }, spec.ProxyNftablesUnallocatedAddressDropped)
)

// Rules for whom an address is served.
var (
	// loadBalancerSourceRanges admit clients within them, where there are any.
	sourceRanges = rule.New("proxy-source-ranges", func(c *connection) bool {
		ranges := c.serviceSpec().LoadBalancerSourceRanges
		return len(ranges) == 0 || !c.sourceRangesOf.Do(c) || slices.ContainsFunc(ranges, func(text string) bool {
			r, err := netip.ParsePrefix(text)
			return err == nil && c.inSourceRange.Do(r, c.Source.Addr())
		})
	}, spec.ProxyLoadBalancerSourceRanges)

	// They restrict the load-balancer addresses and nothing else.
	sourceRangesOf = rule.New("proxy-source-ranges-of-load-balancer", func(c *connection) bool {
		return c.dest.kind == LoadBalancer
	}, spec.ProxyLoadBalancerSourceRanges, spec.ProxyLoadBalancerAddressShared)

	inSourceRange = rule.New("proxy-source-range", netip.Prefix.Contains, spec.ProxyLoadBalancerSourceRanges, spec.ProxyLoadBalancerSourceRangesZero)
)

// seen is the source address that the endpoint sees. It is the client's own or, where the reply would not come back by
// this node, that of the node.
func (c *connection) seen(e *Endpoint) netip.Addr {
	client := c.Source.Addr()
	masquerades := c.clusterMasquerades.Do
	switch {
	case e.Address.Addr() == client:
		return c.Address(client) // hairpin
	case c.dest.kind == ClusterIP:
		masquerades = c.clusterIPMasquerades.Do
	case local(c.serviceSpec(), c.dest.kind):
		masquerades = c.localMasquerades.Do
	}
	if masquerades(c) {
		return c.Address(client)
	}
	return client
}

// Rules for whether the endpoint sees the address of the node.
var (
	clusterIPMasquerades = rule.New("proxy-client-address-at-cluster-ip", func(c *connection) bool {
		return !c.Inside
	}, spec.ProxyClientAddressKept)

	// Outside traffic that any node may get is answered through the node that got it.
	clusterMasquerades = rule.New("proxy-client-address-under-cluster", func(*connection) bool {
		return true
	}, spec.ProxyNodePortClientAddressAltered, spec.ProxyLoadBalancerClientAddressAltered)

	// The reply comes back by this node anyway. What a pod sends to the outside of its own cluster does not leave it.
	localMasquerades = rule.New("proxy-client-address-under-local", func(c *connection) bool {
		return c.Inside && c.Host
	}, spec.ProxyExternalLocalClientAddress)

	// A pod reaches itself, as its source is rewritten.
	hairpinAnswered = rule.New("proxy-hairpin-answered", func(*Node, Decision) bool { return true }, spec.ProxyHairpin)
)

// Hairpins reports whether a pod reaches itself by what was decided.
func (n *Node) Hairpins(d Decision) bool { return n.hairpinAnswered.Do(n, d) }

// KeepsFlow reports whether a flow of datagrams that was decided earlier goes on to its endpoint.
func (n *Node) KeepsFlow(d Decision, ipv6 bool) bool {
	if n.programmed == nil {
		return true
	}
	for _, s := range n.programmed.services {
		for _, sp := range s.ports {
			if sp.flow() == d.Service {
				return n.flowKept.Do(d, sp.endpoints(ipv6))
			}
		}
	}
	return n.flowOutlives.Do()
}

// Rules for flows of datagrams.
var (
	// A flow goes on as long as the Service has its endpoint and that serves.
	flowKept = rule.New("proxy-udp-flow-with-endpoint", func(d Decision, es []*Endpoint) bool {
		i := indexOf(es, d.To)
		return i >= 0 && es[i].Serving
	}, spec.ProxyUDPFlowFollowsEndpoints)

	flowOutlives = rule.New("proxy-udp-flow-without-service", func() bool { return false }, spec.ProxyUDPFlowEndsWithService)
)
