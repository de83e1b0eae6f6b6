package proxy

import (
	"net/netip"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with session affinity.
var affinityFaults = []wrong{
	// Where there is affinity.
	{fault.AffinityAlways, func(b *book) {
		b.affinityAsked.Replace(func(*destination) bool { return true })
		b.affinityTimeout.Replace(func(*corev1.ServiceSpec) time.Duration { return time.Hour })
	}},
	{fault.AffinityNever, func(b *book) { b.affinityAsked.Off() }},
	{fault.AffinityTCPOnly, noAffinity(func(d *destination) bool { return d.port.port.Protocol == corev1.ProtocolUDP })},
	{fault.AffinityNotOnNodePorts, noAffinity(func(d *destination) bool { return d.kind == NodePort })},
	{fault.AffinityNotUnderLocal, noAffinity(func(d *destination) bool { return local(&d.port.service.Spec, d.kind) })},

	// What it holds for.
	{fault.AffinityForAllClients, affinityKeyWith(func(_ *servicePort, k *affinityKey) { k.client = netip.Addr{} })},
	{fault.AffinityForWholeService, func(b *book) {
		affinityKeyWith(func(_ *servicePort, k *affinityKey) { k.port = "" })(b)
		b.affinityEndpoint.Wrap(func(right keeping) keeping { // on its pod, whatever the port
			return func(sp *servicePort, among []*Endpoint, was netip.AddrPort) *Endpoint {
				if e := right(sp, among, was); e != nil {
					return e
				}
				if i := slices.IndexFunc(among, func(e *Endpoint) bool { return e.Address.Addr() == was.Addr() }); i >= 0 {
					return among[i]
				}
				return nil
			}
		})
	}},
	{fault.AffinityLostOnChange, affinityKeyWith(func(sp *servicePort, k *affinityKey) { k.service += sp.service.ResourceVersion })},
	{fault.AffinityByEndpointCount, affinityKeyWith(func(sp *servicePort, k *affinityKey) { k.port += string(rune('0' + len(sp.v4))) })},

	// How long it lasts.
	{fault.AffinityToLostEndpoint, func(b *book) {
		b.affinityEndpoint.Wrap(func(right keeping) keeping {
			return func(sp *servicePort, among []*Endpoint, was netip.AddrPort) *Endpoint {
				if e := right(sp, among, was); e != nil {
					return e
				}
				all := sp.endpoints(was.Addr().Is6())
				if i := indexOf(all, was); i >= 0 {
					return all[i]
				}
				return &Endpoint{Address: was}
			}
		})
	}},
	{fault.AffinityNotRefreshed, func(b *book) { b.affinityRenewed.Off() }},
	{fault.AffinityNeverExpires, affinityFor(func(time.Duration) time.Duration { return 1000 * time.Hour })},
	{fault.AffinityTimeoutMinutes, affinityFor(func(right time.Duration) time.Duration { return right * 60 })},
	{fault.AffinityTimeoutShort, affinityFor(func(right time.Duration) time.Duration { return right / 1000 })},
	{fault.AffinityTimeoutCapped, affinityFor(func(right time.Duration) time.Duration { return min(right, time.Hour) })},
}

// noAffinity is a fault: some destinations have none.
func noAffinity(some func(*destination) bool) func(*book) {
	return func(b *book) {
		b.affinityAsked.Wrap(func(right func(*destination) bool) func(*destination) bool {
			return func(d *destination) bool { return right(d) && !some(d) }
		})
	}
}

// affinityKeyWith is a fault: affinity holds for something else.
func affinityKeyWith(change func(sp *servicePort, k *affinityKey)) func(*book) {
	return func(b *book) {
		b.affinityKey.Wrap(func(right keying) keying {
			return func(sp *servicePort, client netip.Addr) affinityKey {
				k := right(sp, client)
				change(sp, &k)
				return k
			}
		})
	}
}

// affinityFor is a fault: the sticky time is another one.
func affinityFor(change func(right time.Duration) time.Duration) func(*book) {
	return func(b *book) {
		b.affinityTimeout.Wrap(func(right func(*corev1.ServiceSpec) time.Duration) func(*corev1.ServiceSpec) time.Duration {
			return func(s *corev1.ServiceSpec) time.Duration { return change(right(s)) }
		})
	}
}
