package dns

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// A listing rule returns the names that the address of a question has.
type listing = func(z *Zone, reverse string) (names []string)

// Rules for the names of addresses (sections 2.3.3 and 2.4.3).
var (
	namesOfClusterIP = rule.New("dns-names-of-cluster-ip", func(z *Zone, reverse string) (names []string) {
		for _, svc := range z.services {
			for _, ip := range svc.Spec.ClusterIPs {
				if isReverse(reverse, ip) {
					names = append(names, serviceName(svc))
				}
			}
		}
		return names
	}, spec.ProxyDNSReverse)

	// An endpoint has one name, with a hostname or without.
	nameOfEndpoint = rule.New("dns-name-of-endpoint", func(e *endpoint, service string) (name string) { return e.hostname + "." + service }, spec.ProxyDNSHeadlessReverse)
)

// namesOfEndpoints are the names of the endpoints of headless Services that have an address.
func (z *Zone) namesOfEndpoints(reverse string) (names []string) {
	for key := range z.endpoints {
		svc := z.services[key]
		if svc == nil || svc.Spec.ClusterIP != corev1.ClusterIPNone {
			continue
		}
		for _, e := range z.readyEndpoints(svc) {
			if !isReverse(reverse, e.address.String()) {
				continue
			}
			if name := z.nameOfEndpoint.Do(&e, serviceName(svc)); name != "" && !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names
}

// isReverse reports whether the address has its names at reverse.
func isReverse(reverse, ip string) bool {
	a, err := netip.ParseAddr(ip)
	return err == nil && candidate.ReverseName(a) == reverse
}

// lookUpReverse returns the names of an address, in order.
func (z *Zone) lookUpReverse(reverse string, t candidate.RecordType) (records []candidate.Record, exists bool) {
	names := append(z.namesOfClusterIP.Do(z, reverse), z.namesOfEndpoints(reverse)...)
	slices.Sort(names)
	for _, n := range names {
		if t == candidate.PTR {
			records = append(records, candidate.Record{Name: reverse, Type: candidate.PTR, Target: n})
		}
	}
	return records, len(names) > 0
}

func isReverseName(name string) bool {
	return strings.HasSuffix(name, ".in-addr.arpa.") || strings.HasSuffix(name, ".ip6.arpa.")
}

// The version of the schema has a name of its own (section 2.2).
var schemaVersion = rule.New("dns-schema-version", func(z *Zone, q *query) ([]candidate.Record, bool) {
	if q.recordType != candidate.TXT {
		return nil, true
	}
	return []candidate.Record{{Name: q.name, Type: candidate.TXT, Text: "1.1.0"}}, true
}, spec.ProxyDNSSchemaVersion)
