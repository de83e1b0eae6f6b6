package dns

import (
	"net/netip"
	"slices"
	"strings"

	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// endpoint is an address of a headless Service.
type endpoint struct {
	address netip.Addr
	// hostname tells it from others below the Service; it is named so, or has one made of its address.
	hostname string
	named    bool
	ports    []discoveryv1.EndpointPort
}

// ready are the endpoints of a Service that are ready (section 2.1), those of all slices together.
func (z *Zone) ready(key string) (found []endpoint) {
	for _, slice := range z.endpoints[key] {
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if !z.isReady(&e.Conditions) {
				continue
			}
			for _, text := range e.Addresses {
				a, err := netip.ParseAddr(text)
				if err != nil { // a slice of addressType FQDN
					continue
				}
				one := endpoint{address: a, hostname: strings.NewReplacer(".", "-", ":", "-").Replace(a.StringExpanded()), ports: slice.Ports}
				if e.Hostname != nil && *e.Hostname != "" {
					one.hostname, one.named = *e.Hostname, true
				}
				found = append(found, one)
			}
		}
	}
	return found
}

// isReady reads the conditions of an endpoint: "a nil value should be interpreted as true".
func (z *Zone) isReady(c *discoveryv1.EndpointConditions) bool {
	switch {
	case c.Serving != nil && !*c.Serving && z.faults.On(fault.DNSNotReadyUnpublished):
		return false
	case z.faults.On(fault.DNSUnreadyListed):
		return true
	case c.Ready == nil:
		return !z.faults.On(fault.DNSUnsaidReadinessHidden)
	}
	return *c.Ready
}

// addresses are the records of a name that lists endpoints, each address once.
func addresses(name string, t candidate.RecordType, endpoints []endpoint) (records []candidate.Record) {
	for _, e := range endpoints {
		r := candidate.Record{Name: name, Type: t, Address: e.address}
		if typeOf(e.address) == t && !slices.Contains(records, r) {
			records = append(records, r)
		}
	}
	return records
}

// typeOf is the type of the record that an address stands in.
func typeOf(a netip.Addr) candidate.RecordType {
	if a.Is4() {
		return candidate.A
	}
	return candidate.AAAA
}
