package kindcluster

import (
	"net/netip"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestTheFenceSparesClientsOutside(t *testing.T) {
	script := fenceScript([]netip.Prefix{netip.MustParsePrefix("10.96.0.0/24"), netip.MustParsePrefix("fd00:10:96::/112")})
	for i := range 8 {
		for _, p := range clientRanges(i) {
			within := false
			for _, all := range allClients {
				within = within || all.Contains(p.Addr()) && all.Bits() <= p.Bits()
			}
			if !within {
				t.Errorf("the clients of node %d (%s) are not spared", i, p)
			}
		}
	}
	_, chain, _ := strings.Cut(script, "chain fence {")
	for _, want := range []string{"ip daddr 10.96.0.0/24 reject", "ip6 daddr fd00:10:96::/112 reject", "ip daddr 203.0.113.0/24 reject", "ip6 daddr 2001:db8::/32 reject"} {
		before, _, _ := strings.Cut(chain, "reject")
		if at := strings.Index(chain, want); at < 0 || at < strings.LastIndex(before, "return") {
			t.Errorf("want %q after the clients are spared, in\n%s", want, script)
		}
	}
}

func TestCountersAreSummed(t *testing.T) {
	if n := counted("ip daddr 10.96.0.0/24 counter packets 3 bytes 180\n\t\tip6 daddr 2001:db8::/32 counter packets 40 bytes 1\n"); n != 43 {
		t.Errorf("counted %d, want 43", n)
	}
}

func TestLeasesHaveNoWitness(t *testing.T) {
	for _, six := range []bool{false, true} {
		w := candidate.Witness(six)
		if !candidate.IsExternal(w) || w.Is6() != six {
			t.Errorf("%s is no witness of external addresses", w)
		}
		if !strings.Contains(fenceScript(nil), "ip addr add "+w.String()+" dev lo") {
			t.Errorf("the nodes do not get %s", w)
		}
	}
}
