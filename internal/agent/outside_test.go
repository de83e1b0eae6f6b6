//go:build linux

package agent

import (
	"net/netip"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// TestOutsideClientsHaveTheirOwnAddresses demands that the backend sees the address of the client that was asked for, of each gateway.
func TestOutsideClientsHaveTheirOwnAddresses(t *testing.T) {
	r := run(t, Config{Outside: map[string][]netip.Addr{
		"node-1": {netip.MustParseAddr("2001:db8::1"), netip.MustParseAddr("127.0.1.1"), netip.MustParseAddr("127.0.1.2")},
		"node-2": {netip.MustParseAddr("127.0.2.1")},
	}}, corev1.ProtocolTCP)
	for want, from := range map[string]candidate.Client{
		"127.0.1.1": {Gateway: "node-1"}, "127.0.1.2": {Gateway: "node-1", Address: 1}, "127.0.2.1": {Gateway: "node-2"},
	} {
		o := r.probe(t, "a", candidate.Probe{From: from, To: r.to(0), Protocol: corev1.ProtocolTCP})[0][0]
		if o.Result != candidate.Answered || o.Source.Addr().String() != want {
			t.Errorf("client %s %d: %s, seen from %s, want %s", from, from.Address, o.Result, o.Source, want)
		}
	}
	for _, from := range []candidate.Client{{Gateway: "node-1", Address: 2}, {Gateway: "node-3"}, {Gateway: "node-2", Address: -1}} {
		_, err := r.client.Probe(t.Context(), "a", []candidate.Probe{{From: from, To: r.to(0), Protocol: corev1.ProtocolTCP}})
		if err == nil || !strings.Contains(err.Error(), "this agent has no client") {
			t.Errorf("client %s %d, which there is not: %v", from, from.Address, err)
		}
	}
}
