package proxy

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
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
	// Service is the Service and port that it is for, to recognise its flow later.
	Service string
}

// connection is the first packet of one, and what is known where it enters.
type connection struct {
	*Node // where it enters
	*Packet
	to     *destination // what it is for
	now    time.Time
	random *rand.Rand
	open   func(netip.AddrPort) int
}

func (c *connection) serviceSpec() *corev1.ServiceSpec { return &c.to.port.service.Spec }

// Decide says what becomes of a packet that enters the node. open counts the connections that are open to an endpoint, for IPVS.
func (n *Node) Decide(now time.Time, p *Packet, random *rand.Rand, open func(netip.AddrPort) int) Decision {
	if n.programmed == nil || n.flushed || n.ipvs() && (n.faults.On(fault.IPVSNotServed) || n.config.WithoutIPVS) {
		return Decision{Answer: Pass}
	}
	d := n.find(p)
	if d == nil {
		return Decision{Answer: n.unclaimed(p)}
	}
	if p.Namespace != "" && p.Namespace != d.port.service.Namespace && n.faults.On(fault.ClusterIPInNamespace) {
		return Decision{Answer: Drop}
	}
	if !n.admits(p, d) {
		return Decision{Answer: Drop}
	}
	c := &connection{Node: n, Packet: p, to: d, now: now, random: random, open: open}
	among, none := n.candidates(d, p.To.Addr().Is6(), p.Inside)
	if n.ipvs() && n.realServers == addedRealServer && n.realServerWins(d, random) {
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
	return Decision{Answer: Forward, To: chosen.Address, Source: n.seen(p, d, chosen), Service: string(d.port.service.UID) + d.port.port.Name}
}

// realServerWins is how often a foreign real server is chosen.
func (n *Node) realServerWins(d *destination, random *rand.Rand) bool {
	return random.IntN(1+len(d.port.v4)+len(d.port.v6)) == 0
}

// find returns what a packet is for; nil if no Service claims it.
func (n *Node) find(p *Packet) *destination {
	protocol := p.Protocol
	if n.faults.On(fault.ProtocolIgnored) {
		protocol = ""
	}
	t := target{address: p.To.Addr(), port: p.To.Port(), protocol: protocol}
	if n.has(p.To.Addr()) {
		if n.servesNodePorts(p.To.Addr()) {
			if ds := n.programmed.byTarget[target{port: t.port, protocol: t.protocol}]; len(ds) > 0 && n.offersNodePort(p) {
				return ds[0]
			}
		}
	}
	if n.ipvs() && n.twins {
		for u, ds := range n.programmed.byTarget {
			if u.port == t.port && u.protocol == t.protocol && u.address.Is4() && candidate.TwinAddress(u.address) == t.address {
				return ds[0]
			}
		}
	}
	if n.faults.On(fault.ServicesByPort) {
		if d := n.programmed.anyWithPort(t); d != nil {
			return d
		}
	}
	for _, d := range n.programmed.byTarget[t] {
		if d.kind == ClusterIP && n.dropped {
			continue
		}
		if d.kind == ExternalIP && n.ignoresExternalIPs() {
			continue
		}
		if d.kind == LoadBalancer && p.Inside && n.faults.On(fault.LoadBalancerNotFromInside) {
			continue
		}
		return d
	}
	if n.faults.On(fault.AnyPortServed) && n.programmed.virtualIPs[p.To.Addr()] {
		for u, ds := range n.programmed.byTarget {
			if u.address == t.address {
				return ds[0]
			}
		}
	}
	return nil
}

// anyWithPort is where a fault takes the first Service with a port for all of them.
func (o *Objects) anyWithPort(t target) *destination {
	if !o.virtualIPs[t.address] {
		return nil
	}
	for _, s := range o.services {
		for _, sp := range s.ports {
			if uint16(sp.port.Port) == t.port && sp.port.Protocol == t.protocol && s.Name != "kubernetes" {
				return &destination{kind: ClusterIP, port: sp}
			}
		}
	}
	return nil
}

// offersNodePort is where a fault serves node ports on the nodes whose name ends in 1 only.
func (n *Node) offersNodePort(*Packet) bool {
	return !n.faults.On(fault.NodePortOnOneNode) || n.Name[len(n.Name)-1] == '1'
}

// ignoresExternalIPs reports whether the administrator has forbidden them (feature gate AllowServiceExternalIPs).
func (n *Node) ignoresExternalIPs() bool {
	allowed, set := n.config.FeatureGates["AllowServiceExternalIPs"]
	return n.faults.On(fault.ExternalIPsNotServed) || set && !allowed && !n.faults.On(fault.ExternalIPsGateIgnored)
}

// unclaimed is what becomes of a packet that is for no port of a Service: on a virtual IP it is refused; an address of the Service ranges
// that no Service has is silent.
func (n *Node) unclaimed(p *Packet) Answer {
	inNFTables := n.nftables() || !n.Own // the shared nodes are of every mode
	switch {
	case n.programmed.virtualIPs[p.To.Addr()]:
		if inNFTables && n.faults.On(fault.NFTablesUnusedSilent) {
			return Drop
		}
		return Refuse
	case slices.ContainsFunc(n.programmed.ServiceRanges, func(r netip.Prefix) bool { return r.Contains(p.To.Addr()) }):
		if inNFTables && n.faults.On(fault.NFTablesUnallocatedRefused) {
			return Refuse
		}
		return Drop
	}
	return Pass
}

// admits applies loadBalancerSourceRanges: they restrict the load-balancer addresses and nothing else.
func (n *Node) admits(p *Packet, d *destination) bool {
	ranges := d.port.service.Spec.LoadBalancerSourceRanges
	f := n.faults
	if len(ranges) == 0 || f.On(fault.SourceRangesIgnored) || d.kind != LoadBalancer && !(f.On(fault.SourceRangesOnNodePorts) && d.kind == NodePort) {
		return true
	}
	for _, text := range ranges {
		r, err := netip.ParsePrefix(text)
		if err == nil && r.Contains(p.Source.Addr()) && !(r.Bits() == 0 && f.On(fault.SourceRangeZeroRefuses)) {
			return true
		}
	}
	return false
}

// seen is the source address that the endpoint sees: the client's own, unless the reply would not come back by this node. A pod that reaches
// itself, and outside traffic that any node may get (policy Cluster), is given the node's address.
func (n *Node) seen(p *Packet, d *destination, e *Endpoint) netip.Addr {
	f := n.faults
	own, client := n.Address(p.Source.Addr()), p.Source.Addr()
	switch {
	case f.On(fault.MasqueradeAll):
		return own
	case e.Address.Addr() == client:
		return own // hairpin
	case d.kind == ClusterIP:
		if !p.Inside {
			return own
		}
		return client
	case local(&d.port.service.Spec, d.kind) && !p.Inside:
		if f.On(fault.MasqueradeUnderLocal) {
			return own
		}
		return client
	case f.On(fault.NoMasquerade), d.kind == LoadBalancer && f.On(fault.NoMasqueradeForLoadBalancer):
		return client
	case p.Inside && !p.Host && local(&d.port.service.Spec, d.kind):
		return client // what a pod sends to the outside of its own cluster does not leave it
	}
	return own
}

// Hairpins reports whether a pod reaches itself: without a rewritten source it does not.
func (n *Node) Hairpins() bool { return !n.faults.On(fault.HairpinLost) }

// KeepsFlow reports whether a flow of datagrams that was decided earlier goes on to its endpoint: as long as the Service has it and it serves.
func (n *Node) KeepsFlow(d Decision, ipv6 bool) bool {
	if n.faults.On(fault.UDPFlowStale) {
		return true
	}
	if n.programmed == nil {
		return true
	}
	for _, s := range n.programmed.services {
		for _, sp := range s.ports {
			if string(s.UID)+sp.port.Name != d.Service {
				continue
			}
			return slices.ContainsFunc(sp.endpoints(ipv6), func(e *Endpoint) bool { return e.Address == d.To && e.Serving })
		}
	}
	return n.faults.On(fault.UDPFlowOutlivesService)
}
