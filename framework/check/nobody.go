package check

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
)

// unheeded is Unreachable where the network says that of every address that nobody has: the candidate has left the packet alone.
const unheeded candidate.Result = "unreachable, as nobody is"

// nobodyIPv4 and nobodyIPv6 are addresses for documentation (RFC 5737, RFC 3849), which no host has.
var (
	nobodyIPv4 = netip.MustParseAddr("203.0.113.113")
	nobodyIPv6 = netip.MustParseAddr("2001:db8:dead::113")
)

// nobody is an address that nobody has, of the family of another one. Where the candidate names some of its own, what is sent to it stays with the candidate.
func nobody(what *candidate.Description, like netip.Addr) netip.Addr {
	for _, a := range what.Nobody {
		if a.Is6() == like.Is6() {
			return a
		}
	}
	if like.Is6() {
		return nobodyIPv6
	}
	return nobodyIPv4
}

// besides is how many addresses after a cluster IP are looked at for a free one.
const besides = 64

// freeBeside is an address right after a cluster IP that no Service has; not valid if the address is no cluster IP, or none is free. inUse are the cluster IPs of all Services.
func freeBeside(a netip.Addr, inUse map[netip.Addr]bool) netip.Addr {
	if !inUse[a] {
		return netip.Addr{}
	}
	for range besides {
		if a = a.Next(); a.IsValid() && !inUse[a] {
			return a
		}
	}
	return netip.Addr{}
}

// refusedOnly returns the outcomes, those of refusals that are none of the candidate as unheeded. A reset or a closed
// port is told by a machine that has the address. A router that knows nothing of Services may also tell that there is
// no way to it.
func (n *Network) refusedOnly(ctx context.Context, cases []Case, outcomes [][]candidate.Outcome) [][]candidate.Outcome {
	ginkgo.GinkgoHelper()
	unreachable := func(o candidate.Outcome) bool { return o.Result == candidate.Unreachable }
	for i, c := range cases {
		if !c.Want.ConnectionRefused || !slices.ContainsFunc(outcomes[i], unreachable) {
			continue
		}
		said := n.saidOfNobody(ctx, &c)
		outcomes[i] = slices.Clone(outcomes[i])
		for k, o := range outcomes[i] {
			if unreachable(o) && o.Error == said {
				outcomes[i][k].Result = unheeded
			}
		}
	}
	return outcomes
}

// route is a way into the network: what it says of an address that nobody has need be asked once.
type route struct {
	from candidate.Client
	six  bool
}

// saidOfNobody is the ICMP error that tells the client that there is no way to an address that nobody has. It is
// silence if no error does.
func (n *Network) saidOfNobody(ctx context.Context, c *Case) string {
	ginkgo.GinkgoHelper()
	key := route{c.From, c.To.Addr().Is6()}
	n.mu.Lock()
	said, known := n.saidOf[key]
	n.mu.Unlock()
	if !known {
		p := c.probe()
		p.To, p.Count, p.SourcePort, p.Connection, p.Path = netip.AddrPortFrom(nobody(&n.what, c.To.Addr()), c.To.Port()), 1, 0, "", ""
		p.Timeout, p.Repeats = saidWithin, lossRepeats
		said = silence
		if o := n.send(ctx, p)[0][0]; o.Result == candidate.Unreachable {
			said = o.Error
		}
		n.mu.Lock()
		n.saidOf[key] = said
		n.mu.Unlock()
	}
	return said
}

// silence is no ICMP error.
const silence = "silence"

// saidWithin is longer than a kernel that has just told a client of one address takes until it tells it of another: a second.
const saidWithin = 3 * time.Second
