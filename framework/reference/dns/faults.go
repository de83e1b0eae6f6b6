package dns

import (
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// New makes the rules with the deliberate bugs that are switched on.
func New(faults fault.Set) *Rules { return &Rules{fault.Apply(newBook(), wrongs, faults)} }

// wrong is a fault and what it changes in the book of rules.
type wrong fault.Edit[book]

// wrongs are all faults of this package.
var wrongs = []wrong{
	{fault.DNSLeadingDigitUnknown, func(b *book) {
		b.serviceFound.Wrap(func(right finding) finding {
			return func(z *Zone, name, namespace string) *corev1.Service {
				if name != "" && name[0] <= '9' {
					return nil
				}
				return right(z, name, namespace)
			}
		})
	}},

	{fault.DNSEndpointsForVirtualIP, func(b *book) {
		b.clusterIPsOfService.Replace(func(z *Zone, q *query) ([]candidate.Record, bool) { return z.endpointsOfHeadless.Do(z, q) })
	}},
	{fault.DNSPrimaryOnly, func(b *book) {
		b.everyClusterIP.Replace(func(svc *corev1.Service) []string { return first(svc.Spec.ClusterIPs) })
	}},
	{fault.DNSFirstEndpoint, func(b *book) {
		b.endpointsOfHeadless.Wrap(withEndpoints(first[endpoint]))
	}},

	{fault.DNSExternalNameBelowDomain, func(b *book) {
		b.externalNameComplete.Wrap(func(right func(string) string) func(string) string {
			return func(externalName string) string {
				if !strings.HasSuffix(externalName, ".") {
					return externalName
				}
				return right(externalName)
			}
		})
	}},
	{fault.DNSTrailingDotRefused, func(b *book) {
		b.aliasOfExternalName.Wrap(func(right recording) recording {
			return func(z *Zone, q *query) ([]candidate.Record, bool) {
				if strings.HasSuffix(q.svc.Spec.ExternalName, ".") {
					return nil, true
				}
				return right(z, q)
			}
		})
	}},
	{fault.DNSAliasWithinClusterHidden, func(b *book) {
		b.aliasOfExternalName.Wrap(hidden(func(q *query) bool {
			return strings.HasSuffix(strings.TrimSuffix(q.svc.Spec.ExternalName, ".")+".", "."+Domain)
		}))
	}},
	{fault.DNSAliasNotFollowed, func(b *book) { b.aliasFollowed.Replace(func() bool { return false }) }},
	{fault.DNSDanglingAliasHidden, func(b *book) { b.danglingAliasTold.Replace(func() bool { return false }) }},
	{fault.DNSAliasOfNamesBelow, func(b *book) {
		b.nothingBelowAlias.Replace(func(z *Zone, q *query) ([]candidate.Record, bool) { return z.aliasOfExternalName.Do(z, q) })
	}},
	{fault.DNSAliasWithSelectorHidden, func(b *book) {
		b.aliasOfExternalName.Wrap(hidden(func(q *query) bool { return len(q.svc.Spec.Selector) > 0 }))
	}},
	{fault.DNSSelectorlessSRVHidden, func(b *book) {
		b.portsOfHeadless.Wrap(hidden(func(q *query) bool { return len(q.svc.Spec.Selector) == 0 }))
	}},
	{fault.DNSHeadlessUnknown, func(b *book) { b.endpointsOfHeadless.Wrap(hidden(func(*query) bool { return true })) }},
	{fault.DNSExternalNameUnknown, func(b *book) { b.aliasOfExternalName.Off() }},

	{fault.DNSHostnamesUnknown, func(b *book) {
		b.hostnameOfEndpoint.Wrap(withEndpoints(func(all []endpoint) []endpoint {
			return slices.DeleteFunc(slices.Clone(all), func(e endpoint) bool { return e.named })
		}))
	}},
	{fault.DNSHostnameOnce, func(b *book) {
		b.hostnameOfEndpoint.Wrap(func(right recording) recording {
			return func(z *Zone, q *query) ([]candidate.Record, bool) {
				records, exists := right(z, q)
				return first(records), exists
			}
		})
	}},

	{fault.DNSProtocolIgnored, func(b *book) {
		b.portAsked.Wrap(func(right func(*query, string, corev1.Protocol) bool) func(*query, string, corev1.Protocol) bool {
			return func(q *query, port string, _ corev1.Protocol) bool {
				_, protocol := q.port()
				return right(q, port, corev1.Protocol(protocol))
			}
		})
	}},
	{fault.DNSTargetPort, func(b *book) {
		b.servicePortNumber.Wrap(func(right func(*corev1.ServicePort) int32) func(*corev1.ServicePort) int32 {
			return func(p *corev1.ServicePort) int32 {
				if number := p.TargetPort.IntVal; number != 0 {
					return number
				}
				return right(p)
			}
		})
	}},
	{fault.DNSHeadlessSRVOfService, func(b *book) {
		b.srvTarget.Replace(func(_ *endpoint, service string) string { return service })
	}},

	{fault.DNSHeadlessFirstPort, func(b *book) {
		b.portsOfHeadless.Wrap(withEndpoints(func(all []endpoint) []endpoint {
			all = slices.Clone(all)
			for i := range all {
				all[i].ports = first(all[i].ports)
			}
			return all
		}))
	}},
	{fault.DNSUnnamedPortByNumber, func(b *book) {
		b.portsOfService.Wrap(func(right recording) recording {
			return func(z *Zone, q *query) ([]candidate.Record, bool) {
				asked, _ := q.port()
				for _, p := range q.svc.Spec.Ports {
					if p.Name == "" && strconv.Itoa(int(p.Port)) == asked {
						return addPort(nil, q, serviceName(q.svc), p.Port), true
					}
				}
				return right(z, q)
			}
		})
	}},
	{fault.DNSCaseMatters, func(b *book) { b.nameCompared.Replace(func(asked string) string { return asked }) }},

	{fault.DNSReverseUnknown, func(b *book) { b.namesOfClusterIP.Off() }},
	{fault.DNSReverseFirstFamily, func(b *book) {
		b.namesOfClusterIP.Wrap(func(right listing) listing {
			return func(z *Zone, reverse string) []string {
				return slices.DeleteFunc(right(z, reverse), func(name string) bool {
					svc := z.services[strings.TrimSuffix(name, ".svc")]
					return !isReverse(reverse, svc.Spec.ClusterIP)
				})
			}
		})
	}},
	{fault.DNSHeadlessReverseUnknown, func(b *book) { b.nameOfEndpoint.Off() }},
	{fault.DNSHeadlessReverseByAddress, func(b *book) {
		b.nameOfEndpoint.Replace(func(e *endpoint, service string) string { return hostnameOf(e.address) + "." + service })
	}},
	{fault.DNSHeadlessReverseNamedOnly, func(b *book) {
		b.nameOfEndpoint.Wrap(func(right func(*endpoint, string) string) func(*endpoint, string) string {
			return func(e *endpoint, service string) string {
				if !e.named {
					return ""
				}
				return right(e, service)
			}
		})
	}},
	{fault.DNSSchemaVersionUnknown, func(b *book) { b.schemaVersion.Off() }},
	{fault.DNSSchemaVersionShort, func(b *book) {
		b.schemaVersion.Wrap(func(right recording) recording {
			return func(z *Zone, q *query) (records []candidate.Record, exists bool) {
				records, exists = right(z, q)
				for i := range records {
					records[i].Text = "1.1"
				}
				return records, exists
			}
		})
	}},

	{fault.DNSUnsaidReadinessHidden, func(b *book) {
		b.endpointReady.Replace(func(c *discoveryv1.EndpointConditions) bool { return c.Ready != nil && *c.Ready })
	}},
	{fault.DNSUnreadyListed, func(b *book) {
		b.endpointReady.Replace(func(*discoveryv1.EndpointConditions) bool { return true })
	}},
	{fault.DNSNotReadyUnpublished, func(b *book) {
		b.endpointReady.Wrap(func(right func(*discoveryv1.EndpointConditions) bool) func(*discoveryv1.EndpointConditions) bool {
			return func(c *discoveryv1.EndpointConditions) bool { return (c.Serving == nil || *c.Serving) && right(c) }
		})
	}},
}

// hidden wraps a rule: some names do not exist.
func hidden(some func(*query) bool) func(recording) recording {
	return func(right recording) recording {
		return func(z *Zone, q *query) ([]candidate.Record, bool) {
			if some(q) {
				return nil, false
			}
			return right(z, q)
		}
	}
}

// first is what is left of a list where only its first element counts.
func first[T any](list []T) []T { return list[:min(len(list), 1)] }

// withEndpoints wraps a rule: it sees other endpoints than there are.
func withEndpoints(other func([]endpoint) []endpoint) func(recording) recording {
	return func(right recording) recording {
		return func(z *Zone, q *query) ([]candidate.Record, bool) {
			changed := *q
			changed.endpoints = other(q.endpoints)
			return right(z, &changed)
		}
	}
}
