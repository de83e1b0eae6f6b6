package dns

import (
	"net/netip"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// endpoint is an address of a headless Service.
type endpoint struct {
	address netip.Addr
	// hostname tells it from others below the Service. An endpoint is named so, or has a hostname made of its address.
	hostname string
	named    bool
	ports    []discoveryv1.EndpointPort
}

// readyEndpoints are the endpoints of a Service that are ready (section 2.1), those of all slices together.
func (z *Zone) readyEndpoints(svc *corev1.Service) (found []endpoint) {
	for _, slice := range z.endpoints[svc.Name+"."+svc.Namespace] {
		for i := range slice.Endpoints {
			e := &slice.Endpoints[i]
			if !z.endpointReady.Do(&e.Conditions) {
				continue
			}
			for _, text := range e.Addresses {
				a, err := netip.ParseAddr(text)
				if err != nil { // a slice of addressType FQDN
					continue
				}
				one := endpoint{address: a, hostname: hostnameOf(a), ports: slice.Ports}
				if e.Hostname != nil && *e.Hostname != "" {
					one.hostname, one.named = *e.Hostname, true
				}
				found = append(found, one)
			}
		}
	}
	return found
}

// An endpoint is ready if its conditions say so: "a nil value should be interpreted as true".
var endpointReady = rule.New("dns-endpoint-ready", func(c *discoveryv1.EndpointConditions) bool {
	return c.Ready == nil || *c.Ready
}, spec.ProxyDNSHeadless, spec.ProxyDNSPublishNotReady)

// hostnameOf is the hostname of an endpoint that has none of its own.
func hostnameOf(a netip.Addr) string {
	return strings.NewReplacer(".", "-", ":", "-").Replace(a.StringExpanded())
}
