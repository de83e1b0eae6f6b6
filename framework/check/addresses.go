package check

import (
	"math/big"
	"net/netip"
)

// Addresses are addresses of a range that were handed out. Pictures and later judgements use them.
type Addresses struct {
	// ServiceCIDR is the range.
	ServiceCIDR string `json:"serviceCIDR"`
	// Offsets are their distances from the network address, in the order in which they were handed out.
	Offsets []int `json:"offsets"`
	// Concurrent is how many of the first were handed out to several clients at a time, so that their order says nothing.
	Concurrent int `json:"concurrent,omitempty"`
}

// drawnAddresses bounds how many addresses are kept: as many as a /20 has.
const drawnAddresses = 1 << 12

// RecordAddresses adds addresses of a range that were handed out to the evidence, and an observation in words.
// concurrent is how many of the first ones several clients got at a time. Of more than 4096 addresses, and of ranges
// that are longer than 31 bits, the words are kept alone.
func RecordAddresses(name, words string, cidr netip.Prefix, addresses []netip.Addr, concurrent int) {
	if current == nil {
		return
	}
	e := Evidence{Name: name, Value: words}
	if bits := cidr.Addr().BitLen() - cidr.Bits(); bits <= 31 && len(addresses) <= drawnAddresses {
		e.Addresses = &Addresses{ServiceCIDR: cidr.String(), Concurrent: concurrent, Offsets: []int{}}
		base := new(big.Int).SetBytes(cidr.Masked().Addr().AsSlice())
		for _, a := range addresses {
			if !cidr.Contains(a) { // the check says what is wrong with it
				continue
			}
			e.Addresses.Offsets = append(e.Addresses.Offsets, int(new(big.Int).Sub(new(big.Int).SetBytes(a.AsSlice()), base).Int64()))
		}
	}
	current.result.Evidence = append(current.result.Evidence, e)
}
