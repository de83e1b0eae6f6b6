package dns

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

func service(name string, ips ...string) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	s.Spec.ClusterIP, s.Spec.ClusterIPs = ips[0], ips
	s.Spec.Ports = []corev1.ServicePort{
		{Name: "web", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)}, {Name: "log", Protocol: corev1.ProtocolUDP, Port: 514},
	}
	return s
}

func alias(name, target string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}, Spec: corev1.ServiceSpec{Type: corev1.ServiceTypeExternalName, ExternalName: target},
	}
}

func slice(svc string, endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Labels: map[string]string{discoveryv1.LabelServiceName: svc}}, Endpoints: endpoints,
		Ports: []discoveryv1.EndpointPort{{Name: new("web"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(80))}, {}},
	}
}

func at(address, hostname string, ready *bool) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{Addresses: []string{address}, Conditions: discoveryv1.EndpointConditions{Ready: ready}}
	if hostname != "" {
		e.Hostname = &hostname
	}
	return e
}

// zone has Services of every kind.
var zone = New(fault.Set{}).Zone(
	[]*corev1.Service{
		service("app", "10.96.0.1", "fd00::1"), service("v6", "fd00::2"), service("9", "10.96.0.9"), service("none", "None"), service("pets", "None"),
		alias("out", "www.example.com"), alias("dot", "www.example.com."), alias("in", "app.ns.svc.cluster.local"), alias("round", "robin.ns.svc.cluster.local"),
		alias("robin", "round.ns.svc.cluster.local."),
	},
	[]*discoveryv1.EndpointSlice{
		slice("app", at("10.0.0.9", "host", nil)),
		slice("none", at("10.0.0.8", "", new(false))),
		slice("pets", at("10.0.0.1", "cat", nil), at("10.0.0.2", "dog", new(true)), at("10.0.0.3", "cow", new(false)), at("fd00::a:3", "", nil)),
		slice("pets", at("10.0.0.2", "dog", nil), at("10.0.0.4", "dog", nil), at("an.fqdn", "", nil)),
		slice("", at("10.0.0.7", "", nil)),
	})

func TestNames(t *testing.T) {
	for question, want := range map[string]string{
		"app.ns.svc A":               "10.96.0.1",
		"App.NS.svc A":               "10.96.0.1",
		"app.ns.svc AAAA":            "fd00::1",
		"app.ns.svc SRV":             "no records",
		"v6.ns.svc A":                "no records",
		"9.ns.svc A":                 "10.96.0.9",
		"app.other.svc A":            "no such name",
		"app.ns A":                   "no such name",
		"app.ns.pod A":               "no such name",
		"ns.svc A":                   "no such name",
		"host.app.ns.svc A":          "no such name", // records below the name are those of headless Services
		"_web._tcp.app.ns.svc SRV":   "app.ns.svc:80",
		"_Web._TCP.app.ns.svc SRV":   "app.ns.svc:80",
		"_log._udp.app.ns.svc SRV":   "app.ns.svc:514",
		"_web._udp.app.ns.svc SRV":   "no such name",
		"_web._tcp.app.ns.svc A":     "no records",
		"web.tcp.app.ns.svc SRV":     "no such name",
		"a._web._tcp.app.ns.svc SRV": "no such name",
		"none.ns.svc A":              "no such name",
		"pets.ns.svc A":              "10.0.0.1 10.0.0.2 10.0.0.4",
		"pets.ns.svc AAAA":           "fd00::a:3",
		"cat.pets.ns.svc A":          "10.0.0.1",
		"cat.pets.ns.svc AAAA":       "no records",
		"dog.pets.ns.svc A":          "10.0.0.2 10.0.0.4",
		"cow.pets.ns.svc A":          "no such name",
		"_web._tcp.pets.ns.svc SRV": "cat.pets.ns.svc:80 dog.pets.ns.svc:80 " +
			"fd00-0000-0000-0000-0000-0000-000a-0003.pets.ns.svc:80",
		"_log._udp.pets.ns.svc SRV":                                "no such name", // the endpoints do not have the port
		"fd00-0000-0000-0000-0000-0000-000a-0003.pets.ns.svc AAAA": "fd00::a:3",
		"out.ns.svc CNAME":                                         "CNAME www.example.com.",
		"out.ns.svc AAAA":                                          "CNAME www.example.com.",
		"dot.ns.svc A":                                             "CNAME www.example.com.",
		"in.ns.svc CNAME":                                          "CNAME app.ns.svc",
		"in.ns.svc A":                                              "CNAME app.ns.svc 10.96.0.1",
		"_web._tcp.out.ns.svc SRV":                                 "no such name",
		"www.example.com. A":                                       "failed",
		"app.ns.svc.example.com. A":                                "failed",
		"round.ns.svc CNAME":                                       "CNAME robin.ns.svc",
		"1.0.96.10.in-addr.arpa. PTR":                              "PTR app.ns.svc",
		"1.0.96.10.IN-ADDR.ARPA. PTR":                              "PTR app.ns.svc",
		"1.0.96.10.in-addr.arpa. A":                                "no records",
		"2.0.0.10.in-addr.arpa. PTR":                               "PTR dog.pets.ns.svc",
		"9.0.0.10.in-addr.arpa. PTR":                               "failed", // the endpoint of a Service with an address
		"3.0.0.10.in-addr.arpa. PTR":                               "failed", // it is not ready
		"2.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.0.d.f.ip6.arpa. PTR": "PTR v6.ns.svc",
		"dns-version TXT": `TXT "1.1.0"`,
		"dns-version A":   "no records",
	} {
		name, kind, _ := strings.Cut(question, " ")
		said := zone.Resolve(candidate.Question{Name: name, Type: candidate.RecordType(kind)})
		var texts []string
		for _, r := range said.Records {
			texts = append(texts, r.String())
		}
		got := strings.Join(texts, " ")
		if said.Said != candidate.Found {
			got = string(said.Said) + got
		}
		if got != want {
			t.Errorf("%s: %s, want %s", question, got, want)
		}
		if said.Said == candidate.Found && !strings.EqualFold(said.Records[0].Name, name) {
			t.Errorf("%s: the first record is of %s", question, said.Records[0].Name)
		}
	}
}

func TestAliasesInACircleEnd(t *testing.T) {
	said := zone.Resolve(candidate.Question{Name: "round.ns.svc", Type: candidate.A})
	if n := len(said.Records); n < 2 || n > maxAliases+1 {
		t.Errorf("%d records: %v", n, said.Records)
	}
	if slices.ContainsFunc(said.Records, func(r candidate.Record) bool { return r.Type != candidate.CNAME }) {
		t.Errorf("addresses came of nothing: %s", fmt.Sprint(said.Records))
	}
}
