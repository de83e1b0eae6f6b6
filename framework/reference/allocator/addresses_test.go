package allocator

import (
	"errors"
	"math"
	"net/netip"
	"sync"
	"testing"
)

func newTestAllocator(t testing.TB, prefix string) Allocator {
	t.Helper()
	a, err := New(netip.MustParsePrefix(prefix), Options{Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestWorkedExamples holds every number of the three examples of the document, and what follows for other sizes. These
// are the number of usable addresses, the ends of each band, and the order of a complete fill.
func TestWorkedExamples(t *testing.T) {
	for _, c := range []struct {
		prefix                               string
		usable, lower                        uint64
		firstLower, lastLower                string
		firstUpper, lastUpper, outsideAtLast string
	}{
		{"10.96.0.0/24", 254, 16, "10.96.0.1", "10.96.0.16", "10.96.0.17", "10.96.0.254", "10.96.0.255"},
		{"10.96.0.0/20", 4094, 256, "10.96.0.1", "10.96.1.0", "10.96.1.1", "10.96.15.254", "10.96.15.255"},
		{"10.96.0.0/16", 65534, 256, "10.96.0.1", "10.96.1.0", "10.96.1.1", "10.96.255.254", "10.96.255.255"},
		{"10.96.0.0/27", 30, 16, "10.96.0.1", "10.96.0.16", "10.96.0.17", "10.96.0.30", "10.96.0.31"},
		{"10.96.0.0/23", 510, 32, "10.96.0.1", "10.96.0.32", "10.96.0.33", "10.96.1.254", "10.96.1.255"},
		{"10.96.0.0/22", 1022, 64, "10.96.0.1", "10.96.0.64", "10.96.0.65", "10.96.3.254", "10.96.3.255"},
		{"10.96.0.0/21", 2046, 128, "10.96.0.1", "10.96.0.128", "10.96.0.129", "10.96.7.254", "10.96.7.255"},
		{"fd00::/123", 31, 16, "fd00::1", "fd00::10", "fd00::11", "fd00::1f", "fd00::20"},
		{"fd00::/112", 65535, 256, "fd00::1", "fd00::100", "fd00::101", "fd00::ffff", "fd00::1:0"},
	} {
		t.Run(c.prefix, func(t *testing.T) {
			a := newTestAllocator(t, c.prefix)
			if a.Free() != c.usable {
				t.Errorf("%d addresses are usable, want %d", a.Free(), c.usable)
			}
			for _, outside := range []string{a.Prefix().Addr().String(), c.outsideAtLast, a.Prefix().Addr().Prev().String()} {
				if err := a.Allocate(netip.MustParseAddr(outside)); !errors.As(err, new(*NotInRangeError)) {
					t.Errorf("Allocate(%s) = %v, want that it is not in range", outside, err)
				}
			}
			seen := map[netip.Addr]bool{}
			fill := func(n uint64, first, last string) {
				low, high := netip.MustParseAddr(last), netip.MustParseAddr(first)
				for range n {
					ip, err := a.AllocateNext()
					if err != nil || seen[ip] {
						t.Fatalf("AllocateNext() = %s, %v after %d", ip, err, len(seen))
					}
					seen[ip] = true
					if ip.Less(low) {
						low = ip
					}
					if high.Less(ip) {
						high = ip
					}
				}
				if low.String() != first || high.String() != last {
					t.Errorf("band is %s to %s, want %s to %s", low, high, first, last)
				}
			}
			fill(c.usable-c.lower, c.firstUpper, c.lastUpper)
			fill(c.lower, c.firstLower, c.lastLower)
			if ip, err := a.AllocateNext(); !errors.Is(err, ErrFull) {
				t.Errorf("AllocateNext() of a full range = %s, %v", ip, err)
			}
			a.Release(netip.MustParseAddr(c.lastLower))
			a.Release(netip.MustParseAddr(c.firstUpper))
			for _, want := range []string{c.firstUpper, c.lastLower} {
				if ip, err := a.AllocateNext(); err != nil || ip.String() != want {
					t.Errorf("AllocateNext() = %s, %v, want the released %s", ip, err, want)
				}
			}
		})
	}
}

// TestRangeSizes holds the number of usable addresses of every size, the largest ones included, and that both ends of the
// range can be chosen.
func TestRangeSizes(t *testing.T) {
	for prefix, want := range map[string]uint64{
		"10.0.0.0/32": 0, "10.0.0.0/31": 0, "10.0.0.0/30": 2, "10.0.0.0/29": 6, "10.0.0.0/28": 14, "10.0.0.0/12": 1<<20 - 2, "10.0.0.0/8": 1<<24 - 2,
		"0.0.0.0/0": 1<<32 - 2, "255.255.255.255/32": 0, "fd00::/128": 0, "fd00::/127": 1, "fd00::/126": 3, "fd00::/124": 15,
		"fd00::/108": 1<<20 - 1, "fd00::/96": 1<<32 - 1, "fd00::/65": 1<<63 - 1, "fd00::/64": math.MaxUint64,
		"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff/128": 0, "ffff:ffff:ffff:ffff::/64": math.MaxUint64,
	} {
		a := newTestAllocator(t, prefix)
		if a.Free() != want {
			t.Errorf("%s: %d addresses are usable, want %d", prefix, a.Free(), want)
			continue
		}
		if want == 0 {
			if ip, err := a.AllocateNext(); !errors.Is(err, ErrFull) {
				t.Errorf("%s: AllocateNext() = %s, %v, want ErrFull", prefix, ip, err)
			}
			continue
		}
		inner := a.(*addresses)
		ends := []netip.Addr{inner.address(0), inner.address(want - 1)}
		if ends[0] != a.Prefix().Addr().Next() || !a.Prefix().Contains(ends[1]) {
			t.Errorf("%s: usable addresses are %s to %s", prefix, ends[0], ends[1])
		}
		for _, ip := range ends {
			if want == 1 && a.Has(ip) {
				continue
			}
			if err := a.Allocate(ip); err != nil {
				t.Errorf("%s: Allocate(%s) = %v", prefix, ip, err)
			}
			if err := a.Allocate(ip); !errors.Is(err, ErrAllocated) {
				t.Errorf("%s: second Allocate(%s) = %v, want ErrAllocated", prefix, ip, err)
			}
			if !a.Has(ip) {
				t.Errorf("%s: Has(%s) is false", prefix, ip)
			}
		}
	}
}

func TestNewRefusesBadRanges(t *testing.T) {
	for _, prefix := range []netip.Prefix{
		{}, netip.MustParsePrefix("10.0.0.1/24"), netip.MustParsePrefix("fd00::/63"), netip.MustParsePrefix("::ffff:10.0.0.0/120"),
	} {
		if _, err := New(prefix, Options{}); err == nil {
			t.Errorf("New(%s): no error", prefix)
		}
	}
}

// TestAddressesOfAnotherKind: what looks like an address of the range and is none is out of range.
func TestAddressesOfAnotherKind(t *testing.T) {
	four, six := newTestAllocator(t, "10.96.0.0/24"), newTestAllocator(t, "fe80::/64")
	for ip, a := range map[string]Allocator{"::ffff:10.96.0.5": four, "::a60:5": four, "fe80::5%eth0": six, "10.96.0.5": six} {
		addr := netip.MustParseAddr(ip)
		if err := a.Allocate(addr); !errors.As(err, new(*NotInRangeError)) {
			t.Errorf("Allocate(%s) = %v, want that it is not in %s", ip, err, a.Prefix())
		}
		if a.Has(addr) {
			t.Errorf("%s has %s", a.Prefix(), ip)
		}
		a.Release(addr)
	}
	if err := four.Allocate(netip.Addr{}); err == nil {
		t.Error("the zero address is allocated")
	}
}

// TestSparseRange uses a /64 and a /8 the way a large cluster does. Memory grows with the addresses in use, and every
// address can be found and given back.
func TestSparseRange(t *testing.T) {
	for _, prefix := range []string{"fd00::/64", "10.0.0.0/8"} {
		a := newTestAllocator(t, prefix)
		size := a.Free()
		var taken []netip.Addr
		for range 3000 {
			ip, err := a.AllocateNext()
			if err != nil {
				t.Fatal(err)
			}
			taken = append(taken, ip)
		}
		upper := a.(*addresses).address(256)
		for _, ip := range taken {
			if ip.Less(upper) || !a.Has(ip) {
				t.Errorf("%s: %s is of the lower band, or not in use", prefix, ip)
			}
			a.Release(ip)
		}
		pairs := len(a.(*addresses).bands.upper.sparse)
		if a.Free() != size || pairs != 0 {
			t.Errorf("%s: %d of %d addresses are free, %d pairs are left", prefix, a.Free(), size, pairs)
		}
	}
}

// TestUniform uses a third of a range, chosen to lie unevenly. Then each free address of the upper band is as likely as
// the other. The seed is fixed, so the test decides the same every time. Its bound is that of chi-square with 157
// degrees of freedom at about 1e-9.
func TestUniform(t *testing.T) {
	a := newTestAllocator(t, "10.96.0.0/24")
	inner := a.(*addresses)
	for n := uint64(16); n < 96; n++ {
		if err := a.Allocate(inner.address(n)); err != nil {
			t.Fatal(err)
		}
	}
	const draws = 158 * 200
	count := map[netip.Addr]float64{}
	for range draws {
		ip, err := a.AllocateNext()
		if err != nil {
			t.Fatal(err)
		}
		count[ip]++
		a.Release(ip)
	}
	if len(count) != 158 {
		t.Fatalf("%d different addresses, want 158", len(count))
	}
	chi := 0.0
	for _, n := range count {
		chi += (n - 200) * (n - 200) / 200
	}
	if chi > 280 {
		t.Errorf("chi-square of the choice is %.0f with 157 degrees of freedom", chi)
	}
}

// TestSeed: the same seed makes the same choices, another one others.
func TestSeed(t *testing.T) {
	draw := func(seed uint64) (ips [8]netip.Addr) {
		a, err := New(netip.MustParsePrefix("10.0.0.0/12"), Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		for i := range ips {
			ips[i], _ = a.AllocateNext()
		}
		return ips
	}
	first := draw(1)
	if again := draw(1); again != first {
		t.Error("one seed makes different choices")
	}
	if draw(2) == first {
		t.Error("two seeds make the same choices")
	}
}

// TestConcurrentFill: many clients fill a range together; each address goes to one of them.
func TestConcurrentFill(t *testing.T) {
	a := newTestAllocator(t, "10.96.0.0/22")
	size := a.Free()
	var mu sync.Mutex
	var wait sync.WaitGroup
	owners := map[netip.Addr]int{}
	for range 8 {
		wait.Go(func() {
			for {
				ip, err := a.AllocateNext()
				if err != nil {
					return
				}
				mu.Lock()
				owners[ip]++
				mu.Unlock()
			}
		})
	}
	wait.Wait()
	if uint64(len(owners)) != size || a.Free() != 0 {
		t.Errorf("%d addresses were given out and %d are free, of %d", len(owners), a.Free(), size)
	}
	for ip, n := range owners {
		if n != 1 {
			t.Errorf("%s was given out %d times", ip, n)
		}
	}
}
