// Package dns is the reference's own reading of DNS-based service discovery: which records the names of Services have. The
// source is kubernetes/dns, docs/specification.md, schema version 1.1.0. The package answers from the objects of one moment
// and sends nothing.
package dns

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Domain is the domain of the cluster.
const Domain = "cluster.local."

// maxAliases is how many CNAME records are followed, so that those in a circle come to an end.
const maxAliases = 8

// Rules are the rules of the cluster's DNS. They are safe for concurrent use.
type Rules struct{ *book }

// Zone is what the domain of the cluster holds at one moment. It is immutable and safe for concurrent use.
type Zone struct {
	*book
	services  map[string]*corev1.Service // by name.namespace
	endpoints map[string][]*discoveryv1.EndpointSlice
}

// query is the question for one name of a Service or below it, with what the answer is made of.
type query struct {
	name       string
	below      []string // the labels before the name of the Service
	recordType candidate.RecordType
	svc        *corev1.Service
	endpoints  []endpoint // that are ready
}

// Zone makes the zone of Services and EndpointSlices, which it does not change.
func (r *Rules) Zone(services []*corev1.Service, endpoints []*discoveryv1.EndpointSlice) *Zone {
	z := &Zone{book: r.book, services: map[string]*corev1.Service{}, endpoints: map[string][]*discoveryv1.EndpointSlice{}}
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
	for name := z.nameCompared.Do(q.Name); ; {
		records, exists := z.lookUp(name, q.Type)
		switch {
		case len(records) == 1 && records[0].Type == candidate.CNAME && q.Type != candidate.CNAME && len(chain) < maxAliases && z.aliasFollowed.Do():
			chain, name = append(chain, records[0]), records[0].Target
			continue
		case len(chain) > 0 && len(records) == 0 && !strings.HasSuffix(name, ".") && !z.danglingAliasTold.Do():
			return candidate.Resolution{Said: candidate.NoRecords}
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
	if isReverseName(name) {
		return z.lookUpReverse(name, t)
	}
	if name == "dns-version" {
		return z.schemaVersion.Do(z, &query{name: name, recordType: t})
	}
	labels := strings.Split(name, ".")
	n := len(labels) - 3
	if n < 0 || labels[n+2] != "svc" {
		return nil, false
	}
	svc := z.serviceFound.Do(z, labels[n], labels[n+1])
	if svc == nil {
		return nil, false
	}
	q := &query{name: name, below: labels[:n], recordType: t, svc: svc, endpoints: z.readyEndpoints(svc)}
	isAlias, isHeadless := svc.Spec.Type == corev1.ServiceTypeExternalName, svc.Spec.ClusterIP == corev1.ClusterIPNone
	switch {
	case isAlias && n == 0:
		return z.aliasOfExternalName.Do(z, q)
	case isAlias:
		return z.nothingBelowAlias.Do(z, q)
	case n == 0 && isHeadless:
		return z.endpointsOfHeadless.Do(z, q)
	case n == 0:
		return z.clusterIPsOfService.Do(z, q)
	case n == 1 && isHeadless:
		return z.hostnameOfEndpoint.Do(z, q)
	case n == 2 && strings.HasPrefix(q.below[0], "_") && strings.HasPrefix(q.below[1], "_"):
		if isHeadless {
			records, exists = z.portsOfHeadless.Do(z, q)
		} else {
			records, exists = z.portsOfService.Do(z, q)
		}
		if t != candidate.SRV {
			return nil, exists
		}
		return records, exists
	}
	return nil, false
}

// Names are compared without regard to case (section 2.1).
var nameCompared = rule.New("dns-name-compared", strings.ToLower, spec.ProxyDNSCaseInsensitive)

// An alias is a name alone.
var nothingBelowAlias = rule.New("dns-nothing-below-alias", func(*Zone, *query) ([]candidate.Record, bool) { return nil, false }, spec.ProxyDNSExternalName)

// The name of a Service is name.namespace.svc in the domain of the cluster, whatever character it begins with.
var serviceFound = rule.New("dns-service-name", func(z *Zone, name, namespace string) *corev1.Service {
	return z.services[name+"."+namespace]
}, spec.ProxyDNSClusterIP, spec.ProxyDNSNameLeadingDigit)
