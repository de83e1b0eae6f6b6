package allocator

import (
	"errors"
	"net/netip"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// model is the naive reading of the document: a set of taken addresses and a list of all usable ones.
type model struct {
	usable []netip.Addr
	lower  int // the first so many are the lower band
	taken  map[netip.Addr]bool
}

func newModel(prefix netip.Prefix) *model {
	m := &model{taken: map[netip.Addr]bool{}}
	for ip := prefix.Addr(); prefix.Contains(ip); ip = ip.Next() {
		m.usable = append(m.usable, ip)
	}
	size := len(m.usable)
	m.usable = m.usable[1:]
	if prefix.Addr().Is4() {
		m.usable = m.usable[:max(0, len(m.usable)-1)]
	}
	if size > 16 {
		m.lower = min(max(16, size/16), 256)
	}
	return m
}

func (m *model) isUsable(ip netip.Addr) bool {
	return slices.Contains(m.usable, ip)
}

// candidates are the addresses that a dynamic allocation may hand out now.
func (m *model) candidates() map[netip.Addr]bool {
	for _, band := range [][]netip.Addr{m.usable[m.lower:], m.usable[:m.lower]} {
		free := map[netip.Addr]bool{}
		for _, ip := range band {
			if !m.taken[ip] {
				free[ip] = true
			}
		}
		if len(free) > 0 {
			return free
		}
	}
	return nil
}

var smallPrefixes = []string{
	"10.96.0.0/32", "10.96.0.0/31", "10.96.0.0/30", "10.96.0.0/29", "10.96.0.0/28", "10.96.0.0/27", "10.96.0.0/26", "10.96.0.0/24",
	"255.255.255.224/27", "0.0.0.0/27",
	"fd00::/128", "fd00::/127", "fd00::/126", "fd00::/124", "fd00::/123", "fd00::/120", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ff00/120",
}

// TestAllocatorAgainstModel drives the allocator and the model with the same random operations, with the pools kept in an
// array and in a map.
func TestAllocatorAgainstModel(t *testing.T) {
	for _, sparse := range []bool{false, true} {
		rapid.Check(t, func(t *rapid.T) {
			prefix := netip.MustParsePrefix(rapid.SampledFrom(smallPrefixes).Draw(t, "prefix"))
			a, err := New(prefix, Options{Seed: rapid.Uint64().Draw(t, "seed")})
			if err != nil {
				t.Fatal(err)
			}
			if sparse {
				b := &a.(*addresses).bands
				for _, p := range []*pool{&b.lower, &b.upper} {
					p.dense, p.sparse = nil, map[uint64]uint64{}
				}
			}
			m := newModel(prefix)
			// Addresses around the range too; a fill of the whole range is likely, so that both bands run full.
			span := len(m.usable) + 6
			start := prefix.Addr()
			for range 3 {
				if start.Prev().IsValid() {
					start = start.Prev()
				}
			}
			pick := func(t *rapid.T) netip.Addr {
				ip := start
				for range rapid.IntRange(0, span).Draw(t, "address") {
					if ip.Next().IsValid() {
						ip = ip.Next()
					}
				}
				return ip
			}
			t.Repeat(map[string]func(*rapid.T){
				"": func(t *rapid.T) {
					if got, want := a.Free(), uint64(len(m.usable)-len(m.taken)); got != want {
						t.Fatalf("Free() = %d, want %d", got, want)
					}
				},
				"allocate": func(t *rapid.T) {
					ip := pick(t)
					err := a.Allocate(ip)
					var outside *NotInRangeError
					switch {
					case !m.isUsable(ip):
						if !errors.As(err, &outside) || outside.Prefix != prefix {
							t.Fatalf("Allocate(%s) = %v, want that it is not in range", ip, err)
						}
					case m.taken[ip]:
						if !errors.Is(err, ErrAllocated) {
							t.Fatalf("Allocate(%s) = %v, want ErrAllocated", ip, err)
						}
					case err != nil:
						t.Fatalf("Allocate(%s) = %v", ip, err)
					default:
						m.taken[ip] = true
					}
				},
				"allocate next, many": func(t *rapid.T) {
					for range rapid.IntRange(1, 300).Draw(t, "times") {
						want := m.candidates()
						ip, err := a.AllocateNext()
						if len(want) == 0 {
							if !errors.Is(err, ErrFull) {
								t.Fatalf("AllocateNext() = %s, %v, want ErrFull", ip, err)
							}
							return
						}
						if err != nil || !want[ip] {
							t.Fatalf("AllocateNext() = %s, %v, want one of %d addresses of the band", ip, err, len(want))
						}
						m.taken[ip] = true
					}
				},
				"release": func(t *rapid.T) {
					ip := pick(t)
					a.Release(ip)
					delete(m.taken, ip)
				},
				"has": func(t *rapid.T) {
					ip := pick(t)
					if got := a.Has(ip); got != m.taken[ip] {
						t.Fatalf("Has(%s) = %v", ip, got)
					}
				},
			})
			for _, ip := range m.usable {
				if a.Has(ip) != m.taken[ip] {
					t.Fatalf("Has(%s) = %v", ip, a.Has(ip))
				}
			}
		})
	}
}

// FuzzAllocator interprets its input as operations on a range and compares with a set after each one.
func FuzzAllocator(f *testing.F) {
	f.Add(uint8(8), uint64(1), []byte{0, 1, 2, 0, 0, 1, 3, 1, 3})
	f.Add(uint8(4), uint64(2), []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, hostBits uint8, seed uint64, operations []byte) {
		prefix := netip.PrefixFrom(netip.MustParseAddr("10.0.0.0"), 32-int(hostBits%10))
		a, err := New(prefix, Options{Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		size := a.Free()
		taken := map[netip.Addr]bool{}
		for i, op := range operations {
			chosen := prefix.Addr()
			for range int(op / 3) {
				chosen = chosen.Next()
			}
			switch op % 3 {
			case 0:
				ip, err := a.AllocateNext()
				if (err != nil) != (uint64(len(taken)) == size) || taken[ip] || err == nil && !prefix.Contains(ip) {
					t.Fatalf("operation %d: AllocateNext() = %s, %v with %d of %d taken", i, ip, err, len(taken), size)
				}
				if err == nil {
					taken[ip] = true
				}
			case 1:
				err := a.Allocate(chosen)
				if err == nil && taken[chosen] {
					t.Fatalf("operation %d: %s is allocated twice", i, chosen)
				}
				if err == nil {
					taken[chosen] = true
				}
			case 2:
				a.Release(chosen)
				delete(taken, chosen)
			}
			if a.Free() != size-uint64(len(taken)) {
				t.Fatalf("operation %d: Free() = %d with %d of %d taken", i, a.Free(), len(taken), size)
			}
		}
		for ip := range taken {
			if !a.Has(ip) {
				t.Fatalf("%s is lost", ip)
			}
		}
	})
}
