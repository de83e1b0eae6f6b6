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

// TestOutsideBackendsAnswerUntilTheirLeaseEnds demands backends with an identity of their own beside each other, at the address of their gateway, which go by themselves
// or with the lease.
func TestOutsideBackendsAnswerUntilTheirLeaseEnds(t *testing.T) {
	addresses := []netip.Addr{netip.MustParseAddr("2001:db8::1")}
	for i := range candidate.ClientAddresses {
		addresses = append(addresses, netip.AddrFrom4([4]byte{127, 0, 3, byte(i + 1)}))
	}
	r := run(t, Config{Outside: map[string][]netip.Addr{"node-1": addresses}})
	anyPort := []candidate.PodPort{{Protocol: corev1.ProtocolTCP}}
	probes := map[candidate.PodName]candidate.Probe{}
	for _, name := range []string{"one", "two"} {
		pod := candidate.PodName{Namespace: "outside", Name: name}
		at, err := r.client.Serve(t.Context(), "a", "node-1", pod, anyPort)
		if err != nil {
			t.Fatal(err)
		}
		want := netip.AddrFrom4([4]byte{127, 0, 3, candidate.OutsideBackend + 1})
		if len(at.Addresses) != 1 || at.Addresses[0] != want || len(at.Ports) != 1 || at.Ports[0].Number == 0 {
			t.Fatalf("%s answers at %+v, want %s and a port", pod, at, want)
		}
		probes[pod] = candidate.Probe{From: candidate.Client{Gateway: "node-1"}, To: netip.AddrPortFrom(want, uint16(at.Ports[0].Number)), Protocol: corev1.ProtocolTCP}
	}
	expect := func(name string, result candidate.Result) {
		t.Helper()
		pod := candidate.PodName{Namespace: "outside", Name: name}
		o := r.probe(t, "a", probes[pod])[0][0]
		if o.Result != result || result == candidate.Answered && o.Pod != pod {
			t.Errorf("%s: %s by %s, want %s", pod, o.Result, o.Pod, result)
		}
	}
	expect("one", candidate.Answered)
	expect("two", candidate.Answered)
	for range 2 { // the second time there is none
		if err := r.client.KillHosted(t.Context(), "a", candidate.PodName{Namespace: "outside", Name: "one"}); err != nil {
			t.Fatal(err)
		}
	}
	expect("one", candidate.Refused)
	expect("two", candidate.Answered)
	if err := r.client.End(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	expect("two", candidate.Refused)
	if _, err := r.client.Serve(t.Context(), "a", "node-2", candidate.PodName{Namespace: "outside", Name: "one"}, anyPort); err == nil || !strings.Contains(err.Error(), `no address for backends with the gateway "node-2"`) {
		t.Errorf("a gateway that there is not: %v", err)
	}
}
