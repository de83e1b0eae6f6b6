package proxy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong with what a packet is for, and with who may send it.
var decideFaults = []wrong{
	{fault.IPVSNotServed, func(b *book) {
		b.inEffect.Wrap(func(right func(*Node) bool) func(*Node) bool {
			return func(n *Node) bool { return right(n) && !n.ipvs() }
		})
	}},
	{fault.ProtocolIgnored, func(b *book) {
		b.targeted.Replace(func(address netip.Addr, port uint16, _ corev1.Protocol) target {
			return target{address: address, port: port}
		})
		b.endpointPort.Replace(anyProtocolOfName)
	}},
	{fault.ServicesByPort, func(b *book) {
		b.claims.Wrap(func(right claiming) claiming {
			return func(c *connection, t target) *destination {
				if d := c.programmed.anyWithPort(t); d != nil {
					return d
				}
				return right(c, t)
			}
		})
	}},
	{fault.AnyPortServed, func(b *book) {
		b.claims.Wrap(func(right claiming) claiming {
			return func(c *connection, t target) *destination {
				if d := right(c, t); d != nil || !c.programmed.virtualIPs[t.address] {
					return d
				}
				for u, ds := range c.programmed.byTarget {
					if u.address == t.address {
						return ds[0]
					}
				}
				return nil
			}
		})
	}},
	{fault.ExternalIPsNotServed, ignore(func(_ *connection, d *destination) bool { return d.kind == ExternalIP })},
	{fault.ExternalIPsGateIgnored, func(b *book) { rule.Find(b.ignores, externalIPsOff.Name).Off() }},
	{fault.LoadBalancerNotFromInside, ignore(func(c *connection, d *destination) bool { return d.kind == LoadBalancer && c.Inside })},
	{fault.ClusterIPInNamespace, func(b *book) {
		b.admits = append(b.admits, bug(func(c *connection) bool {
			return c.Namespace == "" || c.Namespace == c.dest.port.service.Namespace
		}))
	}},

	// What no Service claims.
	{fault.ClusterIPsOfNode, func(b *book) {
		b.takenForNode.Replace(func(c *connection) bool { return c.programmed.virtualIPs[c.To.Addr()] })
	}},
	{fault.ExternalAddressesOfNode, func(b *book) {
		b.takenForNode.Replace(func(c *connection) bool {
			for t, ds := range c.programmed.byTarget {
				if t.address == c.To.Addr() && (ds[0].kind == ExternalIP || ds[0].kind == LoadBalancer) && !c.has(t.address) {
					return true
				}
			}
			return false
		})
	}},
	{fault.NFTablesUnusedSilent, func(b *book) { b.unusedPort.Wrap(inNFTables(Drop)) }},
	{fault.NFTablesUnallocatedRefused, func(b *book) { b.unallocated.Wrap(inNFTables(Refuse)) }},

	// Source ranges.
	{fault.SourceRangesIgnored, func(b *book) { b.sourceRangesOf.Off() }},
	{fault.SourceRangesOnNodePorts, func(b *book) {
		b.sourceRangesOf.Wrap(func(right asking) asking {
			return func(c *connection) bool { return right(c) || c.dest.kind == NodePort }
		})
	}},
	{fault.SourceRangesOfAddress, func(b *book) {
		b.admits = append(b.admits, bug(func(c *connection) bool {
			for _, d := range c.programmed.sharing(c, LoadBalancer) {
				other := *c
				other.dest = d
				if !sourceRanges.Do(&other) {
					return false
				}
			}
			return true
		}))
	}},
	{fault.SourceRangeZeroRefuses, func(b *book) {
		b.inSourceRange.Wrap(func(right func(netip.Prefix, netip.Addr) bool) func(netip.Prefix, netip.Addr) bool {
			return func(r netip.Prefix, client netip.Addr) bool { return r.Bits() != 0 && right(r, client) }
		})
	}},
}

// sharing are the destinations of other Services behind the address of one kind that a connection goes to.
func (o *Objects) sharing(c *connection, kind Kind) (others []*destination) {
	if c.dest.kind != kind {
		return nil
	}
	for t, ds := range o.byTarget {
		if t.address == c.To.Addr() && ds[0].kind == kind && ds[0].port.service != c.dest.port.service {
			others = append(others, ds[0])
		}
	}
	return others
}

// anyWithPort takes the first Service with a port for all of them.
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

// ignore is a fault: what is sent to some destinations is left to the network.
func ignore(some ignoring) func(*book) {
	return func(b *book) { b.ignores = append(b.ignores, bug(some)) }
}

// inNFTables is a fault of nftables mode: what no Service claims gets another answer. The shared nodes are of every mode.
func inNFTables(wrong Answer) func(right func(*Node) Answer) func(*Node) Answer {
	return func(right func(*Node) Answer) func(*Node) Answer {
		return func(n *Node) Answer {
			if n.nftables() || !n.Own {
				return wrong
			}
			return right(n)
		}
	}
}

// What can be wrong with where node ports are served.
var nodePortFaults = []wrong{
	{fault.NodePortAddressesIgnored, func(b *book) { b.servesNodePorts.Replace(func(*Node, netip.Addr) bool { return true }) }},
	{fault.ExternalIPTakesNodeAddress, nodePortsIf(func(n *Node, a netip.Addr, right bool) bool {
		for t, ds := range n.programmed.byTarget {
			if t.address == a && ds[0].kind == ExternalIP {
				return false
			}
		}
		return right
	})},
	{fault.NodePortLoopbackNotServed, nodePortsIf(func(_ *Node, a netip.Addr, right bool) bool { return right && !a.IsLoopback() })},
	{fault.NodePortOnOneNode, nodePortsIf(func(n *Node, _ netip.Addr, right bool) bool { return right && n.Name[len(n.Name)-1] == '1' })},
	{fault.NFTablesLoopback, nodePortsIf(func(n *Node, a netip.Addr, right bool) bool { return right || n.nftables() && a.IsLoopback() })},
	{fault.NFTablesAllAddresses, func(b *book) { b.nodePortDefault.Replace(func(*Node, netip.Addr) bool { return true }) }},
}

// nodePortsIf is a fault: node ports are served on other addresses.
func nodePortsIf(wrong func(n *Node, a netip.Addr, right bool) bool) func(*book) {
	return func(b *book) {
		b.servesNodePorts.Wrap(func(right addressing) addressing {
			return func(n *Node, a netip.Addr) bool { return wrong(n, a, right(n, a)) }
		})
	}
}

// What can be wrong with the source address that an endpoint sees.
var seenFaults = []wrong{
	{fault.MasqueradeAll, func(b *book) {
		for _, r := range []*rule.Rule[asking]{&b.clusterIPMasquerades, &b.clusterMasquerades, &b.localMasquerades} {
			r.Replace(func(*connection) bool { return true })
		}
	}},
	{fault.MasqueradeUnderLocal, func(b *book) {
		b.localMasquerades.Wrap(func(right asking) asking {
			return func(c *connection) bool { return right(c) || !c.Inside }
		})
	}},
	{fault.NoMasquerade, func(b *book) {
		b.clusterMasquerades.Off()
		b.localMasquerades.Off()
	}},
	{fault.NoMasqueradeForLoadBalancer, func(b *book) {
		others := func(right asking) asking {
			return func(c *connection) bool { return right(c) && c.dest.kind != LoadBalancer }
		}
		b.clusterMasquerades.Wrap(others)
		b.localMasquerades.Wrap(others)
	}},
	{fault.HairpinLost, func(b *book) { b.hairpinAnswered.Off() }},
	{fault.HairpinWithoutNodeLost, func(b *book) { b.hairpinAnswered.Replace(func(n *Node, d Decision) bool { return d.On == n.Name }) }},
}

// flowKeptToo is a fault: some flows go on although they should not.
func flowKeptToo(some func(Decision, []*Endpoint) bool) func(*book) {
	return func(b *book) {
		b.flowKept.Wrap(func(right func(Decision, []*Endpoint) bool) func(Decision, []*Endpoint) bool {
			return func(d Decision, es []*Endpoint) bool { return some(d, es) || right(d, es) }
		})
	}
}

// What can be wrong with flows of datagrams.
var flowFaults = []wrong{
	{fault.UDPFlowStale, func(b *book) {
		b.flowKept.Replace(func(Decision, []*Endpoint) bool { return true })
		b.flowOutlives.Replace(func() bool { return true })
	}},
	{fault.UDPFlowOutlivesLast, flowKeptToo(func(_ Decision, es []*Endpoint) bool { return len(es) == 0 })},
	{fault.UDPFlowStaleOutside, flowKeptToo(func(d Decision, _ []*Endpoint) bool { return d.Kind != ClusterIP })},
	{fault.UDPFlowOutlivesService, func(b *book) { b.flowOutlives.Replace(func() bool { return true }) }},
}
