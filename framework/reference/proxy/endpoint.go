package proxy

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// Endpoint is an address and port that serves a port of a Service.
type Endpoint struct {
	Address netip.AddrPort
	// Node is empty where nobody said on which it is: such an endpoint is local to none.
	Node                        string
	Ready, Serving, Terminating bool
	zones, nodes                []string // hints
}

// join collects the endpoints of a port from the slices of its Service (proxy-endpoint-slices-joined): those whose port has the name and
// protocol of the Service's port. One that stands in several counts once, and a running one before a terminating one of the same address.
func (o *Objects) join(sp *servicePort, of []*discoveryv1.EndpointSlice, earlier *Objects) {
	if earlier != nil && o.faults.On(fault.EndpointsFrozen) {
		if was := earlier.find(sp); was != nil && len(was.v4)+len(was.v6) > 0 {
			sp.v4, sp.v6 = was.v4, was.v6
			return
		}
	}
	if o.faults.On(fault.OneSliceOnly) && len(of) > 1 {
		of = of[:1]
	}
	if len(sp.service.Spec.Selector) == 0 && o.faults.On(fault.SelectorlessNotServed) {
		return
	}
	for _, slice := range of {
		v6 := slice.AddressType == discoveryv1.AddressTypeIPv6
		if !v6 && slice.AddressType != discoveryv1.AddressTypeIPv4 {
			if o.faults.On(fault.UnusableEndpointBreaks) {
				sp.v4, sp.v6 = nil, nil
				return
			}
			continue
		}
		list := &sp.v4
		if v6 {
			list = &sp.v6
		}
		for _, p := range slice.Ports {
			if !o.portMatches(sp, &p) {
				continue
			}
			if p.Port == nil {
				if o.faults.On(fault.UnusableEndpointBreaks) {
					sp.v4, sp.v6 = nil, nil
					return
				}
				continue
			}
			for i := range slice.Endpoints {
				for _, e := range o.read(sp, &slice.Endpoints[i], *p.Port) {
					*list = o.insert(*list, e)
				}
			}
		}
	}
	if earlier != nil {
		o.keepRemoved(sp, earlier)
	}
}

// portMatches reports whether a port of a slice is that of the Service's port.
func (o *Objects) portMatches(sp *servicePort, p *discoveryv1.EndpointPort) bool {
	if o.faults.On(fault.PortNameIgnored) {
		return true
	}
	name, protocol := "", corev1.ProtocolTCP
	if p.Name != nil {
		name = *p.Name
	}
	if p.Protocol != nil {
		protocol = *p.Protocol
	}
	return name == sp.port.Name && (protocol == sp.port.Protocol || o.faults.On(fault.ProtocolIgnored))
}

// read makes the endpoints of an entry of a slice. What it leaves unsaid is ready, serves if it is ready, and does not terminate
// (KEP-1672).
func (o *Objects) read(sp *servicePort, e *discoveryv1.Endpoint, port int32) (out []*Endpoint) {
	c := e.Conditions
	one := Endpoint{Ready: c.Ready == nil || *c.Ready, Terminating: c.Terminating != nil && *c.Terminating}
	if one.Serving = one.Ready; c.Serving != nil {
		one.Serving = *c.Serving
	}
	if e.NodeName != nil {
		one.Node = *e.NodeName
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			one.zones = append(one.zones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			one.nodes = append(one.nodes, n.Name)
		}
	}
	if o.faults.On(fault.ServicePortToPods) {
		port = sp.port.Port
	}
	if len(sp.service.ports) > 0 && o.faults.On(fault.TrafficToFirstTarget) {
		if first := sp.service.ports[0].endpoints(len(e.Addresses) > 0 && netip.MustParseAddr(e.Addresses[0]).Is6()); len(first) > 0 {
			port = int32(first[0].Address.Port())
		}
	}
	for _, text := range e.Addresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		endpoint := one
		endpoint.Address = netip.AddrPortFrom(a, uint16(port))
		out = append(out, &endpoint)
	}
	return out
}

func (o *Objects) insert(list []*Endpoint, e *Endpoint) []*Endpoint {
	i := slices.IndexFunc(list, func(f *Endpoint) bool { return f.Address == e.Address })
	switch {
	case i < 0 || o.faults.On(fault.DuplicateEndpointsCount):
		return append(list, e)
	case o.faults.On(fault.TerminatingTwinWins):
		if e.Terminating {
			list[i] = e
		}
	case list[i].Terminating && !e.Terminating || !list[i].Ready && e.Ready:
		list[i] = e
	}
	return list
}

// keepRemoved is where faults forget that endpoints go or come.
func (o *Objects) keepRemoved(sp *servicePort, earlier *Objects) {
	was := earlier.find(sp)
	if was == nil {
		return
	}
	keep := func(list *[]*Endpoint, before []*Endpoint) {
		for _, e := range before {
			gone := !slices.ContainsFunc(*list, func(f *Endpoint) bool { return f.Address == e.Address })
			if gone && o.faults.On(fault.RemovedEndpointKept) {
				*list = append(*list, e)
			}
		}
		if o.faults.On(fault.AddedEndpointIgnored) && len(before) > 0 {
			*list = slices.DeleteFunc(*list, func(e *Endpoint) bool {
				return !slices.ContainsFunc(before, func(f *Endpoint) bool { return f.Address == e.Address })
			})
		}
		if o.faults.On(fault.ReadinessLatched) {
			for _, e := range *list {
				if i := slices.IndexFunc(before, func(f *Endpoint) bool { return f.Address == e.Address }); i >= 0 {
					e.Ready, e.Serving = before[i].Ready, before[i].Serving
				}
			}
		}
	}
	keep(&sp.v4, was.v4)
	keep(&sp.v6, was.v6)
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
