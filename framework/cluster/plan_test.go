package cluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestPlanSaysWhatTheRunWillDo(t *testing.T) {
	four, six := netip.MustParsePrefix("10.96.0.0/16"), netip.MustParsePrefix("fd00::/112")
	for name, c := range map[string]struct {
		cluster *Cluster
		traffic bool
		want    []string
	}{
		"all of it": {
			&Cluster{
				cidrs: []netip.Prefix{six, four}, nodes: make([]candidate.Node, 5), options: Options{AgentImage: "agent:1", AllowDisruptive: true},
				description: candidate.Description{ProxyMode: "nftables"},
			},
			true, []string{"fd00::/112 and 10.96.0.0/16: dual stack, IPv6 first", "pods on 5 nodes, and in the host network", "kube-proxy: nftables", "yes: checks have the cluster make"},
		},
		"another proxy": {
			&Cluster{cidrs: []netip.Prefix{four}, nodes: make([]candidate.Node, 3), options: Options{AgentImage: "agent:1"}, otherProxy: "no pod of it is ready on node-1"},
			true, []string{"kube-proxy: configured, but no pod of it is ready on node-1; the proxy is judged by what all have in common"},
		},
		"without an image": {&Cluster{cidrs: []netip.Prefix{four}}, true, []string{"10.96.0.0/16: single stack, IPv4", "none: there is no image", "no: no load balancer"}},
		"no such check":    {&Cluster{cidrs: []netip.Prefix{four}, nodes: make([]candidate.Node, 3), options: Options{AgentImage: "agent:1"}}, false, []string{"none: no selected check"}},
		"in any case":      {&Cluster{cidrs: []netip.Prefix{four}}, false, []string{"the label service-conformance/run", "`conformance cleanup` removes"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.cluster.Plan(c.traffic)
			for _, want := range c.want {
				if !strings.Contains(got, want) {
					t.Errorf("no %q in:\n%s", want, got)
				}
			}
			if n := strings.Count(got, "\n"); n != 6 {
				t.Errorf("%d lines, want 6:\n%s", n, got)
			}
		})
	}
}
