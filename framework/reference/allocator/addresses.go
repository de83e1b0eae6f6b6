package allocator

import (
	"encoding/binary"
	"fmt"
	"math"
	"net/netip"
	"sync"
)

// addresses is the Allocator of this package.
type addresses struct {
	prefix netip.Prefix
	// high and first are the upper and lower 64 bits of the first usable address; all addresses share the upper ones.
	high, first uint64
	usable      uint64
	book        *addressBook

	mu    sync.Mutex
	bands bands
}

// New makes an allocator of the usable addresses of a range: all but the network address and, in IPv4, the broadcast address.
// A range with no usable address is possible, and always full. IPv6 ranges larger than a /64 are refused, as Kubernetes does.
func New(prefix netip.Prefix, options Options) (Allocator, error) {
	if !prefix.IsValid() {
		return nil, fmt.Errorf("service range %q: not a valid CIDR", prefix)
	}
	if prefix != prefix.Masked() {
		return nil, fmt.Errorf("service range %s: bits are set beyond the prefix length; use %s", prefix, prefix.Masked())
	}
	if prefix.Addr().Is4In6() {
		return nil, fmt.Errorf("service range %s: IPv4-mapped IPv6 ranges are not supported; use the IPv4 form", prefix)
	}
	hostBits := prefix.Addr().BitLen() - prefix.Bits()
	if hostBits > 64 {
		return nil, fmt.Errorf("service range %s: an IPv6 range must not be larger than a /64", prefix)
	}
	size := uint64(math.MaxUint64) // one less than there are in a /64, which makes no difference to its bands
	if hostBits < 64 {
		size = 1 << hostBits
	}
	book := options.addressBook()
	first, n := book.usable.Do(prefix, size)
	a := &addresses{prefix: prefix, usable: n, book: book}
	a.high, a.first = split(first)
	a.bands = newBands(size, n, a.high^a.first, options.Seed, &book.bandRules)
	book.atStart.Do(&a.bands)
	return a, nil
}

// usable is the number of addresses of a range that a Service can have.
func usable(prefix netip.Prefix, size uint64) uint64 {
	switch {
	case prefix.Addr().Is6() && size == math.MaxUint64:
		return size
	case prefix.Addr().Is6():
		return size - 1
	case size < 4:
		return 0
	default:
		return size - 2
	}
}

func (a *addresses) Allocate(ip netip.Addr) error {
	n, ok := a.index(ip)
	if !ok || !a.book.admits.Do(&a.bands, n) {
		return &NotInRangeError{Prefix: a.prefix}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.bands.take(n) {
		return ErrAllocated
	}
	return nil
}

func (a *addresses) AllocateNext() (netip.Addr, error) {
	a.mu.Lock()
	n, ok := a.bands.takeNext()
	a.mu.Unlock()
	if !ok {
		return netip.Addr{}, ErrFull
	}
	return a.book.inRange.Do(a, n), nil
}

func (a *addresses) Release(ip netip.Addr) {
	n, ok := a.index(ip)
	if !ok {
		return
	}
	a.mu.Lock()
	a.bands.release(n)
	a.mu.Unlock()
}

func (a *addresses) Has(ip netip.Addr) bool {
	n, ok := a.index(ip)
	if !ok {
		return false
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bands.taken(n)
}

func (a *addresses) Free() uint64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.bands.free()
}

func (a *addresses) Prefix() netip.Prefix { return a.prefix }

// index is the number of a usable address, counted from the first one.
func (a *addresses) index(ip netip.Addr) (uint64, bool) {
	if ip.Is4() != a.prefix.Addr().Is4() || ip.Zone() != "" || ip.Is4In6() {
		return 0, false
	}
	high, low := split(ip)
	n := low - a.first // wraps round to a large number below the first address
	return n, high == a.high && n < a.usable
}

// address is the inverse of index.
func (a *addresses) address(n uint64) netip.Addr {
	low := a.first + n
	if a.prefix.Addr().Is4() {
		var ip [4]byte
		binary.BigEndian.PutUint32(ip[:], uint32(low))
		return netip.AddrFrom4(ip)
	}
	var ip [16]byte
	binary.BigEndian.PutUint64(ip[:8], a.high)
	binary.BigEndian.PutUint64(ip[8:], low)
	return netip.AddrFrom16(ip)
}

// split returns an address as two numbers; an IPv4 address has only a lower one.
func split(ip netip.Addr) (high, low uint64) {
	if ip.Is4() {
		b := ip.As4()
		return 0, uint64(binary.BigEndian.Uint32(b[:]))
	}
	b := ip.As16()
	return binary.BigEndian.Uint64(b[:8]), binary.BigEndian.Uint64(b[8:])
}
