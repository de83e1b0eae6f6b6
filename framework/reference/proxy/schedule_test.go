package proxy

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestRoundRobinIsInStrictOrder(t *testing.T) {
	for _, scheduler := range []string{"", "rr"} {
		n := nodeWith(candidate.ProxyConfiguration{Mode: "ipvs", Scheduler: scheduler}, web(nil),
			slice(endpoint(1, "n1", ready), endpoint(2, "n2", ready), endpoint(3, "n2", ready)))
		var order []netip.AddrPort
		for range 12 {
			order = append(order, n.Decide(start, packet(podIP, clusterIP), nil, nobody).To)
		}
		first := map[netip.AddrPort]bool{order[0]: true, order[1]: true, order[2]: true}
		if len(first) != 3 {
			t.Errorf("scheduler %q: the first round %v leaves one out", scheduler, order[:3])
		}
		for i := 3; i < len(order); i++ {
			if order[i] != order[i-3] {
				t.Errorf("scheduler %q: turn %d of %v is not that of the round before", scheduler, i, order)
			}
		}
	}
}

func TestSchedulersThatLookAtConnections(t *testing.T) {
	open := func(to netip.AddrPort) int {
		return map[string]int{"10.244.0.1": 3, "10.244.0.2": 1, "10.244.0.3": 2}[to.Addr().String()]
	}
	idle := func(to netip.AddrPort) int {
		return map[string]int{"10.244.0.1": 3, "10.244.0.2": 1, "10.244.0.3": -1}[to.Addr().String()]
	}
	for scheduler, want := range map[string][2]string{
		"lc": {"10.244.0.2:8080", "10.244.0.3:8080"}, "sed": {"10.244.0.2:8080", "10.244.0.3:8080"}, "nq": {"10.244.0.2:8080", "10.244.0.3:8080"},
	} {
		n := nodeWith(candidate.ProxyConfiguration{Mode: "ipvs", Scheduler: scheduler}, web(nil),
			slice(endpoint(1, "n1", ready), endpoint(2, "n2", ready), endpoint(3, "n2", ready)))
		for i, connections := range []func(netip.AddrPort) int{open, idle} {
			expect(t, scheduler, n.Decide(start, packet(podIP, clusterIP), nil, connections).To.String(), want[i])
		}
	}
}

func TestHashingSchedulersKeepTheirChoice(t *testing.T) {
	n := nodeWith(candidate.ProxyConfiguration{Mode: "ipvs", Scheduler: "sh"}, web(nil), slice(endpoint(1, "n1", ready), endpoint(2, "n2", ready)))
	chosen := map[string]bool{}
	for i := range 16 {
		p := packet(outsideIP, loadBalancerIP)
		p.Source = netip.AddrPortFrom(netip.AddrFrom4([4]byte{203, 0, 113, byte(i)}), 40000)
		first := n.Decide(start, p, nil, nobody).To
		p.Source = netip.AddrPortFrom(p.Source.Addr(), 40001)
		if again := n.Decide(start, p, nil, nobody).To; again != first {
			t.Errorf("client %v went to %v and then to %v", p.Source.Addr(), first, again)
		}
		chosen[first.String()] = true
	}
	if len(chosen) != 2 {
		t.Errorf("sh gives all clients %v", chosen)
	}
	n = nodeWith(candidate.ProxyConfiguration{Mode: "ipvs", Scheduler: "dh"}, web(nil), slice(endpoint(1, "n1", ready), endpoint(2, "n2", ready)))
	first := n.Decide(start, packet(podIP, clusterIP), nil, nobody).To
	for _, client := range []string{nodeIP, "10.244.1.10", "10.244.1.11", "10.244.2.12", outsideIP} {
		expect(t, "dh, client "+client, n.Decide(start, packet(client, clusterIP), nil, nobody).To.String(), first.String())
	}
}

func TestWithoutIPVSTheProxyEnds(t *testing.T) {
	one := slice(endpoint(1, "n1", ready), endpoint(2, "n1", ready))
	n := nodeWith(candidate.ProxyConfiguration{Mode: "ipvs"}, web(nil), one)
	expect(t, "mode with IPVS", n.Serve(start, true, candidate.ProxyMetricsPort, "/proxyMode").Body, "ipvs")
	if nodeWith(candidate.ProxyConfiguration{Mode: "ipvs", WithoutIPVS: true}, web(nil), one).Running() {
		t.Error("the proxy runs in ipvs mode without IPVS")
	}
	if !nodeWith(candidate.ProxyConfiguration{WithoutIPVS: true}, web(nil), one).Running() {
		t.Error("the proxy does not run in another mode")
	}
}

func TestRealServersAreRepairedInTime(t *testing.T) {
	s, of := web(func(s *corev1.Service) { s.Spec.ExternalIPs = nil }), slice(endpoint(1, "n1", ready))
	n := nodeWith(candidate.ProxyConfiguration{Mode: "ipvs", SyncPeriod: "20s"}, s, of)
	current := n.programmed
	n.Interfere(candidate.DropRealServers)
	n.Advance(start.Add(defaultPeriod/2), current)
	expect(t, "before the period", reached(n, packet(podIP, clusterIP)), "refuse")
	n.Advance(start.Add(defaultPeriod*2/3), current)
	expect(t, "after the period", reached(n, packet(podIP, clusterIP)), "1:8080")
	n.Interfere(candidate.AddRealServer)
	expect(t, "a foreign real server", reached(n, packet(podIP, clusterIP)), "1:8080 drop")
}
