package candidate

import (
	"net/netip"
	"sync/atomic"
)

// ExternalAddresses hands out what DataPlane.ExternalAddresses returns, on every tier. They are for benchmarks and documentation (RFC 2544, RFC 3849): nobody on the
// network has them. The zero value is ready for use, and safe for concurrent use.
type ExternalAddresses struct{ taken atomic.Uint32 }

var externalRanges = []netip.Prefix{netip.MustParsePrefix("198.19.0.0/16"), netip.MustParsePrefix("2001:db8:51::/112")}

// externalAddresses is how many of each family a lease has.
const externalAddresses = 4

// Take returns those of one lease, of both families.
func (e *ExternalAddresses) Take() []netip.Addr {
	first := e.taken.Add(externalAddresses) - externalAddresses
	var out []netip.Addr
	for i := range uint32(externalAddresses) {
		for _, r := range externalRanges {
			b := r.Addr().AsSlice()
			n := 1 + (first+i)%60000 // by the time that they come again their lease has long ended
			b[len(b)-2], b[len(b)-1] = byte(n>>8), byte(n)
			a, _ := netip.AddrFromSlice(b)
			out = append(out, a)
		}
	}
	return out
}
