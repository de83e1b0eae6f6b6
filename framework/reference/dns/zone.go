// Package dns is the reference's own reading of DNS-based service discovery (kubernetes/dns, docs/specification.md, schema version 1.1.0): which
// records the names of Services have. It answers from the objects of one moment and sends nothing.
package dns

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// Domain is the domain of the cluster.
const Domain = "cluster.local."

// maxAliases is how many CNAME records are followed, so that those in a circle come to an end.
const maxAliases = 8

// Zone is what the domain of the cluster holds at one moment. It is immutable and safe for concurrent use.
type Zone struct {
	faults    fault.Set
	services  map[string]*corev1.Service // by name.namespace
	endpoints map[string][]*discoveryv1.EndpointSlice
}

// NewZone makes the zone of Services and EndpointSlices, which it does not change.
func NewZone(services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice, faults fault.Set) *Zone {
	z := &Zone{faults: faults, services: map[string]*corev1.Service{}, endpoints: map[string][]*discoveryv1.EndpointSlice{}}
	for _, s := range services {
		z.services[s.Name+"."+s.Namespace] = s
	}
	for _, e := range endpoints {
		if name := e.Labels[discoveryv1.LabelServiceName]; name != "" {
			key := name + "." + e.Namespace
			z.endpoints[key] = append(z.endpoints[key], e)
		}
	}
	return z
}

// Resolve answers a question. Outside of the domain of the cluster nothing is known.
func (z *Zone) Resolve(q candidate.Question) candidate.Resolution {
	var chain []candidate.Record
	for name := strings.ToLower(q.Name); ; { // comparisons are case-insensitive (section 2.1)
		records, exists := z.lookUp(name, q.Type)
		switch {
		case len(records) == 1 && records[0].Type == candidate.CNAME && q.Type != candidate.CNAME && len(chain) < maxAliases:
			chain, name = append(chain, records[0]), records[0].Target
			continue
		case len(chain)+len(records) > 0:
			return candidate.Resolution{Said: candidate.Found, Records: append(chain, records...)}
		case exists:
			return candidate.Resolution{Said: candidate.NoRecords}
		case strings.HasSuffix(name, "."):
			return candidate.Resolution{Said: candidate.Failed, Reason: "the name is outside of the domain of the cluster"}
		}
		return candidate.Resolution{Said: candidate.NoName}
	}
}

// lookUp returns the records of a name, and whether the name exists.
func (z *Zone) lookUp(name string, t candidate.RecordType) (records []candidate.Record, exists bool) {
	labels := strings.Split(name, ".")
	n := len(labels) - 3
	if n < 0 || labels[n+2] != "svc" {
		return nil, false
	}
	key := labels[n] + "." + labels[n+1]
	svc := z.services[key]
	if svc == nil || z.faults.On(fault.DNSLeadingDigitUnknown) && labels[n][0] <= '9' {
		return nil, false
	}
	endpoints := z.ready(key)
	switch {
	case svc.Spec.Type == corev1.ServiceTypeExternalName:
		if n > 0 || z.faults.On(fault.DNSExternalNameUnknown) {
			return nil, false
		}
		return z.alias(name, svc), true
	case n == 0:
		return z.ofService(name, t, svc, endpoints)
	case n == 1 && headless(svc):
		return z.ofHostname(name, labels[0], t, endpoints)
	case n == 2 && strings.HasPrefix(labels[0], "_") && strings.HasPrefix(labels[1], "_"):
		all := z.ofPort(name, labels[0][1:], labels[1][1:], svc, endpoints)
		if t != candidate.SRV {
			return nil, len(all) > 0
		}
		return all, len(all) > 0
	}
	return nil, false
}

func headless(svc *corev1.Service) bool { return svc.Spec.ClusterIP == corev1.ClusterIPNone }

// alias is the record of a Service of type ExternalName (section 2.5).
func (z *Zone) alias(name string, svc *corev1.Service) []candidate.Record {
	target, dotted := strings.CutSuffix(svc.Spec.ExternalName, ".")
	switch {
	case dotted && z.faults.On(fault.DNSTrailingDotRefused):
		return nil
	case dotted || !z.faults.On(fault.DNSExternalNameBelowDomain):
		target = relative(target + ".")
	}
	return []candidate.Record{{Name: name, Type: candidate.CNAME, Target: target}}
}

// relative is a full name as questions and records have it.
func relative(name string) string {
	short, _ := strings.CutSuffix(name, "."+Domain)
	return short
}

// ofService are the records of the name of a Service (sections 2.3.1 and 2.4.1).
func (z *Zone) ofService(name string, t candidate.RecordType, svc *corev1.Service, endpoints []endpoint) (records []candidate.Record, exists bool) {
	if headless(svc) || z.faults.On(fault.DNSEndpointsForVirtualIP) {
		if len(endpoints) > 1 && z.faults.On(fault.DNSFirstEndpoint) {
			endpoints = endpoints[:1]
		}
		return addresses(name, t, endpoints), len(endpoints) > 0
	}
	ips := svc.Spec.ClusterIPs
	if len(ips) > 1 && z.faults.On(fault.DNSPrimaryOnly) {
		ips = ips[:1]
	}
	for _, ip := range ips {
		if a, err := netip.ParseAddr(ip); err == nil && typeOf(a) == t {
			records = append(records, candidate.Record{Name: name, Type: t, Address: a})
		}
	}
	return records, true
}

// ofHostname are the records of an endpoint below its Service (section 2.4.1).
func (z *Zone) ofHostname(name, hostname string, t candidate.RecordType, endpoints []endpoint) (records []candidate.Record, exists bool) {
	endpoints = slices.DeleteFunc(endpoints, func(e endpoint) bool {
		return !strings.EqualFold(e.hostname, hostname) || e.named && z.faults.On(fault.DNSHostnamesUnknown)
	})
	records = addresses(name, t, endpoints)
	if len(records) > 1 && z.faults.On(fault.DNSHostnameOnce) {
		records = records[:1]
	}
	return records, len(endpoints) > 0
}

// ofPort are the SRV records of a named port (sections 2.3.2 and 2.4.2).
func (z *Zone) ofPort(name, port, protocol string, svc *corev1.Service, endpoints []endpoint) (records []candidate.Record) {
	matches := func(n string, p corev1.Protocol) bool {
		return n != "" && strings.EqualFold(n, port) && (strings.EqualFold(string(p), protocol) || z.faults.On(fault.DNSProtocolIgnored))
	}
	service := svc.Name + "." + svc.Namespace + ".svc"
	add := func(target string, number int32) {
		r := candidate.Record{Name: name, Type: candidate.SRV, Target: target, Port: int(number)}
		if !slices.Contains(records, r) { // one hostname may have several addresses
			records = append(records, r)
		}
	}
	if !headless(svc) {
		for _, p := range svc.Spec.Ports {
			if !matches(p.Name, p.Protocol) {
				continue
			}
			number := p.Port
			if z.faults.On(fault.DNSTargetPort) && p.TargetPort.IntVal != 0 {
				number = p.TargetPort.IntVal
			}
			add(service, number)
		}
		return records
	}
	for _, e := range endpoints {
		for _, p := range e.ports {
			if p.Name == nil || p.Port == nil || p.Protocol == nil || !matches(*p.Name, *p.Protocol) {
				continue
			}
			target := e.hostname + "." + service
			if z.faults.On(fault.DNSHeadlessSRVOfService) {
				target = service
			}
			add(target, *p.Port)
		}
	}
	return records
}
