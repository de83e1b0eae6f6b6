package proxy

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// affinityKey is what session affinity holds for: a client address and a port of a Service.
type affinityKey struct {
	service string
	port    string
	client  netip.Addr
}

type affinityEntry struct {
	endpoint netip.AddrPort
	used     time.Time
}

// affinityKeyOf makes the key of a packet.
func (n *Node) affinityKeyOf(sp *servicePort, client netip.Addr) affinityKey {
	k := affinityKey{service: string(sp.service.UID), port: sp.port.Name + "/" + string(sp.port.Protocol), client: client}
	switch {
	case n.faults.On(fault.AffinityForAllClients):
		k.client = netip.Addr{}
	case n.faults.On(fault.AffinityForWholeService):
		k.port = ""
	case n.faults.On(fault.AffinityLostOnChange):
		k.service += sp.service.ResourceVersion
	case n.faults.On(fault.AffinityByEndpointCount):
		k.port += string(rune('0' + len(sp.v4)))
	}
	return k
}

// sticky returns the endpoint that the client has, if the Service asks for affinity and the sticky time is not over; nil otherwise.
// Every connection begins the time anew.
func (n *Node) sticky(now time.Time, sp *servicePort, d *destination, client netip.Addr, among []*Endpoint) *Endpoint {
	timeout, ok := n.affinityTimeout(sp, d)
	if !ok {
		return nil
	}
	k := n.affinityKeyOf(sp, client)
	e := n.affinity[k]
	if e == nil || now.Sub(e.used) > timeout {
		delete(n.affinity, k)
		return nil
	}
	i := slices.IndexFunc(among, func(f *Endpoint) bool { return f.Address == e.endpoint })
	if i < 0 && n.faults.On(fault.AffinityToLostEndpoint) {
		for _, f := range sp.endpoints(client.Is6()) {
			if f.Address == e.endpoint {
				return f
			}
		}
		return &Endpoint{Address: e.endpoint}
	}
	if i < 0 && n.faults.On(fault.AffinityForWholeService) {
		i = slices.IndexFunc(among, func(f *Endpoint) bool { return f.Address.Addr() == e.endpoint.Addr() })
	}
	if i < 0 {
		delete(n.affinity, k)
		return nil
	}
	if !n.faults.On(fault.AffinityNotRefreshed) {
		e.used = now
	}
	return among[i]
}

// remember ties the client to an endpoint.
func (n *Node) remember(now time.Time, sp *servicePort, d *destination, client netip.Addr, e *Endpoint) {
	if _, ok := n.affinityTimeout(sp, d); ok {
		n.affinity[n.affinityKeyOf(sp, client)] = &affinityEntry{e.Address, now}
	}
}

// affinityTimeout is the sticky time of a Service (virtual-ips#session-stickiness-timeout); there is none without affinity.
func (n *Node) affinityTimeout(sp *servicePort, d *destination) (time.Duration, bool) {
	spec := &sp.service.Spec
	f := n.faults
	switch {
	case f.On(fault.AffinityAlways):
		return time.Hour, true
	case spec.SessionAffinity != corev1.ServiceAffinityClientIP, f.On(fault.AffinityNever),
		sp.port.Protocol == corev1.ProtocolUDP && f.On(fault.AffinityTCPOnly),
		d.kind == NodePort && f.On(fault.AffinityNotOnNodePorts),
		(local(spec, d.kind)) && f.On(fault.AffinityNotUnderLocal):
		return 0, false
	}
	seconds := corev1.DefaultClientIPServiceAffinitySeconds
	if c := spec.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
		seconds = *c.ClientIP.TimeoutSeconds
	}
	timeout := time.Duration(seconds) * time.Second
	switch {
	case f.On(fault.AffinityNeverExpires):
		timeout = 1000 * time.Hour
	case f.On(fault.AffinityTimeoutMinutes):
		timeout *= 60
	case f.On(fault.AffinityTimeoutShort):
		timeout /= 1000
	case f.On(fault.AffinityTimeoutCapped):
		timeout = min(timeout, time.Hour)
	}
	return timeout, true
}

// local reports whether the policy that governs an address of the kind is Local.
func local(spec *corev1.ServiceSpec, kind Kind) bool {
	if kind == ClusterIP {
		return spec.InternalTrafficPolicy != nil && *spec.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
	}
	return spec.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
