package proxy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	discoveryv1 "k8s.io/api/discovery/v1"
	"pgregory.net/rapid"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

func TestEndpointsThatAConnectionMayBeGiven(t *testing.T) {
	one := func(es ...discoveryv1.Endpoint) []discoveryv1.Endpoint { return es }
	for name, c := range map[string]struct {
		endpoints      []discoveryv1.Endpoint
		cluster, local string
	}{
		"none":                           {nil, "refuse", "refuse"},
		"ready ones of both nodes":       {one(endpoint(1, "n1", ready), endpoint(2, "n2", ready)), "1:8080 2:8080", "1:8080"},
		"unready never":                  {one(endpoint(1, "n1", unready), endpoint(2, "n2", unready)), "refuse", "refuse"},
		"unready beside ready":           {one(endpoint(1, "n1", unready), endpoint(2, "n1", ready)), "2:8080", "2:8080"},
		"terminating beside ready":       {one(endpoint(1, "n1", terminating), endpoint(2, "n1", ready)), "2:8080", "2:8080"},
		"terminating alone":              {one(endpoint(1, "n1", terminating), endpoint(2, "n1", unready)), "1:8080", "1:8080"},
		"finished alone":                 {one(endpoint(1, "n1", finished)), "refuse", "refuse"},
		"terminating before finished":    {one(endpoint(1, "n1", finished), endpoint(2, "n1", terminating)), "2:8080", "2:8080"},
		"terminating here, ready there":  {one(endpoint(1, "n1", terminating), endpoint(2, "n2", ready)), "2:8080", "1:8080"},
		"finished here, ready there":     {one(endpoint(1, "n1", finished), endpoint(2, "n2", ready)), "2:8080", "drop"},
		"unready here, ready there":      {one(endpoint(1, "n1", unready), endpoint(2, "n2", ready)), "2:8080", "drop"},
		"unready here, terminating both": {one(endpoint(1, "n1", terminating), endpoint(2, "n2", terminating)), "1:8080 2:8080", "1:8080"},
		"ready on another node only":     {one(endpoint(1, "n2", ready)), "1:8080", "drop"},
		"terminating on another node":    {one(endpoint(1, "n2", terminating)), "1:8080", "drop"},
		"without a node":                 {one(endpoint(1, "", ready)), "1:8080", "drop"},
		"without a node beside a local":  {one(endpoint(1, "", ready), endpoint(2, "n1", ready)), "1:8080 2:8080", "2:8080"},
		"nothing said is ready":          {one(discoveryv1.Endpoint{Addresses: []string{"10.244.0.1"}, NodeName: new("n1")}), "1:8080", "1:8080"},

		"hints of the zone":            {one(inZone(endpoint(1, "n2", ready), "z1"), inZone(endpoint(2, "n1", ready), "z2")), "1:8080", "2:8080"},
		"hints of several zones":       {one(inZone(endpoint(1, "n2", ready), "z2", "z1"), inZone(endpoint(2, "n2", ready), "z2")), "1:8080", "drop"},
		"incomplete hints":             {one(inZone(endpoint(1, "n2", ready), "z1"), endpoint(2, "n2", ready)), "1:8080 2:8080", "drop"},
		"unfitting hints":              {one(inZone(endpoint(1, "n2", ready), "z2"), inZone(endpoint(2, "n2", ready), "z3")), "1:8080 2:8080", "drop"},
		"unready ones need no hint":    {one(inZone(endpoint(1, "n2", ready), "z1"), inZone(endpoint(2, "n2", ready), "z2"), endpoint(3, "n2", unready)), "1:8080", "drop"},
		"unready one has the hint":     {one(inZone(endpoint(1, "n2", unready), "z1"), inZone(endpoint(2, "n2", ready), "z2")), "2:8080", "drop"},
		"no hints for terminating":     {one(inZone(endpoint(1, "n2", terminating), "z1"), inZone(endpoint(2, "n2", terminating), "z2")), "1:8080 2:8080", "drop"},
		"hints of the node":            {one(forNode(endpoint(1, "n2", ready), "n1"), forNode(endpoint(2, "n2", ready), "n2")), "1:8080", "drop"},
		"node before zone":             {one(forNode(inZone(endpoint(1, "n2", ready), "z2"), "n1"), forNode(inZone(endpoint(2, "n2", ready), "z1"), "n2")), "1:8080", "drop"},
		"unfitting node, fitting zone": {one(forNode(inZone(endpoint(1, "n2", ready), "z2"), "n2"), forNode(inZone(endpoint(2, "n2", ready), "z1"), "n2")), "2:8080", "drop"},
		"incomplete node hints, zone":  {one(inZone(endpoint(1, "n2", ready), "z1"), forNode(inZone(endpoint(2, "n2", ready), "z2"), "n1")), "1:8080", "drop"},
	} {
		for _, mode := range []string{"iptables", "nftables", "ipvs"} {
			config := candidate.ProxyConfiguration{Mode: mode}
			what := name + " in mode " + mode
			expect(t, what+", Cluster", reached(nodeWith(config, web(nil), slice(c.endpoints...)), packet(podIP, clusterIP)), c.cluster)
			n := nodeWith(config, web(bothLocal), slice(c.endpoints...))
			expect(t, what+", internal Local", reached(n, packet(podIP, clusterIP)), c.local)
			expect(t, what+", external Local", reached(n, packet(outsideIP, loadBalancerIP)), c.local)
			expect(t, what+", external Local from inside", reached(n, packet(podIP, loadBalancerIP)), c.cluster)
		}
	}
}

// This rule holds whatever else does. Nothing goes to an endpoint that is neither ready nor terminating and serving,
// and under policy Local nothing leaves the node.
func TestNoConnectionGoesWhereItMustNot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var es []discoveryv1.Endpoint
		states := map[string]string{}
		nodes := map[string]string{}
		for i := range rapid.IntRange(0, 6).Draw(t, "endpoints") {
			node := rapid.SampledFrom([]string{"n1", "n2", ""}).Draw(t, "node")
			state := rapid.SampledFrom([]string{ready, unready, terminating, finished}).Draw(t, "state")
			e := endpoint(i+1, node, state)
			if rapid.Bool().Draw(t, "zone hint") {
				e = inZone(e, rapid.SampledFrom([]string{"z1", "z2"}).Draw(t, "zone"))
			}
			if rapid.Bool().Draw(t, "node hint") {
				e = forNode(e, rapid.SampledFrom([]string{"n1", "n2"}).Draw(t, "for node"))
			}
			es = append(es, e)
			states[e.Addresses[0]], nodes[e.Addresses[0]] = state, node
		}
		config := candidate.ProxyConfiguration{Mode: rapid.SampledFrom([]string{"iptables", "nftables", "ipvs"}).Draw(t, "mode")}
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		for _, isLocal := range []bool{false, true} {
			service := web(nil)
			if isLocal {
				bothLocal(service)
			}
			n := nodeWith(config, service, slice(es...))
			anyReady, anyLast := false, false // among those that the policy lets in
			for a, state := range states {
				if !isLocal || nodes[a] == "n1" {
					anyReady, anyLast = anyReady || state == ready, anyLast || state == terminating
				}
			}
			for _, p := range []*Packet{packet(podIP, clusterIP), packet(outsideIP, loadBalancerIP), packet(outsideIP, fmt.Sprint(nodeIP, ":", nodePort))} {
				d := n.Decide(start, p, random, nobody)
				if (d.Answer == Forward) != (anyReady || anyLast) {
					t.Fatalf("%v, local %v: answer %v with endpoints %v on %v", p.To, isLocal, d.Answer, states, nodes)
				}
				if d.Answer != Forward {
					continue
				}
				a := d.To.Addr().String()
				if state := states[a]; state != ready && (state != terminating || anyReady) {
					t.Fatalf("%v, local %v: went to %s, which is %q, of %v", p.To, isLocal, a, state, states)
				}
				if isLocal && nodes[a] != "n1" {
					t.Fatalf("%v: left the node to %s of %v", p.To, a, nodes)
				}
			}
		}
	})
}

func TestWhatNoServiceClaims(t *testing.T) {
	n := nodeWith(candidate.ProxyConfiguration{}, web(nil), slice(endpoint(1, "n1", ready)))
	for to, want := range map[string]string{
		clusterIP + ":81": "refuse", // of a Service that has no such port
		"10.96.0.11:80":   "drop",   // of no Service
		"10.244.0.1:8080": "pass", nodeIP + ":80": "pass",
		clusterIP + ":80": "1:8080", strings.Join([]string{nodeIP, "30081"}, ":"): "pass",
	} {
		expect(t, to, reached(n, packet(podIP, to)), want)
	}
	udp := packet(podIP, clusterIP)
	udp.Protocol = "UDP"
	expect(t, "the port with another protocol", reached(n, udp), "refuse")
	unprogrammed := New(fault.Set{}).NewNode(candidate.Node{Name: "n1"}, true)
	expect(t, "a node without a proxy", reached(unprogrammed, packet(podIP, clusterIP)), "pass")
}
