package proxy

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
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

// sticky returns the endpoint that the client has, if the Service asks for affinity and the sticky time is not over; nil otherwise.
func (c *connection) sticky(among []*Endpoint) *Endpoint {
	if !c.affinityAsked.Do(c.dest) {
		return nil
	}
	k := c.affinityKey.Do(c.dest.port, c.Source.Addr())
	e := c.affinity[k]
	if e == nil {
		return nil
	}
	var kept *Endpoint
	if c.now.Sub(e.used) <= c.affinityTimeout.Do(c.serviceSpec()) {
		kept = c.affinityEndpoint.Do(c.dest.port, among, e.endpoint)
	}
	if kept == nil {
		delete(c.affinity, k)
		return nil
	}
	c.affinityRenewed.Do(e, c.now)
	return kept
}

// remember ties the client to an endpoint.
func (c *connection) remember(e *Endpoint) {
	if c.affinityAsked.Do(c.dest) {
		c.affinity[c.affinityKey.Do(c.dest.port, c.Source.Addr())] = &affinityEntry{e.Address, c.now}
	}
}

// Rules for session affinity (document "Virtual IPs and Service Proxies", session affinity).
var (
	affinityAsked = rule.New("proxy-affinity-where-asked", func(d *destination) bool {
		return d.port.service.Spec.SessionAffinity == corev1.ServiceAffinityClientIP
	}, spec.ProxyAffinityClientIP, spec.ProxyAffinityNone, spec.ProxyIptablesAffinityOrRandom, spec.ProxyDualStackPolicies)

	// Each client address is tied by itself, and for each port of the Service.
	affinityKeyed = rule.New("proxy-affinity-of-client-and-port", func(sp *servicePort, client netip.Addr) affinityKey {
		return affinityKey{service: string(sp.service.UID), port: sp.port.Name + "/" + string(sp.port.Protocol), client: client}
	}, spec.ProxyAffinityClientIP, spec.ProxyAffinityClientsIndependent, spec.ProxyAffinityBackendAdded)

	affinityTimeout = rule.New("proxy-affinity-sticky-time", func(s *corev1.ServiceSpec) time.Duration {
		seconds := corev1.DefaultClientIPServiceAffinitySeconds
		if c := s.SessionAffinityConfig; c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil {
			seconds = *c.ClientIP.TimeoutSeconds
		}
		return time.Duration(seconds) * time.Second
	}, spec.ProxyAffinityTimeout, spec.ProxyAffinityTimeoutDefault)

	// The client keeps its endpoint as long as that is one of those that it may be given.
	affinityEndpoint = rule.New("proxy-affinity-ends-with-endpoint", func(_ *servicePort, among []*Endpoint, was netip.AddrPort) *Endpoint {
		if i := indexOf(among, was); i >= 0 {
			return among[i]
		}
		return nil
	}, spec.ProxyAffinityBackendLost, spec.ProxyAffinityBackendAdded)

	// Every connection begins the sticky time anew.
	affinityRenewed = rule.New("proxy-affinity-renewed", func(e *affinityEntry, now time.Time) {
		e.used = now
	}, spec.ProxyAffinityTimeout)
)

func indexOf(es []*Endpoint, address netip.AddrPort) int {
	return slices.IndexFunc(es, func(e *Endpoint) bool { return e.Address == address })
}

// local reports whether the policy that governs an address of the kind is Local.
func local(s *corev1.ServiceSpec, kind Kind) bool {
	if kind == ClusterIP {
		return s.InternalTrafficPolicy != nil && *s.InternalTrafficPolicy == corev1.ServiceInternalTrafficPolicyLocal
	}
	return s.ExternalTrafficPolicy == corev1.ServiceExternalTrafficPolicyLocal
}
