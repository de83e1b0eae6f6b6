package proxy

import (
	"slices"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// candidates returns the endpoints that the connection may be given. none is why there are none.
func (c *connection) candidates() (among []*Endpoint, none Answer) {
	all := c.dest.port.endpoints(c.To.Addr().Is6())
	if c.ipvs() && c.realServers == droppedRealServers {
		all = nil
	}
	if c.underLocal() {
		return c.localPolicy.Do(c, all)
	}
	return c.clusterPolicy.Do(c, all)
}

// underLocal reports whether only endpoints of this node count. trafficDistribution changes nothing of it.
func (c *connection) underLocal() bool {
	if c.dest.kind == ClusterIP {
		return c.internalLocal.Do(c)
	}
	return c.externalLocal.Do(c) && c.externalTraffic.Do(c)
}

// Rules for the traffic policies.
var (
	internalLocal = rule.New("proxy-internal-policy", func(c *connection) bool {
		return local(c.serviceSpec(), ClusterIP)
	}, spec.ProxyInternalPolicyScope, spec.ProxyInternalLocalNodeEndpoints, spec.ProxyPoliciesIndependent, spec.ProxyTrafficDistributionLocalFirst)

	externalLocal = rule.New("proxy-external-policy", func(c *connection) bool {
		return local(c.serviceSpec(), NodePort)
	}, spec.ProxyExternalPolicyScope, spec.ProxyExternalLocalNodeEndpoints, spec.ProxyPoliciesIndependent, spec.ProxyExternalIPShared, spec.ProxyTrafficDistributionLocalFirst)

	// What comes from inside of the cluster to an address that is meant for the outside always follows Cluster.
	externalTraffic = rule.New("proxy-external-policy-of-outside-traffic", func(c *connection) bool {
		return !c.Inside
	}, spec.ProxyExternalLocalFromCluster)

	// Any endpoint of the cluster may be given, and every node serves.
	clusterPolicy = rule.New("proxy-policy-cluster", func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
		return c.clusterEndpoints(all), Refuse
	}, spec.ProxyInternalClusterAllEndpoints, spec.ProxyExternalClusterAllEndpoints, spec.ProxyNoEndpointsRefused,
		spec.ProxyClusterIPSpreads, spec.ProxyClusterIPOnEveryNode, spec.ProxyNotAnsweredBySingleHost, spec.ProxyNodePortEveryNode, spec.ProxyTrafficDistributionExternal)

	localPolicy = rule.New("proxy-policy-local", func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
		if near := c.localEndpoints(all); len(near) > 0 {
			return near, 0
		}
		elsewhere := c.clusterEndpoints(all)
		if len(elsewhere) == 0 {
			return nil, Refuse // as under policy Cluster: there is nobody anywhere
		}
		return c.onlyElsewhere.Do(c, elsewhere)
	}, spec.ProxyInternalLocalNodeEndpoints, spec.ProxyExternalLocalNodeEndpoints, spec.ProxyNoEndpointsRefused)

	onlyElsewhere = rule.New("proxy-policy-local-drops", func(*connection, []*Endpoint) ([]*Endpoint, Answer) {
		return nil, Drop
	}, spec.ProxyInternalLocalDrops, spec.ProxyExternalLocalDrops, spec.ProxyExternalLocalSilent)
)

// clusterEndpoints are those of policy Cluster: ready ones, and of these the ones that hints single out. Without any
// ready one, they are those that are terminating and still serve (KEP-1669, KEP-2433).
func (n *Node) clusterEndpoints(all []*Endpoint) []*Endpoint {
	ready := filter(all, n.ready.Do)
	if len(ready) == 0 {
		return n.clusterLastResort.Do(n, all)
	}
	return n.hinted.Do(n, ready, all)
}

// localEndpoints are those of policy Local: ready ones of this node, or, without any, those that are terminating and still serve.
func (n *Node) localEndpoints(all []*Endpoint) []*Endpoint {
	near := n.nodeEndpoints.Do(n, all)
	if ready := filter(near, n.ready.Do); len(ready) > 0 {
		return ready
	}
	return n.localLastResort.Do(n, near)
}

// Rules for which endpoints are used.
var (
	readyEndpoint = rule.New("proxy-ready-endpoints", func(e *Endpoint) bool {
		return e.Ready
	}, spec.ProxyPolicyReadyBackends, spec.ProxyUnreadyEndpointAvoided, spec.ProxyTerminatingAvoided, spec.ProxyEndpointComesBack)

	lastResort = rule.New("proxy-last-resort", func(e *Endpoint) bool {
		return e.Terminating && e.Serving
	}, spec.ProxyTerminatingLocalUsed, spec.ProxyTerminatingClusterUsed, spec.ProxyPolicyReadyBackends)

	clusterLastResort = rule.New("proxy-last-resort-of-policy-cluster", serving, spec.ProxyTerminatingClusterUsed)

	localLastResort = rule.New("proxy-last-resort-of-policy-local", serving, spec.ProxyTerminatingLocalUsed, spec.ProxyTerminatingDrains)

	nodeEndpoints = rule.New("proxy-endpoints-of-node", func(n *Node, all []*Endpoint) []*Endpoint {
		return filter(all, n.isLocal)
	}, spec.ProxyInternalLocalNodeEndpoints, spec.ProxyExternalLocalNodeEndpoints)

	// An endpoint without a node name is local to no node.
	onNode = rule.New("proxy-endpoint-on-node", func(n *Node, e *Endpoint) bool {
		return e.Node == n.Name
	}, spec.ProxyEndpointWithoutNodeRemote)
)

func (n *Node) isLocal(e *Endpoint) bool { return n.onNode.Do(n, e) }

func serving(n *Node, es []*Endpoint) []*Endpoint { return filter(es, n.lastResort.Do) }

// Rules for hints.
var (
	// Hints for nodes come before those for zones. They count where every ready endpoint has one and one fits.
	hinted = rule.New("proxy-hints-narrow", func(n *Node, ready, all []*Endpoint) []*Endpoint {
		for i := range n.hints {
			if !n.hintsComplete.Do(n, n.hints[i].Do, ready, all) {
				continue
			}
			if fitting := n.fitting(n.hints[i].Do, ready); len(fitting) > 0 {
				return fitting
			}
		}
		return ready
	}, spec.ProxyTopologyHintsUsed, spec.ProxyTopologyHintsIncomplete, spec.ProxyTrafficDistributionNodeFallsBack, spec.ProxyEveryEndpointSelected)

	hintsComplete = rule.New("proxy-hints-complete", func(n *Node, kind hinting, ready, _ []*Endpoint) bool {
		return n.allHave(kind, ready)
	}, spec.ProxyTopologyHintsIncomplete)

	nodeHint = rule.New("proxy-hint-for-node", func(n *Node, e *Endpoint) (has, fits bool) {
		return len(e.nodes) > 0, slices.Contains(e.nodes, n.Name)
	}, spec.ProxyTopologyHintsUsed, spec.ProxyTrafficDistributionSameNode)

	zoneHint = rule.New("proxy-hint-for-zone", func(n *Node, e *Endpoint) (has, fits bool) {
		return len(e.zones) > 0, slices.Contains(e.zones, n.Zone)
	}, spec.ProxyTopologyHintsUsed, spec.ProxyTrafficDistributionSameZone)
)

func (n *Node) allHave(kind hinting, es []*Endpoint) bool {
	for _, e := range es {
		if has, _ := kind(n, e); !has {
			return false
		}
	}
	return true
}

// fitting are the endpoints whose hints of a kind fit the node.
func (n *Node) fitting(kind hinting, es []*Endpoint) []*Endpoint {
	return filter(es, func(e *Endpoint) bool {
		_, fits := kind(n, e)
		return fits
	})
}

func filter(es []*Endpoint, keep func(*Endpoint) bool) (out []*Endpoint) {
	for _, e := range es {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}
