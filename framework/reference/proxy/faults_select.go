package proxy

import (
	"slices"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong with the traffic policies.
var policyFaults = []wrong{
	// Which policy governs what.
	{fault.PoliciesTied, func(b *book) {
		either := func(c *connection) bool { return local(c.serviceSpec(), ClusterIP) || local(c.serviceSpec(), NodePort) }
		b.internalLocal.Replace(either)
		b.externalLocal.Replace(either)
	}},
	{fault.ExternalPolicyOnClusterIP, func(b *book) {
		b.internalLocal.Wrap(func(right asking) asking {
			return func(c *connection) bool { return right(c) || local(c.serviceSpec(), NodePort) }
		})
	}},
	{fault.InternalPolicyOnExternal, func(b *book) {
		b.externalLocal.Wrap(func(right asking) asking {
			return func(c *connection) bool { return right(c) || local(c.serviceSpec(), ClusterIP) }
		})
	}},
	{fault.InternalLocalIgnored, func(b *book) { b.internalLocal.Off() }},
	{fault.ExternalLocalIgnored, func(b *book) { b.externalLocal.Off() }},
	{fault.SharedExternalIPOnePolicy, func(b *book) {
		b.externalLocal.Wrap(func(right asking) asking {
			return func(c *connection) bool {
				return right(c) || slices.ContainsFunc(c.programmed.sharing(c, ExternalIP), func(d *destination) bool { return local(&d.port.service.Spec, ExternalIP) })
			}
		})
	}},
	{fault.LocalFromInside, func(b *book) { b.externalTraffic.Replace(func(*connection) bool { return true }) }},
	{fault.DistributionBeforeLocal, func(b *book) {
		undistributed := func(right asking) asking {
			return func(c *connection) bool { return right(c) && c.serviceSpec().TrafficDistribution == nil }
		}
		b.internalLocal.Wrap(undistributed)
		b.externalLocal.Wrap(undistributed)
	}},

	// Policy Cluster.
	{fault.ClusterIPOnBackendNodes, onBackendNodesOnly(ClusterIP)},
	{fault.NodePortOnBackendNodes, onBackendNodesOnly(NodePort)},
	{fault.ClusterPrefersLocal, func(b *book) {
		b.clusterPolicy.Wrap(func(right governing) governing {
			return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
				among, none := right(c, all)
				if near := filter(among, c.isLocal); len(near) > 0 {
					return near, 0
				}
				return among, none
			}
		})
	}},
	{fault.NoEndpointsDropped, func(b *book) {
		b.clusterPolicy.Wrap(func(right governing) governing {
			return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
				among, _ := right(c, all)
				return among, Drop
			}
		})
	}},
	{fault.DistributionInsideOnly, func(b *book) {
		b.clusterPolicy.Wrap(func(right governing) governing {
			return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
				if c.Inside || c.serviceSpec().TrafficDistribution == nil {
					return right(c, all)
				}
				return filter(all, func(e *Endpoint) bool { return e.Ready }), Refuse
			}
		})
	}},

	// Policy Local.
	{fault.InternalLocalFallsBack, elsewhereIf(isClusterIP, fallBack)},
	{fault.ExternalLocalFallsBack, elsewhereIf(isExternal, fallBack)},
	{fault.ExternalLocalRefused, elsewhereIf(isExternal, func(*connection, []*Endpoint) ([]*Endpoint, Answer) { return nil, Refuse })},
	{fault.NodelessIsLocal, func(b *book) {
		b.onNode.Wrap(func(right func(*Node, *Endpoint) bool) func(*Node, *Endpoint) bool {
			return func(n *Node, e *Endpoint) bool { return right(n, e) || e.Node == "" }
		})
	}},
	{fault.LocalPodsUnseen, unseen(func(near []*Endpoint) bool { return len(near) > 1 })},
	{fault.UnreadyHidesReady, unseen(func(near []*Endpoint) bool {
		return slices.ContainsFunc(near, func(e *Endpoint) bool { return !e.Ready && !e.Terminating })
	})},
}

// onBackendNodesOnly is a fault: nodes without an endpoint do not serve one kind of address.
func onBackendNodesOnly(kind Kind) func(*book) {
	return func(b *book) {
		b.clusterPolicy.Wrap(func(right governing) governing {
			return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
				if c.dest.kind == kind && !slices.ContainsFunc(all, c.isLocal) {
					return nil, Drop
				}
				return right(c, all)
			}
		})
	}
}

// elsewhereIf is a fault: something else becomes of some connections under policy Local that only other nodes have endpoints for.
func elsewhereIf(some asking, do governing) func(*book) {
	return func(b *book) {
		b.onlyElsewhere.Wrap(func(right governing) governing {
			return func(c *connection, elsewhere []*Endpoint) ([]*Endpoint, Answer) {
				if some(c) {
					return do(c, elsewhere)
				}
				return right(c, elsewhere)
			}
		})
	}
}

func isClusterIP(c *connection) bool { return c.dest.kind == ClusterIP }
func isExternal(c *connection) bool  { return c.dest.kind != ClusterIP }

func fallBack(_ *connection, elsewhere []*Endpoint) ([]*Endpoint, Answer) { return elsewhere, 0 }

// unseen is a fault: under policy Local a node does not see its endpoints.
func unseen(when func(near []*Endpoint) bool) func(*book) {
	return func(b *book) {
		b.nodeEndpoints.Wrap(func(right selecting) selecting {
			return func(n *Node, all []*Endpoint) []*Endpoint {
				near := right(n, all)
				if when(near) {
					return nil
				}
				return near
			}
		})
	}
}

// What can be wrong with which endpoints are used.
var selectFaults = []wrong{
	{fault.UnreadyUsed, alsoReady(func(e *Endpoint) bool { return !e.Terminating })},
	{fault.TerminatingMixed, alsoReady(func(e *Endpoint) bool { return e.Serving && e.Terminating })},
	{fault.RolloutNodePortLost, func(b *book) {
		b.clusterPolicy.Wrap(func(right governing) governing {
			return func(c *connection, all []*Endpoint) ([]*Endpoint, Answer) {
				if c.dest.kind == NodePort && c.random.IntN(4) == 0 && slices.ContainsFunc(all, func(e *Endpoint) bool { return e.Terminating }) {
					return nil, Drop
				}
				return right(c, all)
			}
		})
	}},
	{fault.FinishedUsed, func(b *book) { b.lastResort.Wrap(or(func(e *Endpoint) bool { return !e.Serving })) }},
	{fault.TerminatingUnusedUnderCluster, func(b *book) { b.clusterLastResort.Off() }},
	{fault.TerminatingUnusedUnderLocal, func(b *book) { b.localLastResort.Off() }},
	{fault.FirstEndpointAlways, ofReady(func(es []*Endpoint) []*Endpoint { return es[:min(1, len(es))] })},
	{fault.LastEndpointNever, ofReady(func(es []*Endpoint) []*Endpoint {
		if len(es) > 1 {
			return es[:len(es)-1]
		}
		return es
	})},
}

// alsoReady is a fault: other endpoints are used as if they were ready.
func alsoReady(other func(*Endpoint) bool) func(*book) {
	return func(b *book) { b.ready.Wrap(or(other)) }
}

func or(other func(*Endpoint) bool) func(right func(*Endpoint) bool) func(*Endpoint) bool {
	return func(right func(*Endpoint) bool) func(*Endpoint) bool {
		return func(e *Endpoint) bool { return right(e) || other(e) }
	}
}

// ofReady is a fault: only some of the ready endpoints are used under policy Cluster.
func ofReady(some func([]*Endpoint) []*Endpoint) func(*book) {
	return func(b *book) {
		b.hinted.Wrap(func(right narrowing) narrowing {
			return func(n *Node, ready, all []*Endpoint) []*Endpoint { return some(right(n, ready, all)) }
		})
	}
}

// What can be wrong with hints.
var hintFaults = []wrong{
	{fault.HintsIgnored, func(b *book) {
		b.hinted.Replace(func(_ *Node, ready, _ []*Endpoint) []*Endpoint { return ready })
	}},
	{fault.ZoneOfStartMissed, func(b *book) {
		b.hinted.Wrap(func(right narrowing) narrowing {
			return func(n *Node, ready, all []*Endpoint) []*Endpoint {
				if n.starts > 1 {
					return ready
				}
				return right(n, ready, all)
			}
		})
	}},
	{fault.HintsOfUnreadyCount, func(b *book) {
		b.hintsComplete.Replace(func(n *Node, kind hinting, _, all []*Endpoint) bool { return n.allHave(kind, all) })
	}},
	{fault.HintsUsedWhenIncomplete, func(b *book) {
		b.hintsComplete.Replace(func(n *Node, kind hinting, ready, _ []*Endpoint) bool { return n.oneHas(kind, ready) })
	}},
	{fault.HintsUsedWhenNoneFits, func(b *book) {
		b.hinted.Replace(func(n *Node, ready, all []*Endpoint) []*Endpoint {
			for i := range n.hints {
				if n.hintsComplete.Do(n, n.hints[i].Do, ready, all) {
					return n.fitting(n.hints[i].Do, ready)
				}
			}
			return ready
		})
	}},
	{fault.HintsOfNodeByPlace, func(b *book) {
		forNode := rule.Find(b.hints, nodeHint.Name).Do
		b.hinted.Wrap(func(right narrowing) narrowing {
			return func(n *Node, ready, all []*Endpoint) []*Endpoint {
				if !n.oneHas(forNode, ready) {
					return right(n, ready, all)
				}
				if here := filter(ready, func(e *Endpoint) bool { return e.Node == n.Name }); len(here) > 0 {
					return here
				}
				return ready
			}
		})
	}},
}

func (n *Node) oneHas(kind hinting, es []*Endpoint) bool {
	return slices.ContainsFunc(es, func(e *Endpoint) bool {
		has, _ := kind(n, e)
		return has
	})
}
