package check

import (
	"math/big"
	"net/netip"
)

// Bands are the numbers that the allocation document derives from a Service CIDR. They are the usable addresses and
// their division into a static (lower) and a dynamic (upper) band. Computed here from the document alone, so that
// neither the reference nor Kubernetes judges itself.
type Bands struct {
	// Usable is the number of addresses that can be handed out: all but the network address and, for IPv4, the broadcast address.
	Usable *big.Int
	// Offset is the number of addresses in the static band; 0 where the range is not divided (at most 16 addresses).
	Offset int
	// First and Last are the ends of the usable range. Both are invalid where nothing is usable.
	First, Last netip.Addr
	// StaticLast is the last address of the static band, DynamicFirst the first of the dynamic band. StaticLast is invalid if Offset is 0.
	StaticLast, DynamicFirst netip.Addr
	// Network is the first address of the range; Broadcast is the last one of an IPv4 range and invalid for IPv6.
	Network, Broadcast netip.Addr
}

// BandsOf computes the bands of a Service CIDR: offset min(max(16, size/16), 256) with the CIDR size 2^k.
func BandsOf(cidr netip.Prefix) Bands {
	cidr = cidr.Masked()
	hostBits := uint(cidr.Addr().BitLen() - cidr.Bits())
	size := new(big.Int).Lsh(big.NewInt(1), hostBits)
	b := Bands{Network: cidr.Addr()}
	reserved := int64(1)
	if cidr.Addr().Is4() {
		reserved = 2
	}
	b.Usable = new(big.Int).Sub(size, big.NewInt(reserved))
	if b.Usable.Sign() <= 0 {
		b.Usable = new(big.Int)
		return b
	}
	if cidr.Addr().Is4() {
		b.Broadcast = AddressPlus(cidr.Addr(), new(big.Int).Sub(size, big.NewInt(1)))
	}
	if size.Cmp(big.NewInt(16)) > 0 {
		b.Offset = 256
		if size.IsInt64() {
			b.Offset = int(min(max(16, size.Int64()/16), 256))
		}
	}
	b.First = cidr.Addr().Next()
	b.Last = AddressPlus(cidr.Addr(), b.Usable)
	b.DynamicFirst = AddressPlus(b.First, big.NewInt(int64(b.Offset)))
	if b.Offset > 0 {
		b.StaticLast = b.DynamicFirst.Prev()
	}
	return b
}

// DynamicCount is the number of addresses in the dynamic band.
func (b *Bands) DynamicCount() *big.Int {
	return new(big.Int).Sub(b.Usable, big.NewInt(int64(b.Offset)))
}

// InStatic reports whether addr lies in the static band, InDynamic whether it lies in the dynamic one.
func (b *Bands) InStatic(addr netip.Addr) bool {
	return b.Offset > 0 && addr.Compare(b.First) >= 0 && addr.Compare(b.StaticLast) <= 0
}

// InDynamic reports whether addr lies in the dynamic band.
func (b *Bands) InDynamic(addr netip.Addr) bool {
	return b.First.IsValid() && addr.Compare(b.DynamicFirst) >= 0 && addr.Compare(b.Last) <= 0
}

// AddressPlus returns the address n after addr. It must not leave the address family.
func AddressPlus(addr netip.Addr, n *big.Int) netip.Addr {
	sum := new(big.Int).Add(new(big.Int).SetBytes(addr.AsSlice()), n)
	buf := sum.FillBytes(make([]byte, addr.BitLen()/8))
	out, _ := netip.AddrFromSlice(buf)
	return out
}
