package kindcluster

import (
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/service-conformance/conformance/framework/candidate"
)

type namedNode struct {
	nodes.Node
	name string
}

func (n namedNode) String() string             { return n.name }
func (n namedNode) SerialLogs(io.Writer) error { return nil }

// TestClientsOutsideGoByTheirGateway demands that every client address is one of the container, and that what is sent from it has its gateway as the only way.
func TestClientsOutsideGoByTheirGateway(t *testing.T) {
	o := &Outside{nodes: []outsideNode{
		{Node: namedNode{name: "a"}, addresses: []netip.Addr{netip.MustParseAddr("172.18.0.2"), netip.MustParseAddr("fc00::2")}, clients: clientRanges(0)},
		{Node: namedNode{name: "b"}, addresses: []netip.Addr{netip.MustParseAddr("172.18.0.3")}, clients: clientRanges(1)},
	}}
	lines := strings.Split(strings.TrimSpace(o.script()), "\n")
	for _, want := range []string{
		"ip address add 198.18.0.1/32 dev lo", "ip address add 198.18.1.32/32 dev lo", "ip address add 198.18.0.32/32 dev lo", "ip address add 2001:db8:52::20/128 dev lo",
		"ip -4 route add default via 172.18.0.2 table 100", "ip -4 rule add from 198.18.0.0/24 lookup 100",
		"ip -6 route add default via fc00::2 table 100", "ip -6 rule add from 2001:db8:52::/64 lookup 100",
		"ip -4 route add default via 172.18.0.3 table 101", "ip -4 rule add from 198.18.1.0/24 lookup 101",
	} {
		if !slices.Contains(lines, want) {
			t.Errorf("no %q in\n%s", want, o.script())
		}
	}
	if last := lines[len(lines)-1]; last != "exec /conformance agent" || slices.ContainsFunc(lines, func(l string) bool { return strings.Contains(l, "-6 route") && strings.HasSuffix(l, " 101") }) {
		t.Errorf("last line %q, and a route of a family that node b does not have?\n%s", last, o.script())
	}
}

func TestClientAddressesOfNodesAreDistinct(t *testing.T) {
	seen := map[netip.Addr]bool{}
	for i := range 256 {
		addresses := clientAddresses(clientRanges(i))
		if len(addresses) != 2*candidate.ClientAddresses {
			t.Fatalf("node %d has %d client addresses", i, len(addresses))
		}
		for _, a := range addresses {
			if seen[a] {
				t.Fatalf("%s is that of two nodes", a)
			}
			seen[a] = true
		}
	}
}
