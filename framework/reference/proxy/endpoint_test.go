package proxy

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestSlicesAreJoined(t *testing.T) {
	with := func(s *discoveryv1.EndpointSlice, change func(*discoveryv1.EndpointSlice)) *discoveryv1.EndpointSlice {
		change(s)
		return s
	}
	good := func() *discoveryv1.EndpointSlice { return slice(endpoint(1, "n1", ready)) }
	second := func() *discoveryv1.EndpointSlice { return slice(endpoint(2, "n1", ready)) }
	for name, c := range map[string]struct {
		slices []*discoveryv1.EndpointSlice
		want   string
	}{
		"two slices":         {[]*discoveryv1.EndpointSlice{good(), second()}, "1:8080 2:8080"},
		"an empty one first": {[]*discoveryv1.EndpointSlice{slice(), second()}, "2:8080"},
		"running after terminating": {
			[]*discoveryv1.EndpointSlice{slice(endpoint(1, "n1", terminating)), good(), second()}, "1:8080 2:8080",
		},
		"running before terminating": {
			[]*discoveryv1.EndpointSlice{good(), slice(endpoint(1, "n1", terminating)), second()}, "1:8080 2:8080",
		},
		"running and unready after terminating": {
			[]*discoveryv1.EndpointSlice{slice(endpoint(1, "n1", terminating)), slice(endpoint(1, "n1", unready))}, "refuse",
		},
		"other port name": {[]*discoveryv1.EndpointSlice{good(), with(second(), func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = new("admin") })}, "1:8080"},
		"no port name":    {[]*discoveryv1.EndpointSlice{good(), with(second(), func(s *discoveryv1.EndpointSlice) { s.Ports[0].Name = nil })}, "1:8080"},
		"other protocol": {
			[]*discoveryv1.EndpointSlice{good(), with(second(), func(s *discoveryv1.EndpointSlice) { s.Ports[0].Protocol = new(corev1.ProtocolUDP) })}, "1:8080",
		},
		"other target port": {
			[]*discoveryv1.EndpointSlice{good(), with(second(), func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = new(int32(9090)) })}, "1:8080 2:9090",
		},
		"no port number": {[]*discoveryv1.EndpointSlice{with(second(), func(s *discoveryv1.EndpointSlice) { s.Ports[0].Port = nil }), good()}, "1:8080"},
		"unknown address type": {
			[]*discoveryv1.EndpointSlice{with(second(), func(s *discoveryv1.EndpointSlice) { s.AddressType = "FQDN" }), good()}, "1:8080",
		},
		"other family": {
			[]*discoveryv1.EndpointSlice{with(slice(discoveryv1.Endpoint{Addresses: []string{"fd00::2"}}), func(s *discoveryv1.EndpointSlice) {
				s.AddressType = discoveryv1.AddressTypeIPv6
			}), good()}, "1:8080",
		},
		"of another Service": {
			[]*discoveryv1.EndpointSlice{good(), with(second(), func(s *discoveryv1.EndpointSlice) { s.Labels[discoveryv1.LabelServiceName] = "db" })}, "1:8080",
		},
		"of another namespace": {[]*discoveryv1.EndpointSlice{good(), with(second(), func(s *discoveryv1.EndpointSlice) { s.Namespace = "other" })}, "1:8080"},
		"without the label":    {[]*discoveryv1.EndpointSlice{good(), with(second(), func(s *discoveryv1.EndpointSlice) { s.Labels = nil })}, "1:8080"},
	} {
		expect(t, name, reached(nodeWith(candidate.ProxyConfiguration{}, web(nil), c.slices...), packet(podIP, clusterIP)), c.want)
	}
}

func TestDuplicateEndpointCountsOnce(t *testing.T) {
	// rr gives each its turn: one that stood twice would have two in a round.
	n := nodeWith(candidate.ProxyConfiguration{Mode: "ipvs"}, web(nil),
		slice(endpoint(1, "n1", ready), endpoint(2, "n1", ready)), slice(endpoint(1, "n1", ready)))
	counts := map[string]int{}
	for range 10 {
		counts[n.Decide(start, packet(podIP, clusterIP), nil, nobody).To.String()]++
	}
	if len(counts) != 2 || counts["10.244.0.1:8080"] != 5 {
		t.Errorf("turns %v, want five for each", counts)
	}
}
