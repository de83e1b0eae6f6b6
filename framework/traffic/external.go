package traffic

import (
	"net/netip"
	"sync/atomic"
)

// ExternalAddresses hands out addresses for external IPs and load balancers. They are for documentation (RFC 5737, RFC 3849): nobody on the network
// has them. The zero value is ready for use, and safe for concurrent use.
type ExternalAddresses struct{ taken atomic.Uint32 }

var externalRanges = []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24"), netip.MustParsePrefix("2001:db8:51::/120")}

// externalAddresses is how many of each family a lease has.
const externalAddresses = 4

// Take returns those of one lease, of both families.
func (e *ExternalAddresses) Take() []netip.Addr {
	first := e.taken.Add(externalAddresses) - externalAddresses
	var out []netip.Addr
	for i := range uint32(externalAddresses) {
		for _, r := range externalRanges {
			b := r.Addr().AsSlice()
			b[len(b)-1] = byte(1 + (first+i)%250) // by the time that they come again their lease has long ended
			a, _ := netip.AddrFromSlice(b)
			out = append(out, a)
		}
	}
	return out
}
