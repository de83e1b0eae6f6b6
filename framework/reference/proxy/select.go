package proxy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// candidates returns the endpoints that a connection to the destination may be given at this node. none is why there are none.
func (n *Node) candidates(d *destination, ipv6, inside bool) (among []*Endpoint, none Answer) {
	sp := d.port
	all := sp.endpoints(ipv6)
	if n.ipvs() && n.realServers == droppedRealServers {
		all = nil
	}
	localPolicy := n.localPolicy(&sp.service.Spec, d.kind, inside)
	distributed := sp.service.Spec.TrafficDistribution != nil
	if distributed && n.faults.On(fault.DistributionBeforeLocal) {
		localPolicy = false
	}
	cluster := n.clusterEndpoints(all)
	if distributed && !inside && !localPolicy && n.faults.On(fault.DistributionInsideOnly) {
		return filter(all, func(e *Endpoint) bool { return e.Ready }), Refuse
	}
	if !localPolicy {
		if n.faults.On(fault.ClusterIPOnBackendNodes) && d.kind == ClusterIP && !slices.ContainsFunc(all, n.isLocal) {
			return nil, Drop
		}
		if n.faults.On(fault.NodePortOnBackendNodes) && d.kind == NodePort && !slices.ContainsFunc(all, n.isLocal) {
			return nil, Drop
		}
		if n.faults.On(fault.ClusterPrefersLocal) {
			if near := filter(cluster, n.isLocal); len(near) > 0 {
				return near, 0
			}
		}
		if len(cluster) == 0 && n.faults.On(fault.NoEndpointsDropped) {
			return nil, Drop
		}
		return cluster, Refuse
	}
	near := n.localEndpoints(all)
	switch {
	case len(near) > 0:
		return near, 0
	case len(cluster) == 0:
		return nil, Refuse // as under policy Cluster: there is nobody anywhere
	case d.kind == ClusterIP && n.faults.On(fault.InternalLocalFallsBack), d.kind != ClusterIP && n.faults.On(fault.ExternalLocalFallsBack):
		return cluster, 0
	case d.kind != ClusterIP && n.faults.On(fault.ExternalLocalRefused):
		return nil, Refuse
	}
	return nil, Drop
}

// localPolicy reports whether only endpoints of this node count. What comes from inside of the cluster to an address that is meant for the outside
// always follows Cluster (service-v1#spec.externalTrafficPolicy).
func (n *Node) localPolicy(spec *corev1.ServiceSpec, kind Kind, inside bool) bool {
	f := n.faults
	internal, external := local(spec, ClusterIP), local(spec, NodePort)
	if f.On(fault.PoliciesTied) {
		internal = internal || external
		external = internal
	}
	if kind == ClusterIP {
		if f.On(fault.ExternalPolicyOnClusterIP) {
			internal = internal || external
		}
		return internal && !f.On(fault.InternalLocalIgnored)
	}
	if f.On(fault.InternalPolicyOnExternal) {
		external = external || internal
	}
	return external && (!inside || f.On(fault.LocalFromInside)) && !f.On(fault.ExternalLocalIgnored)
}

func (n *Node) isLocal(e *Endpoint) bool {
	return e.Node == n.Name || e.Node == "" && n.faults.On(fault.NodelessIsLocal)
}

// clusterEndpoints are those of policy Cluster: ready ones, of these the ones that hints single out; without any, those that are
// terminating and still serve (KEP-1669, KEP-2433).
func (n *Node) clusterEndpoints(all []*Endpoint) []*Endpoint {
	f := n.faults
	ready := filter(all, func(e *Endpoint) bool {
		return e.Ready || f.On(fault.UnreadyUsed) && !e.Terminating || f.On(fault.TerminatingMixed) && e.Serving && e.Terminating
	})
	if len(ready) == 0 {
		if f.On(fault.TerminatingUnusedUnderCluster) {
			return nil
		}
		return filter(all, n.lastResort)
	}
	ready = n.hinted(ready, all)
	if f.On(fault.FirstEndpointAlways) {
		return ready[:1]
	}
	if f.On(fault.LastEndpointNever) && len(ready) > 1 {
		return ready[:len(ready)-1]
	}
	return ready
}

// lastResort are endpoints that are terminating and still serve.
func (n *Node) lastResort(e *Endpoint) bool {
	return e.Terminating && (e.Serving || n.faults.On(fault.FinishedUsed)) || n.faults.On(fault.FinishedUsed) && !e.Serving
}

// localEndpoints are those of policy Local: ready ones of this node, or, without any, those that are terminating and still serve.
func (n *Node) localEndpoints(all []*Endpoint) []*Endpoint {
	f := n.faults
	near := filter(all, n.isLocal)
	if f.On(fault.LocalPodsUnseen) && len(near) > 1 {
		return nil
	}
	if f.On(fault.UnreadyHidesReady) && slices.ContainsFunc(near, func(e *Endpoint) bool { return !e.Ready && !e.Terminating }) {
		return nil
	}
	ready := filter(near, func(e *Endpoint) bool {
		return e.Ready || f.On(fault.UnreadyUsed) && !e.Terminating || f.On(fault.TerminatingMixed) && e.Serving && e.Terminating
	})
	if len(ready) > 0 {
		return ready
	}
	if f.On(fault.TerminatingUnusedUnderLocal) {
		return nil
	}
	return filter(near, n.lastResort)
}

// hinted narrows ready endpoints down to those whose hints fit the node, or its zone, where all have hints and one fits.
func (n *Node) hinted(ready, all []*Endpoint) []*Endpoint {
	f := n.faults
	if f.On(fault.HintsIgnored) || n.starts > 1 && f.On(fault.ZoneOfStartMissed) {
		return ready
	}
	asked := ready
	if f.On(fault.HintsOfUnreadyCount) {
		asked = all
	}
	forNode := func(e *Endpoint) bool { return len(e.nodes) > 0 }
	if f.On(fault.HintsOfNodeByPlace) && slices.ContainsFunc(asked, forNode) {
		if here := filter(ready, func(e *Endpoint) bool { return e.Node == n.Name }); len(here) > 0 {
			return here
		}
		return ready
	}
	for _, by := range []struct {
		has, fits func(*Endpoint) bool
	}{
		{forNode, func(e *Endpoint) bool { return slices.Contains(e.nodes, n.Name) }},
		{func(e *Endpoint) bool { return len(e.zones) > 0 }, func(e *Endpoint) bool { return slices.Contains(e.zones, n.Zone) }},
	} {
		if !slices.ContainsFunc(asked, by.has) {
			continue
		}
		complete := !slices.ContainsFunc(asked, func(e *Endpoint) bool { return !by.has(e) })
		fitting := filter(ready, by.fits)
		switch {
		case !complete && !f.On(fault.HintsUsedWhenIncomplete):
		case len(fitting) > 0:
			return fitting
		case f.On(fault.HintsUsedWhenNoneFits):
			return nil
		}
	}
	return ready
}

func filter(es []*Endpoint, keep func(*Endpoint) bool) (out []*Endpoint) {
	for _, e := range es {
		if keep(e) {
			out = append(out, e)
		}
	}
	return out
}
