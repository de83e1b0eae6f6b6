package allocator

import (
	"math"
	"net/netip"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// bandFaults are the deliberate bugs in how numbers are picked, each true where it is switched on. Addresses and node ports
// have faults of their own.
type bandFaults struct {
	onePool, lowerFirst, lowerUnused, lowerKept, ascending, repeated, ignoresTaken, stopsAtTaken, givesTaken, fullForever bool
}

func addressFaults(on fault.Set) bandFaults {
	return bandFaults{
		onePool:      on.On(fault.OnePool),
		lowerFirst:   on.On(fault.LowerBandFirst),
		lowerUnused:  on.On(fault.LowerBandUnused),
		lowerKept:    on.On(fault.LowerBandKept),
		ascending:    on.On(fault.DynamicAscending) || on.On(fault.ClusterIPsInOrder),
		repeated:     on.On(fault.DynamicRepeated),
		ignoresTaken: on.On(fault.DynamicIgnoresTaken),
		stopsAtTaken: on.On(fault.DynamicStopsAtTaken),
		givesTaken:   on.On(fault.ExhaustedGivesTaken),
		fullForever:  on.On(fault.ExhaustedForever),
	}
}

func portFaults(on fault.Set) bandFaults {
	return bandFaults{
		onePool:     on.On(fault.PortRangeOnePool),
		lowerFirst:  on.On(fault.PortRangeLowerBandFirst),
		lowerUnused: on.On(fault.PortRangeLowerUnused),
		ascending:   on.On(fault.PortRangeAscending),
		repeated:    on.On(fault.PortRangeRepeated),
		givesTaken:  on.On(fault.PortRangeExhaustedGives),
	}
}

// faulty is what a range with bugs remembers.
type faulty struct {
	bandFaults
	count  uint64 // of dynamic allocations
	last   uint64 // the one before
	inLow  bool   // the lower band has been used
	wasOut bool   // the range has been full
}

// newFaulty returns nil where no bug is switched on.
func newFaulty(f bandFaults) *faulty {
	if f == (bandFaults{}) {
		return nil
	}
	return &faulty{bandFaults: f}
}

// takeNext is the takeNext of bands, with bugs.
func (f *faulty) takeNext(b *bands) (uint64, bool) {
	f.count++
	if f.repeated && f.count%8 == 0 {
		return f.last, true
	}
	n, ok := f.pick(b)
	if ok {
		if !b.taken(n) {
			b.take(n)
		}
		f.last, f.inLow = n, n < b.offset
	}
	return n, ok
}

// pick chooses a number and leaves it free.
func (f *faulty) pick(b *bands) (uint64, bool) {
	upperSize := b.upper.size
	switch {
	case f.fullForever && f.wasOut:
		return 0, false
	case f.ignoresTaken && upperSize > 0:
		return b.offset + b.random.Uint64N(upperSize), true
	case f.stopsAtTaken && upperSize > 0:
		n := b.offset + b.random.Uint64N(upperSize)
		return n, !b.taken(n)
	}
	lower := (f.lowerFirst || f.lowerKept && f.inLow) && b.lower.free > 0
	switch {
	case b.upper.free > 0 && !lower:
		return b.offset + f.free(b, &b.upper), true
	case b.lower.free > 0 && !f.lowerUnused:
		return f.free(b, &b.lower), true
	case f.givesTaken && upperSize > 0:
		return b.offset + b.random.Uint64N(upperSize), true
	}
	f.wasOut = true
	return 0, false
}

// free chooses a free number of a band that has one.
func (f *faulty) free(b *bands, p *pool) uint64 {
	if f.ascending {
		for n := range p.size {
			if !p.taken(n) {
				return n
			}
		}
	}
	n := p.takeRandom(b.random)
	p.release(n)
	return n
}

// faultyOffset is the band offset of a range, with bugs.
func faultyOffset(size, usable uint64, faults fault.Set) uint64 {
	offset := addressBandOffset(size)
	switch {
	case faults.On(fault.BandOffsetOneLess) && offset > 0:
		return offset - 1
	case faults.On(fault.BandOffset255):
		return min(offset, 255)
	case faults.On(fault.BandOffsetCoarse) && offset < 64:
		return min(offset, 16)
	case faults.On(fault.BandOffsetCoarse) && offset < 256:
		return 64
	case faults.On(fault.BandOffsetFromUsable):
		return bandOffset(usable, 16, 16, 256)
	case faults.On(fault.BandOffsetNoMinimum):
		return min(size/16, 256)
	case faults.On(fault.BandOffsetNoMaximum):
		return bandOffset(size, 16, 16, math.MaxUint64)
	}
	return offset
}

// faultyRange changes the first usable address of a range and how many there are.
func faultyRange(prefix netip.Prefix, usable uint64, faults fault.Set) (netip.Addr, uint64) {
	first, ipv4 := prefix.Addr().Next(), prefix.Addr().Is4()
	tiny := ipv4 && prefix.Bits() > 30
	switch {
	case faults.On(fault.TinyRangeUsable) && tiny:
		return prefix.Addr(), uint64(33 - prefix.Bits())
	case tiny:
	case faults.On(fault.LastAddressUnused), faults.On(fault.IPv6LastReserved) && !ipv4:
		usable--
	case faults.On(fault.BroadcastUsable) && ipv4:
		usable++
	case faults.On(fault.NetworkUsable):
		return prefix.Addr(), usable + 1
	case faults.On(fault.RangeLimited):
		usable = min(usable, 1<<16)
	}
	return first, usable
}

// mayName reports whether a client can choose the usable address with this number; it differs from true only with bugs.
func (a *addresses) mayName(n uint64) bool {
	offset := a.bands.offset
	switch {
	case a.faults.On(fault.StaticOnlyLowerBand):
		return offset == 0 || n < offset
	case a.faults.On(fault.StaticOnlyUpperBand):
		return n >= offset || n == 0
	}
	return true
}
