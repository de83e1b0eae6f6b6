package proxy

import (
	"net/netip"
	"slices"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Node is a node with its proxy: what the proxy has programmed, and what the kernel remembers. It is not safe for concurrent use.
type Node struct {
	candidate.Node
	// Own nodes belong to one check and are configured by it; the proxy of the others is always up to date.
	Own bool
	// Draining nodes are about to be removed: their health check fails (KEP-3836).
	Draining bool

	*book
	config     candidate.ProxyConfiguration
	running    bool
	starts     int      // how often the proxy was started
	programmed *Objects // nil before the first sync
	// Periods of the proxy, and what it has done.
	minSync, period time.Duration
	lastSync        time.Time
	syncs           int
	changes         int // endpoint changes that were programmed
	failures        int // updates that failed
	flushed         bool
	dropped         bool // single rules are gone
	blocked         bool
	twins           bool      // of all virtual servers
	pending         time.Time // since when there is a change that could not be programmed
	cutOff          bool
	expired         bool // its watches, for the API server was started again meanwhile
	neighbours      bool // rules of another program are there
	realServers     realServers

	affinity map[affinityKey]*affinityEntry
	turns    map[*servicePort]int // of rr
}

// NewNode makes a node without a proxy.
func (r *Rules) NewNode(as candidate.Node, own bool) *Node {
	return &Node{Node: as, Own: own, book: r.book, affinity: map[affinityKey]*affinityEntry{}, turns: map[*servicePort]int{}}
}

// has reports whether an address belongs to the node; loopback addresses belong to every node.
func (n *Node) has(a netip.Addr) bool {
	return a.IsLoopback() || slices.Contains(n.Addresses, a) || slices.Contains(n.SecondaryAddresses, a)
}

// Address is the node's own address of the family of another one.
func (n *Node) Address(like netip.Addr) netip.Addr {
	for _, a := range n.Addresses {
		if a.Is4() == like.Is4() {
			return a
		}
	}
	return netip.Addr{}
}

func (n *Node) nftables() bool { return n.config.Mode == "nftables" }
func (n *Node) ipvs() bool     { return n.config.Mode == "ipvs" }

// Rules for the addresses of a node that serve node ports.
var (
	nodePortAddress = rule.New("proxy-node-ports-on-address", func(n *Node, a netip.Addr) bool {
		allowed := n.config.NodePortAddresses
		switch {
		case n.nftables() && a.IsLoopback():
			return false
		case len(allowed) == 0:
			return n.nodePortDefault.Do(n, a)
		case slices.Contains(allowed, "primary"):
			return slices.Contains(n.Addresses, a)
		}
		return slices.ContainsFunc(allowed, func(text string) bool {
			p, err := netip.ParsePrefix(text)
			return err == nil && p.Contains(a)
		})
	}, spec.ProxyNodePortAddresses, spec.ProxyNodePortLoopbackDeclared, spec.ProxyNftablesNodePortsPrimary)

	// Every address serves them, in nftables mode the primary ones.
	nodePortDefault = rule.New("proxy-node-ports-by-default", func(n *Node, a netip.Addr) bool {
		return !n.nftables() || slices.Contains(n.Addresses, a)
	}, spec.ProxyNodePortReachable, spec.ProxyNodePortEveryNode, spec.ProxyDualStackNodePorts, spec.ProxyNftablesNodePortsPrimary)
)

// Starts is how often the proxy of the node was started.
func (n *Node) Starts() int { return n.starts }

// IsFirst reports whether a packet was sent to the first endpoint of its Service.
func (n *Node) IsFirst(d Decision, ipv6 bool) bool {
	if n.programmed == nil {
		return false
	}
	for _, s := range n.programmed.services {
		for _, sp := range s.ports {
			if sp.flow() == d.Service {
				return indexOf(sp.endpoints(ipv6), d.To) == 0
			}
		}
	}
	return false
}
