package proxy

import (
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What every test meets: a Service "web" with all kinds of addresses, node n1 in zone z1, and clients inside and outside.
const (
	clusterIP      = "10.96.0.10"
	externalIP     = "198.51.100.1"
	loadBalancerIP = "198.51.100.2"
	nodeIP         = "172.30.1.1"
	secondaryIP    = "172.30.2.1"
	podIP          = "10.244.1.9"
	outsideIP      = "203.0.113.7"
	nodePort       = 30080
)

var start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

func web(change func(*corev1.Service)) *corev1.Service {
	s := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "web", UID: types.UID("web")},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, ClusterIP: clusterIP, ClusterIPs: []string{clusterIP}, ExternalIPs: []string{externalIP},
			ExternalTrafficPolicy: corev1.ServiceExternalTrafficPolicyCluster,
			Ports:                 []corev1.ServicePort{{Name: "http", Protocol: corev1.ProtocolTCP, Port: 80, NodePort: nodePort}},
		},
		Status: corev1.ServiceStatus{LoadBalancer: corev1.LoadBalancerStatus{Ingress: []corev1.LoadBalancerIngress{{IP: loadBalancerIP}}}},
	}
	if change != nil {
		change(s)
	}
	return s
}

// bothLocal makes both policies Local.
func bothLocal(s *corev1.Service) {
	s.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
	s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyLocal
}

// The conditions that an endpoint can be in.
const (
	ready       = "ready"
	unready     = "unready"
	terminating = "terminating" // and serving
	finished    = "finished"    // terminating and not serving
)

// endpoint is number x of 10.244.0.x; an empty node is none.
func endpoint(number int, node, state string) discoveryv1.Endpoint {
	e := discoveryv1.Endpoint{
		Addresses: []string{fmt.Sprintf("10.244.0.%d", number)},
		Conditions: discoveryv1.EndpointConditions{
			Ready: new(state == ready), Serving: new(state == ready || state == terminating), Terminating: new(state == terminating || state == finished),
		},
	}
	if node != "" {
		e.NodeName = &node
	}
	return e
}

func inZone(e discoveryv1.Endpoint, zones ...string) discoveryv1.Endpoint {
	if e.Hints == nil {
		e.Hints = &discoveryv1.EndpointHints{}
	}
	for _, z := range zones {
		e.Hints.ForZones = append(e.Hints.ForZones, discoveryv1.ForZone{Name: z})
	}
	return e
}

func forNode(e discoveryv1.Endpoint, nodes ...string) discoveryv1.Endpoint {
	if e.Hints == nil {
		e.Hints = &discoveryv1.EndpointHints{}
	}
	for _, n := range nodes {
		e.Hints.ForNodes = append(e.Hints.ForNodes, discoveryv1.ForNode{Name: n})
	}
	return e
}

// slice is one of web's, for its port http on 8080.
func slice(endpoints ...discoveryv1.Endpoint) *discoveryv1.EndpointSlice {
	return &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Namespace: "default", Name: "web-1", Labels: map[string]string{discoveryv1.LabelServiceName: "web"}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: new("http"), Protocol: new(corev1.ProtocolTCP), Port: new(int32(8080))}},
		Endpoints:   endpoints,
	}
}

// nodeWith is a node that has programmed the objects.
func nodeWith(config candidate.ProxyConfiguration, s *corev1.Service, of ...*discoveryv1.EndpointSlice) *Node {
	rules := New(fault.Set{})
	n := rules.NewNode(candidate.Node{
		Name: "n1", Zone: "z1", Addresses: addresses(nodeIP, "fd00:172:30::101"), SecondaryAddresses: addresses(secondaryIP),
	}, true)
	n.Start(config)
	n.Advance(start, rules.NewObjects(1, []*corev1.Service{s}, of, []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}))
	return n
}

func addresses(texts ...string) (out []netip.Addr) {
	for _, text := range texts {
		out = append(out, netip.MustParseAddr(text))
	}
	return out
}

// packet is one from a client to an address, which says its port unless it is 80.
func packet(from, to string) *Packet {
	if !strings.Contains(to, ":") {
		to += ":80"
	}
	p := &Packet{
		Source: netip.AddrPortFrom(netip.MustParseAddr(from), 40000), To: netip.MustParseAddrPort(to), Protocol: corev1.ProtocolTCP,
		Inside: from != outsideIP, Host: from == nodeIP,
	}
	if p.Inside && !p.Host {
		p.Namespace = "default"
	}
	return p
}

// nobody has a connection open anywhere.
func nobody(netip.AddrPort) int { return 0 }

// reached tells which endpoints the packets of many connections get to, or what they get instead: "refuse", "drop" or "pass".
func reached(n *Node, p *Packet) string {
	random := rand.New(rand.NewPCG(1, 1))
	var to []string
	for range 200 {
		d := n.Decide(start, p, random, nobody)
		got := map[Answer]string{Pass: "pass", Refuse: "refuse", Drop: "drop"}[d.Answer]
		if d.Answer == Forward {
			got = strings.TrimPrefix(d.To.String(), "10.244.0.")
		}
		if !slices.Contains(to, got) {
			to = append(to, got)
		}
	}
	slices.Sort(to)
	return strings.Join(to, " ")
}

func expect(t *testing.T, what, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %q, want %q", what, got, want)
	}
}
