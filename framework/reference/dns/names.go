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

// Rules for the name of a Service of type ExternalName (section 2.5).
var (
	aliasOfExternalName = rule.New("dns-alias-of-external-name", func(z *Zone, q *query) ([]candidate.Record, bool) {
		return []candidate.Record{{Name: q.name, Type: candidate.CNAME, Target: z.externalNameComplete.Do(q.svc.Spec.ExternalName)}}, true
	}, spec.ProxyDNSExternalName)

	// Whoever asks for the addresses of an alias is told that it is one, and what else is known of the other name.
	aliasFollowed     = rule.New("dns-alias-followed", func() bool { return true }, spec.ProxyDNSExternalNameFollowed)
	danglingAliasTold = rule.New("dns-dangling-alias-told", func() bool { return true }, spec.ProxyDNSExternalNameDangling)

	// An externalName is complete with a dot at its end and without.
	externalNameComplete = rule.New("dns-external-name-complete", func(externalName string) (target string) {
		return relative(strings.TrimSuffix(externalName, ".") + ".")
	}, spec.ProxyDNSExternalName, spec.ProxyDNSExternalNameTrailingDot)
)

// relative is a full name as questions and records have it.
func relative(name string) string {
	short, _ := strings.CutSuffix(name, "."+Domain)
	return short
}

// Rules for the name of a Service with a virtual address (section 2.3.1).
var (
	clusterIPsOfService = rule.New("dns-cluster-ips-of-service", func(z *Zone, q *query) (records []candidate.Record, exists bool) {
		for _, ip := range z.everyClusterIP.Do(q.svc) {
			if a, err := netip.ParseAddr(ip); err == nil && typeOf(a) == q.recordType {
				records = append(records, candidate.Record{Name: q.name, Type: q.recordType, Address: a})
			}
		}
		return records, true
	}, spec.ProxyDNSClusterIP)

	everyClusterIP = rule.New("dns-every-cluster-ip", func(svc *corev1.Service) []string { return svc.Spec.ClusterIPs }, spec.ProxyDNSDualStack)
)

// Rules for the name of a headless Service and for those below it (section 2.4.1).
var (
	endpointsOfHeadless = rule.New("dns-endpoints-of-headless", func(_ *Zone, q *query) ([]candidate.Record, bool) {
		return addresses(q, q.endpoints), len(q.endpoints) > 0
	}, spec.ProxyDNSHeadless)

	hostnameOfEndpoint = rule.New("dns-hostname-of-endpoint", func(_ *Zone, q *query) ([]candidate.Record, bool) {
		var named []endpoint
		for _, e := range q.endpoints {
			if strings.EqualFold(e.hostname, q.below[0]) {
				named = append(named, e)
			}
		}
		return addresses(q, named), len(named) > 0
	}, spec.ProxyDNSHeadlessHostnames)
)

// addresses are the records of a name that lists endpoints, each address once.
func addresses(q *query, endpoints []endpoint) (records []candidate.Record) {
	for _, e := range endpoints {
		r := candidate.Record{Name: q.name, Type: q.recordType, Address: e.address}
		if typeOf(e.address) == q.recordType && !slices.Contains(records, r) {
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
