package dns

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Rules for the SRV records of named ports (sections 2.3.2 and 2.4.2).
var (
	portsOfService = rule.New("dns-ports-of-service", func(z *Zone, q *query) (records []candidate.Record, exists bool) {
		for i := range q.svc.Spec.Ports {
			if p := &q.svc.Spec.Ports[i]; z.portAsked.Do(q, p.Name, p.Protocol) {
				records = addPort(records, q, serviceName(q.svc), z.servicePortNumber.Do(p))
			}
		}
		return records, len(records) > 0
	}, spec.ProxyDNSSrvPort)

	servicePortNumber = rule.New("dns-port-number-of-service", func(p *corev1.ServicePort) int32 { return p.Port }, spec.ProxyDNSSrvPort)

	portsOfHeadless = rule.New("dns-ports-of-headless", func(z *Zone, q *query) (records []candidate.Record, exists bool) {
		for i := range q.endpoints {
			e := &q.endpoints[i]
			for _, p := range e.ports {
				if p.Name != nil && p.Port != nil && p.Protocol != nil && z.portAsked.Do(q, *p.Name, *p.Protocol) {
					records = addPort(records, q, z.srvTarget.Do(e, serviceName(q.svc)), *p.Port)
				}
			}
		}
		return records, len(records) > 0
	}, spec.ProxyDNSSrvPort, spec.ProxyDNSHeadlessHostnames)

	// The port of an endpoint is at the name of the endpoint.
	srvTarget = rule.New("dns-port-at-endpoint", func(e *endpoint, service string) string {
		return e.hostname + "." + service
	}, spec.ProxyDNSHeadlessHostnames)

	portAsked = rule.New("dns-port-asked", func(q *query, port string, protocol corev1.Protocol) bool {
		askedPort, askedProtocol := q.port()
		return port != "" && strings.EqualFold(port, askedPort) && strings.EqualFold(string(protocol), askedProtocol)
	}, spec.ProxyDNSSrvPort, spec.ProxyDNSUnnamedPort, spec.ProxyDNSCaseInsensitive)
)

// port is the port and the protocol that are asked for, as in _port._protocol.name.namespace.svc.
func (q *query) port() (port, protocol string) { return q.below[0][1:], q.below[1][1:] }

// serviceName is the name of a Service in the domain of the cluster.
func serviceName(svc *corev1.Service) string { return svc.Name + "." + svc.Namespace + ".svc" }

// addPort adds an SRV record, once: a hostname may have several addresses.
func addPort(records []candidate.Record, q *query, target string, number int32) []candidate.Record {
	r := candidate.Record{Name: q.name, Type: candidate.SRV, Target: target, Port: int(number)}
	if slices.Contains(records, r) {
		return records
	}
	return append(records, r)
}
