package check

import (
	"math/big"
	"net/netip"
	"testing"

	"pgregory.net/rapid"
)

func TestBandsOf(t *testing.T) {
	for _, c := range []struct {
		cidr, usable                          string
		offset                                int
		first, staticLast, dynamicFirst, last string
	}{
		{"10.96.0.0/24", "254", 16, "10.96.0.1", "10.96.0.16", "10.96.0.17", "10.96.0.254"},
		{"10.96.0.0/20", "4094", 256, "10.96.0.1", "10.96.1.0", "10.96.1.1", "10.96.15.254"},
		{"10.96.0.0/16", "65534", 256, "10.96.0.1", "10.96.1.0", "10.96.1.1", "10.96.255.254"},
		{"10.96.0.0/23", "510", 32, "10.96.0.1", "10.96.0.32", "10.96.0.33", "10.96.1.254"},
		{"10.96.0.0/22", "1022", 64, "10.96.0.1", "10.96.0.64", "10.96.0.65", "10.96.3.254"},
		{"10.96.0.0/27", "30", 16, "10.96.0.1", "10.96.0.16", "10.96.0.17", "10.96.0.30"},
		{"10.96.0.0/28", "14", 0, "10.96.0.1", "invalid IP", "10.96.0.1", "10.96.0.14"},
		{"10.96.0.0/30", "2", 0, "10.96.0.1", "invalid IP", "10.96.0.1", "10.96.0.2"},
		{"10.96.0.0/31", "0", 0, "invalid IP", "invalid IP", "invalid IP", "invalid IP"},
		{"10.96.0.0/32", "0", 0, "invalid IP", "invalid IP", "invalid IP", "invalid IP"},
		{"fd00::/124", "15", 0, "fd00::1", "invalid IP", "fd00::1", "fd00::f"},
		{"fd00::/123", "31", 16, "fd00::1", "fd00::10", "fd00::11", "fd00::1f"},
		{"fd00::/112", "65535", 256, "fd00::1", "fd00::100", "fd00::101", "fd00::ffff"},
		{"fd00::/64", "18446744073709551615", 256, "fd00::1", "fd00::100", "fd00::101", "fd00::ffff:ffff:ffff:ffff"},
	} {
		b := BandsOf(netip.MustParsePrefix(c.cidr))
		if b.Usable.String() != c.usable || b.Offset != c.offset || b.First.String() != c.first || b.StaticLast.String() != c.staticLast ||
			b.DynamicFirst.String() != c.dynamicFirst || b.Last.String() != c.last {
			t.Errorf("%s: got %+v", c.cidr, b)
		}
	}
}

func TestBandsPartitionTheRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base := netip.MustParseAddr("10.0.0.0")
		bits := rapid.IntRange(8, 32).Draw(t, "bits")
		if rapid.Bool().Draw(t, "v6") {
			base, bits = netip.MustParseAddr("fd00::"), rapid.IntRange(64, 128).Draw(t, "bits6")
		}
		cidr := netip.PrefixFrom(base, bits)
		b := BandsOf(cidr)
		if b.Usable.Sign() == 0 {
			return
		}
		n := new(big.Int).Add(b.Usable, big.NewInt(2)).Uint64()
		addr := AddressPlus(base, new(big.Int).SetUint64(rapid.Uint64Range(0, min(n, 1<<40)).Draw(t, "n")%max(n, 1)))
		inside := cidr.Contains(addr) && addr != b.Network && addr != b.Broadcast
		if static, dynamic := b.InStatic(addr), b.InDynamic(addr); static && dynamic || (static || dynamic) != inside {
			t.Fatalf("%s in %s: static %v, dynamic %v, usable %v", addr, cidr, static, dynamic, inside)
		}
	})
}

func TestSampleSizesFollowFromTheBound(t *testing.T) {
	if n := TrialsUntil(0.5); n != 30 { // 2^-30 < 1e-9 < 2^-29
		t.Errorf("TrialsUntil(0.5) = %d", n)
	}
	if n := TrialsUntil(1); n != 1 {
		t.Errorf("TrialsUntil(1) = %d", n)
	}
	if n := OrderedBy(); n != 13 { // 1/13! < 1e-9 < 1/12!
		t.Errorf("OrderedBy() = %d", n)
	}
}
