package candidate

import (
	"math/rand/v2"
	"net/netip"
	"slices"
	"sync/atomic"
)

// ExternalAddresses hands out what DataPlane.ExternalAddresses returns, on every tier. They are for benchmarks and documentation (RFC 2544, RFC 3849): nobody on the
// network has them. The zero value is ready for use, and safe for concurrent use.
type ExternalAddresses struct {
	shard Shard
	taken atomic.Uint32
}

// mostExternal is how many of each family there are. By the time that one comes again its lease has long ended.
const mostExternal = 60000

// Among keeps to what a shard has of them, and begins anywhere among those: other runs may be at work on the same candidate. It belongs before the first Take.
func (e *ExternalAddresses) Among(s Shard) {
	e.shard = s
	_, size := s.Share(mostExternal)
	e.taken.Store(rand.Uint32N(uint32(size)))
}

var externalRanges = []netip.Prefix{netip.MustParsePrefix("198.19.0.0/16"), netip.MustParsePrefix("2001:db8:51::/112")}

// Witness is the address of a family that no lease has, in the network of those that leases have. Nodes that are made
// for a run have it themselves. If none of them answers a client outside of the cluster there, the client is cut off
// from them (Description.Witnesses).
func Witness(six bool) netip.Addr {
	if six {
		return netip.MustParseAddr("2001:db8:51::ffff")
	}
	return netip.MustParseAddr("198.19.255.254")
}

// IsExternal reports whether an address is in the networks of external addresses.
func IsExternal(a netip.Addr) bool {
	return slices.ContainsFunc(externalRanges, func(r netip.Prefix) bool { return r.Contains(a) })
}

// externalAddresses is how many of each family a lease has.
const externalAddresses = 4

// Take returns those of one lease, of both families.
func (e *ExternalAddresses) Take() []netip.Addr {
	first := e.taken.Add(externalAddresses) - externalAddresses
	from, size := e.shard.Share(mostExternal)
	var out []netip.Addr
	for i := range uint32(externalAddresses) {
		for _, r := range externalRanges {
			b := r.Addr().AsSlice()
			n := 1 + from + int((first+i)%uint32(size))
			b[len(b)-2], b[len(b)-1] = byte(n>>8), byte(n)
			a, _ := netip.AddrFromSlice(b)
			out = append(out, a)
		}
	}
	return out
}
