package check

import (
	"net/netip"
	"testing"
)

func TestFreeBeside(t *testing.T) {
	a := netip.MustParseAddr
	full := map[netip.Addr]bool{}
	for ip, i := a("10.96.0.1"), 0; i <= besides; ip, i = ip.Next(), i+1 {
		full[ip] = true
	}
	for name, c := range map[string]struct {
		at    string
		inUse map[netip.Addr]bool
		want  netip.Addr
	}{
		"the next one":     {"10.96.0.1", map[netip.Addr]bool{a("10.96.0.1"): true}, a("10.96.0.2")},
		"behind others":    {"10.96.0.1", map[netip.Addr]bool{a("10.96.0.1"): true, a("10.96.0.2"): true}, a("10.96.0.3")},
		"of the family":    {"fd00::1", map[netip.Addr]bool{a("fd00::1"): true}, a("fd00::2")},
		"no cluster IP":    {"192.0.2.1", map[netip.Addr]bool{a("10.96.0.1"): true}, netip.Addr{}},
		"all are in use":   {"10.96.0.1", full, netip.Addr{}},
		"the last address": {"255.255.255.255", map[netip.Addr]bool{a("255.255.255.255"): true}, netip.Addr{}},
	} {
		if got := freeBeside(a(c.at), c.inUse); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}
