package allocator

import (
	"math"
	"net/netip"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// Faults are the deliberate bugs that are switched on.
type Faults = fault.Set

func (o *Options) addressBook() *addressBook {
	return fault.Apply(newAddressBook(), addressWrongs, o.Faults)
}

func (o *Options) portBook() *portBook { return fault.Apply(newPortBook(), portWrongs, o.Faults) }

// What can be wrong with Service ranges, and with node-port ranges.
type (
	addressWrong fault.Edit[addressBook]
	portWrong    fault.Edit[portBook]
)

// ofAddresses and ofPorts make a fault of bands one of the ranges of either kind.
func ofAddresses(f *fault.Fault, edit func(*bandRules)) addressWrong {
	return addressWrong{f, func(b *addressBook) { edit(&b.bandRules) }}
}

func ofPorts(f *fault.Fault, edit func(*bandRules)) portWrong {
	return portWrong{f, func(b *portBook) { edit(&b.bandRules) }}
}

// A book with faults is of one range: what a fault remembers, it remembers of that range.
var addressWrongs = []addressWrong{
	// How large the lower band is.
	ofAddresses(fault.BandOffsetOneLess, offsetOf(func(offset, _, _ uint64) uint64 { return offset - min(offset, 1) })),
	ofAddresses(fault.BandOffset255, offsetOf(func(offset, _, _ uint64) uint64 { return min(offset, 255) })),
	ofAddresses(fault.BandOffsetCoarse, offsetOf(func(offset, _, _ uint64) uint64 {
		switch {
		case offset < 64:
			return min(offset, 16)
		case offset < 256:
			return 64
		}
		return offset
	})),
	ofAddresses(fault.BandOffsetFromUsable, offsetOf(func(_, _, usable uint64) uint64 { return bandOffset(usable, 16, 16, 256) })),
	ofAddresses(fault.BandOffsetNoMinimum, offsetOf(func(_, size, _ uint64) uint64 { return min(size/16, 256) })),
	ofAddresses(fault.BandOffsetNoMaximum, offsetOf(func(_, size, _ uint64) uint64 { return bandOffset(size, 16, 16, math.MaxUint64) })),
	ofAddresses(fault.OnePool, offsetOf(noOffset)),

	// Which band is used.
	ofAddresses(fault.LowerBandFirst, lowerFirst),
	ofAddresses(fault.LowerBandUnused, lowerUnused),
	ofAddresses(fault.LowerBandKept, func(r *bandRules) {
		inLower := false // the address before was of the lower band
		r.next.Wrap(func(right banding) banding {
			return func(b *bands) *pool {
				if inLower && b.lower.free > 0 {
					return &b.lower
				}
				p := right(b)
				inLower = p == &b.lower
				return p
			}
		})
	}),

	// Which address is given.
	ofAddresses(fault.DynamicAscending, ascending),
	ofAddresses(fault.ClusterIPsInOrder, ascending),
	ofAddresses(fault.DynamicIgnoresTaken, giveAnyOfUpper(func(b *bands, n uint64) bool {
		b.take(n)
		return true
	})),
	ofAddresses(fault.DynamicStopsAtTaken, giveAnyOfUpper((*bands).take)),
	ofAddresses(fault.ExhaustedGivesTaken, givesTaken),
	ofAddresses(fault.ExhaustedForever, func(r *bandRules) {
		full := false
		r.gives.Wrap(func(right giving) giving {
			return func(b *bands) (n uint64, ok bool) {
				if !full {
					n, ok = right(b)
					full = !ok
				}
				return n, ok
			}
		})
	}),
	ofAddresses(fault.DynamicRepeated, repeated),
	{fault.DynamicOutOfRange, func(b *addressBook) {
		b.inRange.Replace(func(a *addresses, n uint64) netip.Addr { return a.address(n + a.usable + 2) })
	}},

	// Which address can be chosen.
	ofAddresses(fault.StaticOnlyLowerBand, func(r *bandRules) {
		r.admits.Replace(func(b *bands, n uint64) bool { return b.offset == 0 || n < b.offset })
	}),
	ofAddresses(fault.StaticOnlyUpperBand, func(r *bandRules) {
		r.admits.Replace(func(b *bands, n uint64) bool { return n >= b.offset || n == 0 })
	}),
	{fault.TenthAddressReserved, func(b *addressBook) {
		b.atStart.Replace(func(b *bands) {
			if b.free() >= 10 {
				b.take(9)
			}
		})
	}},

	// Which addresses are usable.
	usableOf(fault.TinyRangeUsable, func(prefix netip.Prefix, first netip.Addr, n uint64) (netip.Addr, uint64) {
		if tiny(prefix) {
			return prefix.Addr(), uint64(33 - prefix.Bits())
		}
		return first, n
	}),
	usableOf(fault.LastAddressUnused, withoutLast),
	usableOf(fault.IPv6LastReserved, func(prefix netip.Prefix, first netip.Addr, n uint64) (netip.Addr, uint64) {
		if prefix.Addr().Is4() {
			return first, n
		}
		return withoutLast(prefix, first, n)
	}),
	usableOf(fault.BroadcastUsable, func(prefix netip.Prefix, first netip.Addr, n uint64) (netip.Addr, uint64) {
		if prefix.Addr().Is4() && !tiny(prefix) {
			n++
		}
		return first, n
	}),
	usableOf(fault.NetworkUsable, func(prefix netip.Prefix, first netip.Addr, n uint64) (netip.Addr, uint64) {
		if tiny(prefix) {
			return first, n
		}
		return prefix.Addr(), n + 1
	}),
	usableOf(fault.RangeLimited, func(_ netip.Prefix, first netip.Addr, n uint64) (netip.Addr, uint64) { return first, min(n, 1<<16) }),
}

var portWrongs = []portWrong{
	ofPorts(fault.PortRangeOnePool, offsetOf(noOffset)),
	ofPorts(fault.PortRangeLowerBandFirst, lowerFirst),
	ofPorts(fault.PortRangeLowerUnused, lowerUnused),
	ofPorts(fault.PortRangeAscending, ascending),
	ofPorts(fault.PortRangeExhaustedGives, givesTaken),
	ofPorts(fault.PortRangeRepeated, repeated),
	ofPorts(fault.PortRangeOnlyUpperBand, func(r *bandRules) {
		r.admits.Replace(func(b *bands, n uint64) bool { return n >= b.offset })
	}),
}

// offsetOf is a fault: the lower band has another size.
func offsetOf(wrong func(offset, size, usable uint64) uint64) func(*bandRules) {
	return func(r *bandRules) {
		r.offset.Wrap(func(right dividing) dividing {
			return func(size, usable uint64) uint64 { return wrong(right(size, usable), size, usable) }
		})
	}
}

func noOffset(_, _, _ uint64) uint64 { return 0 }

func lowerFirst(r *bandRules) {
	r.next.Wrap(func(right banding) banding {
		return func(b *bands) *pool {
			if b.lower.free > 0 {
				return &b.lower
			}
			return right(b)
		}
	})
}

func lowerUnused(r *bandRules) {
	r.next.Wrap(func(right banding) banding {
		return func(b *bands) *pool {
			if p := right(b); p != &b.lower {
				return p
			}
			return nil
		}
	})
}

func ascending(r *bandRules) {
	r.draw.Replace(func(_ *bands, p *pool) uint64 {
		place := uint64(0)
		for p.taken(place) {
			place++
		}
		p.take(place)
		return place
	})
}

// giveAnyOfUpper is a fault: a number of the upper band is given without a look at whether it is free, if it suits.
func giveAnyOfUpper(suits func(b *bands, n uint64) bool) func(*bandRules) {
	return func(r *bandRules) {
		r.gives.Wrap(func(right giving) giving {
			return func(b *bands) (uint64, bool) {
				if b.upper.size == 0 {
					return right(b)
				}
				n := b.anyOfUpper()
				return n, suits(b, n)
			}
		})
	}
}

func givesTaken(r *bandRules) {
	r.gives.Wrap(func(right giving) giving {
		return func(b *bands) (uint64, bool) {
			n, ok := right(b)
			if !ok && b.upper.size > 0 {
				return b.anyOfUpper(), true
			}
			return n, ok
		}
	})
}

// anyOfUpper is a random number of the upper band, free or not.
func (b *bands) anyOfUpper() uint64 { return b.offset + b.random.Uint64N(b.upper.size) }

// repeated is a fault: every eighth number is the one before it.
func repeated(r *bandRules) {
	count, last := 0, uint64(0)
	r.gives.Wrap(func(right giving) giving {
		return func(b *bands) (uint64, bool) {
			if count++; count%8 == 0 {
				return last, true
			}
			n, ok := right(b)
			if ok {
				last = n
			}
			return n, ok
		}
	})
}

// usableOf is a fault: other addresses of a range are usable.
func usableOf(f *fault.Fault, wrong func(prefix netip.Prefix, first netip.Addr, n uint64) (netip.Addr, uint64)) addressWrong {
	return addressWrong{f, func(b *addressBook) {
		b.usable.Wrap(func(right func(netip.Prefix, uint64) (netip.Addr, uint64)) func(netip.Prefix, uint64) (netip.Addr, uint64) {
			return func(prefix netip.Prefix, size uint64) (netip.Addr, uint64) {
				first, n := right(prefix, size)
				return wrong(prefix, first, n)
			}
		})
	}}
}

// tiny reports whether an IPv4 range has no usable address.
func tiny(prefix netip.Prefix) bool { return prefix.Addr().Is4() && prefix.Bits() > 30 }

func withoutLast(_ netip.Prefix, first netip.Addr, n uint64) (netip.Addr, uint64) {
	return first, n - min(n, 1)
}
