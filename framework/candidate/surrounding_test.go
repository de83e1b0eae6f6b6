package candidate

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestSurroundingsAreTold(t *testing.T) {
	v4 := netip.MustParseAddr("203.0.113.113")
	all := []Surrounding{
		{"pods", v4, corev1.ProtocolTCP, "silence"}, {"pods", v4, corev1.ProtocolUDP, "silence"},
		{"nodes", v4, corev1.ProtocolTCP, "accepted by a stranger, then reset"}, {"nodes", netip.MustParseAddr("2001:db8::1"), corev1.ProtocolUDP, "silence"},
	}
	if got, want := SurroundingsText(all), "silence for pods by TCP, pods by UDP, nodes by UDP (IPv6); accepted by a stranger, then reset for nodes by TCP"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := SurroundingsText(all[:2]), "silence for every client"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
