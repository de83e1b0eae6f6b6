package check

import (
	"net/netip"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestFeaturesOfRequests(t *testing.T) {
	const json, merge, apply = "application/json", "application/merge-patch+json", "application/apply-patch+yaml"
	for _, test := range []struct {
		contentType, body string
		options           []RequestOption
		want              []string
	}{
		{json, `{"spec":{"type":"ClusterIP","clusterIP":"10.0.0.1"}}`, nil, nil},
		{json, string(encode(Service("app", OfType(corev1.ServiceTypeNodePort)))), nil, []string{spec.FeatureNodePort}},
		{json, string(encode(Service("app", Headless()))), nil, []string{spec.FeatureHeadlessService}},
		{json, `{"spec":{"ports":[{"port":80,"nodePort":30080}]}}`, nil, []string{spec.FeatureNodePort}},
		{json, `{"spec":{"allocateLoadBalancerNodePorts":false,"sessionAffinity":"None"}}`, nil, nil},
		{merge, `{"spec":{"externalIPs":null,"type":"LoadBalancer"}}`, nil, []string{spec.FeatureExternalIPs, spec.FeatureLoadBalancer}},
		{json, `[{"op":"replace","path":"/spec/sessionAffinity","value":"ClientIP"}]`, nil, []string{spec.FeatureSessionAffinity}},
		{apply, "spec:\n  clusterIP: None\n  ports: [{port: 80, protocol: SCTP}]\n", nil, []string{spec.FeatureHeadlessService, spec.FeatureSCTP, spec.FeatureServerSideApply}},
		{json, `{}`, []RequestOption{DryRun(), FieldValidation("Warn")}, []string{spec.FeatureDryRun, spec.FeatureFieldValidation}},
	} {
		if got := featuresOf(test.contentType, []byte(test.body), test.options); !slices.Equal(got, test.want) {
			t.Errorf("%s uses %q, want %q", test.body, got, test.want)
		}
	}
}

// claiming is a network of a check for a candidate that claims only these features, until the test ends.
func claiming(t *testing.T, says map[spec.Declarable]string, features ...string) *Network {
	t.Helper()
	before := setup.Features
	t.Cleanup(func() { setup.Features = before })
	setup.Features = append([]string{}, features...)
	node := candidate.Node{Name: "node-1", Addresses: []netip.Addr{netip.MustParseAddr("172.30.1.1")}}
	return &Network{
		ControlPlane: &ControlPlane{lease: portsOf{}}, plane: nodesOf{nodes: []candidate.Node{node}}, what: candidate.Description{Declarations: says},
		exposed: map[string]bool{"10.0.0.1": true}, lent: map[candidate.PodName]bool{}, senders: map[candidate.PodName]bool{},
	}
}

type nodesOf struct {
	candidate.DataPlane
	nodes []candidate.Node
}

func (n nodesOf) Nodes() []candidate.Node { return n.nodes }

type portsOf struct{ candidate.ControlPlane }

func (portsOf) NodePorts() (first, last int) { return 30000, 32767 }

// TestServicesAreExposedAsClaimed: what is not claimed is left out of a Service, and an address that goes with it is remembered.
func TestServicesAreExposedAsClaimed(t *testing.T) {
	outside := With(func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"198.18.0.1"} })
	n := claiming(t, nil, spec.FeatureUDP)
	svc := n.claimedForm(Service("app", OfType(corev1.ServiceTypeLoadBalancer), outside))
	if svc.Spec.Type != corev1.ServiceTypeClusterIP || svc.Spec.ExternalIPs != nil {
		t.Errorf("type %s with external IPs %v, want neither node ports nor external IPs", svc.Spec.Type, svc.Spec.ExternalIPs)
	}
	if got := n.beyondClaims(&Case{To: netip.MustParseAddrPort("198.18.0.1:80")}); got != spec.FeatureExternalIPs {
		t.Errorf("a case to the external IP needs %q", got)
	}
	n = claiming(t, nil, spec.FeatureLoadBalancer, spec.FeatureExternalIPs)
	svc = n.claimedForm(Service("app", OfType(corev1.ServiceTypeLoadBalancer), outside))
	if svc.Spec.Type != corev1.ServiceTypeLoadBalancer || svc.Spec.AllocateLoadBalancerNodePorts == nil || *svc.Spec.AllocateLoadBalancerNodePorts || len(svc.Spec.ExternalIPs) != 1 {
		t.Errorf("%+v, want a load balancer with an external IP and no node ports", svc.Spec)
	}
}

func TestCasesWithinClaims(t *testing.T) {
	backend, sender := candidate.PodName{Namespace: "ns", Name: "app-1"}, candidate.PodName{Namespace: "ns", Name: "client-1"}
	pods := []candidate.Pod{
		{PodName: backend, Ports: defaultPorts, Addresses: []netip.Addr{netip.MustParseAddr("10.244.1.1")}},
		{PodName: sender, Ports: defaultPorts, Addresses: []netip.Addr{netip.MustParseAddr("10.244.1.2")}},
	}
	served := map[spec.Declarable]string{spec.HostAccess: "served", spec.Hairpin: "every-address"}
	to := netip.MustParseAddrPort
	for _, test := range []struct {
		c        Case
		says     map[spec.Declarable]string
		features []string
		want     string
	}{
		{c: Case{From: candidate.Client{Pod: sender}, To: to("10.0.0.1:80")}},
		{c: Case{From: candidate.Client{Pod: sender}, To: to("10.0.0.1:80"), Protocol: corev1.ProtocolUDP}, want: spec.FeatureUDP},
		{c: Case{From: candidate.Client{Pod: sender}, To: to("172.30.1.1:30080")}, want: spec.FeatureNodePort},
		{c: Case{From: candidate.Client{Pod: sender}, To: to("172.30.1.1:30080")}, features: []string{spec.FeatureNodePort}},
		{c: Case{From: candidate.Client{Pod: sender}, To: to("172.30.1.1:0")}, want: spec.FeatureNodePort},
		{c: Case{From: candidate.Client{Pod: sender}, To: to("172.30.1.1:30081"), Path: "/healthz"}},
		{c: Case{From: Host("node-1"), To: to("10.0.0.1:80")}, want: string(spec.HostAccess)},
		{c: Case{From: Host("node-1"), To: to("10.0.0.1:80")}, says: served},
		{c: Case{From: Host("node-1"), To: to("10.244.1.1:8080")}},
		{c: Case{From: candidate.Client{Pod: backend}, To: to("10.0.0.1:80")}, want: string(spec.Hairpin)},
		{c: Case{From: candidate.Client{Pod: backend}, To: to("10.0.0.1:80")}, says: map[spec.Declarable]string{spec.Hairpin: "cluster-ip"}},
		{c: Case{From: candidate.Client{Pod: backend}, To: to("172.30.1.1:30080")}, says: map[spec.Declarable]string{spec.Hairpin: "cluster-ip"}, features: []string{spec.FeatureNodePort}, want: string(spec.Hairpin)},
	} {
		n := claiming(t, test.says, test.features...)
		n.pods, n.senders[sender] = pods, true
		if got := n.beyondClaims(&test.c); got != test.want {
			t.Errorf("%s to %s/%s is beyond %q, want %q", test.c.From, test.c.To, test.c.Protocol, got, test.want)
		}
	}
}
