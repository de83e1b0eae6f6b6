package kindcluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"sigs.k8s.io/kind/pkg/cluster/nodes"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Fence keeps on the nodes of a cluster what is sent to addresses that nobody has. These are Service addresses that the
// proxy does not serve, and the networks for tests and documentation. The nodes answer it with an ICMP error that no
// proxy gives for a Service. Without a fence such packets go wherever the network around the machine leads them. Some
// networks answer for every address, and nothing that a run sends may leave the cluster. While it is up each node has
// the addresses candidate.Witness.
type Fence struct {
	nodes  []nodes.Node
	before []string // limits on ICMP errors of each node
}

// testNetworks are those for documentation and benchmarks (RFC 5737, RFC 2544, RFC 3849) that no client of a run has.
// External addresses of Services are among them.
var testNetworks = []netip.Prefix{
	netip.MustParsePrefix("192.0.2.0/24"), netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("198.19.0.0/16"),
	netip.MustParsePrefix("2001:db8::/32"),
}

// allClients hold the clients outside of the cluster (clientRanges) of all nodes.
var allClients = []netip.Prefix{netip.MustParsePrefix("198.18.0.0/16"), netip.MustParsePrefix("2001:db8:52::/48")}

// limits are read and lifted: a kernel tells a peer of errors once a second, and more look like silence.
const limits = "net.ipv4.icmp_ratelimit net.ipv6.icmp.ratelimit"

// fenceWithin bounds the commands on all nodes.
const fenceWithin = time.Minute

// Fence puts the fence up; ranges are those of the cluster's Services. The cluster must be one of kind.
func (c *Cluster) Fence(ctx context.Context, ranges []netip.Prefix) (_ *Fence, err error) {
	k, is := c.provider.(*Kind)
	if !is {
		return nil, fmt.Errorf("cluster %s is not one of kind", c.Name)
	}
	all, err := k.nodes()
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, fenceWithin)
	defer cancel()
	f := &Fence{nodes: all}
	if f.before, err = onNodes(ctx, all, func(int) string { return fenceScript(ranges) }); err != nil {
		_, removing := f.Remove(context.WithoutCancel(ctx))
		return nil, errors.Join(fmt.Errorf("fence of cluster %s: %w", c.Name, err), removing)
	}
	return f, nil
}

// fenceScript is for the shell of a node. The chains come behind those of every proxy. What a proxy has translated has
// another destination by then, and what it refuses or drops does not come so far.
func fenceScript(ranges []netip.Prefix) string {
	var s strings.Builder
	fmt.Fprintf(&s, "for limit in %s; do sysctl $limit 2>/dev/null || true; done | tr -d ' '\n", limits)
	fmt.Fprintf(&s, "for limit in %s; do sysctl -w $limit=0 >/dev/null 2>&1 || true; done\n", limits)
	for _, six := range []bool{false, true} {
		fmt.Fprintf(&s, "ip addr add %s dev lo 2>/dev/null || true\n", candidate.Witness(six)) // it may be there, and a node may have one family
	}
	s.WriteString("nft delete table inet conformance 2>/dev/null || true\nnft -f - <<END\ntable inet conformance {\n\tchain fence {\n")
	nobody := slices.Concat(ranges, testNetworks)
	of := func(ranges []netip.Prefix, verdict string) {
		for _, p := range ranges {
			fmt.Fprintf(&s, "\t\t%s daddr %s %s\n", nftFamily(p), p, verdict)
		}
	}
	of(allClients, "return")
	of(nobody, "reject with icmpx type admin-prohibited")
	s.WriteString("\t}\n")
	for _, hook := range []string{"forward", "output"} {
		fmt.Fprintf(&s, "\tchain %s {\n\t\ttype filter hook %s priority 50; policy accept;\n\t\tjump fence\n\t}\n", hook, hook)
	}
	s.WriteString("\tchain left {\n\t\ttype filter hook postrouting priority 300; policy accept;\n")
	of(allClients, "return")
	of(nobody, "oifname != \"lo\" counter")
	s.WriteString("\t}\n}\nEND\n")
	return s.String()
}

func nftFamily(p netip.Prefix) string {
	if p.Addr().Is4() {
		return "ip"
	}
	return "ip6"
}

// counted is the sum of the counters in what nft lists: "… counter packets 3 bytes 180".
func counted(listing string) (packets int) {
	fields := strings.Fields(listing)
	for i := 2; i < len(fields); i++ {
		if fields[i-2] == "counter" && fields[i-1] == "packets" {
			n, _ := strconv.Atoi(fields[i])
			packets += n
		}
	}
	return packets
}

// Remove takes the fence down. left is how many packets to addresses that nobody has left a node all the same. That there is no
// fence is no error.
func (f *Fence) Remove(ctx context.Context) (left int, err error) {
	ctx, cancel := context.WithTimeout(ctx, fenceWithin)
	defer cancel()
	said, err := onNodes(ctx, f.nodes, func(i int) string { // one script: entering a node takes a second on a loaded machine
		return "nft list chain inet conformance left 2>/dev/null || true\nnft delete table inet conformance 2>/dev/null || true\n" +
			"for witness in " + candidate.Witness(false).String() + " " + candidate.Witness(true).String() + "; do ip addr del $witness dev lo 2>/dev/null || true; done\n" +
			"for limit in " + strings.Join(strings.Fields(f.before[i]), " ") + "; do sysctl -w $limit >/dev/null 2>&1 || true; done\n"
	})
	for _, listing := range said {
		left += counted(listing)
	}
	return left, err
}
