package proxy

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Endpoint is an address and port that serves a port of a Service.
type Endpoint struct {
	Address netip.AddrPort
	// Node is empty where nobody said on which it is.
	Node                        string
	Ready, Serving, Terminating bool
	zones, nodes                []string // hints
}

// Rules for the endpoints of a port of a Service.
var (
	// They are those of all slices of the Service. Slices of no known address type and ports without a number are left out.
	joined = rule.New("proxy-slices-joined", func(o *Objects, sp *servicePort, of []*discoveryv1.EndpointSlice) {
		for _, slice := range of {
			list := sp.list(slice.AddressType)
			if list == nil {
				continue
			}
			for i := range slice.Ports {
				p := &slice.Ports[i]
				if p.Port == nil || !o.endpointPort.Do(sp, p) {
					continue
				}
				port := uint16(o.targetPort.Do(sp, slice, p))
				for k := range slice.Endpoints {
					for _, e := range o.read(&slice.Endpoints[k], port) {
						*list = o.countedOnce.Do(o, *list, e)
					}
				}
			}
		}
	}, spec.ProxyEndpointSlicesJoined, spec.ProxyEndpointUnusableIgnored, spec.ProxySelectorlessSlicesUsed, spec.ProxyEndpointAdded,
		spec.ProxyEndpointRemoved, spec.ProxyClusterIPOutlivesBackends, spec.ProxyBackendChangeTransparent, spec.ProxyIPVSWatches)

	endpointPort = rule.New("proxy-endpoint-port-by-name", func(sp *servicePort, p *discoveryv1.EndpointPort) bool {
		return ptr.Deref(p.Name, "") == sp.port.Name && ptr.Deref(p.Protocol, corev1.ProtocolTCP) == sp.port.Protocol
	}, spec.ProxyEndpointPortNameMatched, spec.ProxyCapturesProtocol)

	targetPort = rule.New("proxy-target-port", func(_ *servicePort, _ *discoveryv1.EndpointSlice, p *discoveryv1.EndpointPort) int32 {
		return *p.Port
	}, spec.ProxyTargetPortNumber, spec.ProxyPortsIndependent)

	countedOnce = rule.New("proxy-endpoint-counts-once", func(o *Objects, list []*Endpoint, e *Endpoint) []*Endpoint {
		i := indexOf(list, e.Address)
		if i < 0 {
			return append(list, e)
		}
		if o.outweighs.Do(e, list[i]) {
			list[i] = e
		}
		return list
	}, spec.ProxyEndpointDuplicate)

	// A running endpoint counts before a terminating one of the same address.
	outweighs = rule.New("proxy-running-endpoint-first", func(e, other *Endpoint) bool {
		return other.Terminating && !e.Terminating || !other.Ready && e.Ready
	}, spec.ProxyEndpointAddressReused, spec.ProxyEndpointReadyInOneSlice)
)

// list is where endpoints of an address type go; nil if that is not known.
func (p *servicePort) list(of discoveryv1.AddressType) *[]*Endpoint {
	switch of {
	case discoveryv1.AddressTypeIPv4:
		return &p.v4
	case discoveryv1.AddressTypeIPv6:
		return &p.v6
	}
	return nil
}

// Rules for conditions that an entry of a slice does not name.
var (
	readyUnset = rule.New("proxy-ready-unset", func(*discoveryv1.EndpointConditions) bool { return true }, spec.ProxyReadyUnsetUsed)

	servingUnset = rule.New("proxy-serving-unset", func(*discoveryv1.EndpointConditions) bool { return true }, spec.ProxyConditionUnset)
)

// read makes the endpoints of an entry of a slice. What it leaves unsaid does not terminate.
func (o *Objects) read(e *discoveryv1.Endpoint, port uint16) (out []*Endpoint) {
	c := &e.Conditions
	one := Endpoint{Node: ptr.Deref(e.NodeName, ""), Terminating: ptr.Deref(c.Terminating, false)}
	if one.Ready = c.Ready != nil && *c.Ready; c.Ready == nil {
		one.Ready = o.readyUnset.Do(c)
	}
	if one.Serving = c.Serving != nil && *c.Serving; c.Serving == nil {
		one.Serving = o.servingUnset.Do(c)
	}
	if e.Hints != nil {
		for _, z := range e.Hints.ForZones {
			one.zones = append(one.zones, z.Name)
		}
		for _, n := range e.Hints.ForNodes {
			one.nodes = append(one.nodes, n.Name)
		}
	}
	for _, text := range e.Addresses {
		a, err := netip.ParseAddr(text)
		if err != nil {
			continue
		}
		endpoint := one
		endpoint.Address = netip.AddrPortFrom(a, port)
		out = append(out, &endpoint)
	}
	return out
}
