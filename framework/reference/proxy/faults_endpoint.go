package proxy

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with the endpoints of a port.
var endpointFaults = []wrong{
	// Which slices and ports are looked at.
	{fault.OneSliceOnly, func(b *book) {
		b.joined.Wrap(func(right joining) joining {
			return func(o *Objects, sp *servicePort, of []*discoveryv1.EndpointSlice) { right(o, sp, of[:min(1, len(of))]) }
		})
	}},
	{fault.SelectorlessNotServed, joinUnless(func(_ *Objects, sp *servicePort, _ []*discoveryv1.EndpointSlice) bool {
		return len(sp.service.Spec.Selector) == 0
	})},
	{fault.UnusableEndpointBreaks, joinUnless(func(o *Objects, sp *servicePort, of []*discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(of, func(slice *discoveryv1.EndpointSlice) bool {
			return sp.list(slice.AddressType) == nil || slices.ContainsFunc(slice.Ports, func(p discoveryv1.EndpointPort) bool {
				return p.Port == nil && o.endpointPort.Do(sp, &p)
			})
		})
	})},
	{fault.PortNameIgnored, func(b *book) {
		b.endpointPort.Replace(func(*servicePort, *discoveryv1.EndpointPort) bool { return true })
	}},
	{fault.ServicePortToPods, func(b *book) {
		b.targetPort.Replace(func(sp *servicePort, _ *discoveryv1.EndpointSlice, _ *discoveryv1.EndpointPort) int32 {
			return sp.port.Port
		})
	}},
	{fault.TrafficToFirstTarget, func(b *book) {
		b.targetPort.Wrap(func(right numbering) numbering {
			return func(sp *servicePort, slice *discoveryv1.EndpointSlice, p *discoveryv1.EndpointPort) int32 {
				if ports := sp.service.ports; len(ports) > 0 {
					if first := *ports[0].list(slice.AddressType); len(first) > 0 {
						return int32(first[0].Address.Port())
					}
				}
				return right(sp, slice, p)
			}
		})
	}},
	{fault.DuplicateEndpointsCount, func(b *book) {
		b.countedOnce.Replace(func(_ *Objects, list []*Endpoint, e *Endpoint) []*Endpoint { return append(list, e) })
	}},
	{fault.ServingUnsetIsNot, func(b *book) {
		b.servingUnset.Replace(func(c *discoveryv1.EndpointConditions) bool { return c.Ready == nil || *c.Ready })
	}},
	{fault.ReadyUnsetIsNot, func(b *book) { b.readyUnset.Off() }},
	{fault.TerminatingTwinWins, func(b *book) { b.outweighs.Replace(func(e, _ *Endpoint) bool { return e.Terminating }) }},
	{fault.UnreadyTwinWins, func(b *book) {
		b.outweighs.Wrap(func(right func(e, other *Endpoint) bool) func(e, other *Endpoint) bool {
			return func(e, other *Endpoint) bool {
				if e.Terminating || other.Terminating || e.Ready == other.Ready {
					return right(e, other)
				}
				return other.Ready
			}
		})
	}},
	{fault.EndpointsBeyondTable, func(b *book) {
		var of *Objects
		endpoints := 0 // of these objects
		b.joined.Wrap(func(right joining) joining {
			return func(o *Objects, sp *servicePort, slices []*discoveryv1.EndpointSlice) {
				right(o, sp, slices)
				if o != of {
					of, endpoints = o, 0
				}
				if endpoints += len(sp.v4); endpoints > fewEndpoints {
					sp.v4 = sp.v4[:min(1, len(sp.v4))]
				}
			}
		})
	}},

	// Changes of endpoints.
	{fault.EndpointsFrozen, remembering(func(b *book, earlier func() *Objects) {
		b.joined.Wrap(func(right joining) joining {
			return func(o *Objects, sp *servicePort, of []*discoveryv1.EndpointSlice) {
				if was := earlier().find(sp); was != nil && len(was.v4)+len(was.v6) > 0 {
					sp.v4, sp.v6 = was.v4, was.v6
					return
				}
				right(o, sp, of)
			}
		})
	})},
	{fault.RemovedEndpointKept, afterJoin(func(now, before []*Endpoint) []*Endpoint {
		for _, e := range before {
			if indexOf(now, e.Address) < 0 {
				now = append(now, e)
			}
		}
		return now
	})},
	{fault.AddedEndpointIgnored, afterJoin(func(now, before []*Endpoint) []*Endpoint {
		if len(before) == 0 {
			return now
		}
		return slices.DeleteFunc(now, func(e *Endpoint) bool { return indexOf(before, e.Address) < 0 })
	})},
	{fault.ReturnedEndpointUnused, terminatedStay},
	{fault.ReadinessLatched, afterJoin(func(now, before []*Endpoint) []*Endpoint {
		for _, e := range now {
			if i := indexOf(before, e.Address); i >= 0 {
				e.Ready, e.Serving = before[i].Ready, before[i].Serving
			}
		}
		return now
	})},
}

// terminatedStay is a fault: what was terminating once is never ready again.
func terminatedStay(b *book) {
	terminated := map[string]bool{}
	b.joined.Wrap(func(right joining) joining {
		return func(o *Objects, sp *servicePort, of []*discoveryv1.EndpointSlice) {
			right(o, sp, of)
			for _, e := range slices.Concat(sp.v4, sp.v6) {
				key := sp.flow() + e.Address.String()
				if e.Terminating {
					terminated[key] = true
				} else if terminated[key] {
					e.Ready = false
				}
			}
		}
	})
}

// fewEndpoints is where EndpointsBeyondTable begins.
const fewEndpoints = 5000

// anyProtocolOfName takes the ports of one name for the same, whatever their protocols.
func anyProtocolOfName(sp *servicePort, p *discoveryv1.EndpointPort) bool {
	return ptr.Deref(p.Name, "") == sp.port.Name
}

// joinUnless is a fault: some ports have no endpoints.
func joinUnless(some func(*Objects, *servicePort, []*discoveryv1.EndpointSlice) bool) func(*book) {
	return func(b *book) {
		b.joined.Wrap(func(right joining) joining {
			return func(o *Objects, sp *servicePort, of []*discoveryv1.EndpointSlice) {
				if !some(o, sp, of) {
					right(o, sp, of)
				}
			}
		})
	}
}

// afterJoin is a fault: what endpoints there were before has a say in what there are now.
func afterJoin(change func(now, before []*Endpoint) []*Endpoint) func(*book) {
	return remembering(func(b *book, earlier func() *Objects) {
		b.joined.Wrap(func(right joining) joining {
			return func(o *Objects, sp *servicePort, of []*discoveryv1.EndpointSlice) {
				right(o, sp, of)
				if was := earlier().find(sp); was != nil {
					sp.v4, sp.v6 = change(sp.v4, was.v4), change(sp.v6, was.v6)
				}
			}
		})
	})
}

// remembering is a fault that looks at what was known before.
func remembering(edit func(b *book, earlier func() *Objects)) func(*book) {
	return func(b *book) {
		last := &Objects{}
		edit(b, func() *Objects { return last })
		b.indexed.Wrap(func(right indexing) indexing {
			return func(o *Objects, services []*corev1.Service, of []*discoveryv1.EndpointSlice) {
				right(o, services, of)
				last = o
			}
		})
	}
}

// find returns the same port of the same Service at this moment.
func (o *Objects) find(sp *servicePort) *servicePort {
	for _, s := range o.services {
		if s.UID != sp.service.UID {
			continue
		}
		for _, p := range s.ports {
			if p.port.Name == sp.port.Name && p.port.Protocol == sp.port.Protocol {
				return p
			}
		}
	}
	return nil
}
