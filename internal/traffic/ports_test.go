//go:build linux

package traffic

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestAPortIsUsedAgainWhenAllOthersWere(t *testing.T) {
	var ports Ports
	client, other := candidate.Client{Node: "a"}, candidate.Client{Node: "b"}
	taken := map[uint16]bool{}
	first := ports.next(client)
	for port := first; len(taken) < portCount; port = ports.next(client) {
		if taken[port] || port < firstPort || int(port) >= firstPort+portCount {
			t.Fatalf("port %d after %d others", port, len(taken))
		}
		taken[port] = true
		ports.next(other) // has ports of its own
	}
	if last := ports.last[client]; firstPort+last != int(first) {
		t.Errorf("after all of them comes port %d, not %d again", firstPort+last, first)
	}
}

// TestProbersOfOneClientShareItsPorts: what one lease has sent, the kernel may still know when the next one sends.
func TestProbersOfOneClientShareItsPorts(t *testing.T) {
	for _, protocol := range []corev1.Protocol{tcp, udp} {
		_, ports := serve(t, protocol)
		var shared Ports
		last := 0
		for range 5 { // leases
			p := newProber(t)
			p.Ports = &shared
			for _, o := range send(t, p, candidate.Probe{From: candidate.Client{Node: "a"}, To: to(loopback4, ports[0]), Protocol: protocol, Count: 10}) {
				port := int(o.Source.Port())
				if further := (port - last + portCount) % portCount; last > 0 && (further == 0 || further > triesForPort) {
					t.Errorf("%s: port %d follows port %d", protocol, port, last)
				}
				last = port
			}
		}
	}
}
