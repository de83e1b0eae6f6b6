package reference

import (
	"net/netip"

	"github.com/service-conformance/conformance/framework/reference/proxy"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// way is that of a connection which a proxy has sent to an endpoint.
type way struct {
	from  *sender
	entry *host // whose proxy it was
	at    netip.Addr
	to    *pod
	kind  proxy.Kind // of the address
	local bool       // externalTrafficPolicy is Local
}

// It does not matter where client and endpoint are, or in whose network (document "Virtual IPs").
var wayOpen = rule.New("every-way-open", func(*way) bool { return true }, spec.ProxyEveryWay, spec.ProxyEveryWayLocal,
	spec.ProxyClusterIPReachable, spec.ProxyNodePortReachable, spec.ProxyNodePortEveryNode, spec.ProxyExternalIPReachable, spec.ProxyLoadBalancerReachable, spec.ProxyExternalLocalFromCluster)

// byPod, byHost and byOutside say who the client is.
func (w *way) byPod() bool     { return w.from.pod != nil }
func (w *way) byHost() bool    { return w.from.pod == nil && w.from.inside }
func (w *way) byOutside() bool { return !w.from.inside }

// home says that the endpoint is on the node of the client, which is inside.
func (w *way) home() bool { return w.from.inside && w.to.host == w.from.entry }

// outward says that the address is one for clients outside that no node has.
func (w *way) outward() bool { return w.kind == proxy.ExternalIP || w.kind == proxy.LoadBalancer }
