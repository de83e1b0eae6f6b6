package proxy

import (
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestSourceAddressThatAnEndpointSees(t *testing.T) {
	own := podIP // a client that is the endpoint itself
	for name, c := range map[string]struct {
		change   func(*corev1.Service)
		from, to string
		want     string
	}{
		"pod to cluster IP":              {nil, podIP, clusterIP, podIP},
		"host to cluster IP":             {nil, nodeIP, clusterIP, nodeIP},
		"outside to cluster IP":          {nil, outsideIP, clusterIP, nodeIP},
		"outside to node port, Cluster":  {nil, outsideIP, nodeIP + ":30080", nodeIP},
		"outside to external, Cluster":   {nil, outsideIP, externalIP, nodeIP},
		"outside to balancer, Cluster":   {nil, outsideIP, loadBalancerIP, nodeIP},
		"outside to node port, Local":    {bothLocal, outsideIP, nodeIP + ":30080", outsideIP},
		"outside to external, Local":     {bothLocal, outsideIP, externalIP, outsideIP},
		"outside to balancer, Local":     {bothLocal, outsideIP, loadBalancerIP, outsideIP},
		"pod to balancer, Cluster":       {nil, podIP, loadBalancerIP, nodeIP},
		"pod to balancer, Local":         {bothLocal, podIP, loadBalancerIP, podIP},
		"host to balancer, Local":        {bothLocal, nodeIP, loadBalancerIP, nodeIP},
		"pod to itself by cluster IP":    {nil, own, clusterIP, nodeIP},
		"pod to itself by balancer":      {bothLocal, own, loadBalancerIP, nodeIP},
		"outside to secondary node port": {nil, outsideIP, secondaryIP + ":30080", nodeIP},
	} {
		e := endpoint(1, "n1", ready)
		if name == "pod to itself by cluster IP" || name == "pod to itself by balancer" {
			e.Addresses = []string{own}
		}
		n := nodeWith(candidate.ProxyConfiguration{}, web(c.change), slice(e))
		d := n.Decide(start, packet(c.from, c.to), rand.New(rand.NewPCG(1, 1)), nobody)
		if d.Answer != Forward || d.Source.String() != c.want {
			t.Errorf("%s: %+v, want the source %s", name, d, c.want)
		}
	}
}

func TestNodePortAddresses(t *testing.T) {
	const served, left = "1:8080", "pass"
	for name, c := range map[string]struct {
		mode                         string
		addresses                    []string
		primary, secondary, loopback string
	}{
		"iptables":           {"iptables", nil, served, served, served},
		"nftables":           {"nftables", nil, served, left, left},
		"ipvs":               {"ipvs", nil, served, served, served},
		"iptables, primary":  {"iptables", []string{"primary"}, served, left, left},
		"nftables, primary":  {"nftables", []string{"primary"}, served, left, left},
		"iptables, a range":  {"iptables", []string{"172.30.2.0/24"}, left, served, left},
		"nftables, a range":  {"nftables", []string{"172.30.2.0/24"}, left, served, left},
		"iptables, all":      {"iptables", []string{"0.0.0.0/0"}, served, served, served},
		"nftables, all":      {"nftables", []string{"0.0.0.0/0"}, served, served, left},
		"iptables, loopback": {"iptables", []string{"10.0.0.0/8", "127.0.0.0/8"}, left, left, served},
	} {
		n := nodeWith(candidate.ProxyConfiguration{Mode: c.mode, NodePortAddresses: c.addresses}, web(nil), slice(endpoint(1, "n1", ready)))
		expect(t, name+", primary address", reached(n, packet(outsideIP, nodeIP+":30080")), c.primary)
		expect(t, name+", secondary address", reached(n, packet(outsideIP, secondaryIP+":30080")), c.secondary)
		expect(t, name+", loopback", reached(n, packet(nodeIP, "127.0.0.1:30080")), c.loopback)
		expect(t, name+", another node", reached(n, packet(outsideIP, "172.30.1.2:30080")), left)
		expect(t, name+", cluster IP", reached(n, packet(podIP, clusterIP)), served)
	}
}

func TestSourceRanges(t *testing.T) {
	for name, c := range map[string]struct {
		ranges   []string
		from, to string
		want     string
	}{
		"none":                  {nil, outsideIP, loadBalancerIP, "1:8080"},
		"within":                {[]string{"203.0.113.0/24"}, outsideIP, loadBalancerIP, "1:8080"},
		"within the second":     {[]string{"192.0.2.0/24", "203.0.113.7/32"}, outsideIP, loadBalancerIP, "1:8080"},
		"outside of it":         {[]string{"203.0.113.8/32"}, outsideIP, loadBalancerIP, "drop"},
		"everything":            {[]string{"0.0.0.0/0"}, outsideIP, loadBalancerIP, "1:8080"},
		"pod outside of it":     {[]string{"203.0.113.0/24"}, podIP, loadBalancerIP, "drop"},
		"not for node ports":    {[]string{"203.0.113.8/32"}, outsideIP, nodeIP + ":30080", "1:8080"},
		"not for external IPs":  {[]string{"203.0.113.8/32"}, outsideIP, externalIP, "1:8080"},
		"not for the clusterIP": {[]string{"203.0.113.8/32"}, podIP, clusterIP, "1:8080"},
	} {
		n := nodeWith(candidate.ProxyConfiguration{}, web(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = c.ranges }), slice(endpoint(1, "n1", ready)))
		expect(t, name, reached(n, packet(c.from, c.to)), c.want)
	}
}

func TestExternalIPsCanBeForbidden(t *testing.T) {
	for _, c := range []struct {
		gates map[string]bool
		want  string
	}{{nil, "1:8080"}, {map[string]bool{"AllowServiceExternalIPs": true}, "1:8080"}, {map[string]bool{"AllowServiceExternalIPs": false}, "pass"}} {
		n := nodeWith(candidate.ProxyConfiguration{FeatureGates: c.gates}, web(nil), slice(endpoint(1, "n1", ready)))
		expect(t, "external IP", reached(n, packet(outsideIP, externalIP)), c.want)
		expect(t, "load balancer", reached(n, packet(outsideIP, loadBalancerIP)), "1:8080")
	}
}
