package allocator

import "math/rand/v2"

// bands is a range of the numbers 0..size-1 that is split at an offset: the numbers below it are the lower (static) band, the
// others are the upper (dynamic) band. It is not safe for concurrent use.
type bands struct {
	offset uint64
	lower  pool
	upper  pool
	random *rand.Rand
	faulty *faulty // nil without a deliberate bug
}

func newBands(size, offset, stream uint64, options Options, faults bandFaults) bands {
	if faults.onePool {
		offset = 0
	}
	return bands{
		offset: offset,
		lower:  newPool(offset),
		upper:  newPool(size - offset),
		random: rand.New(rand.NewPCG(options.Seed, stream)),
		faulty: newFaulty(faults),
	}
}

// bandOffset is the size of the lower band of a range of size numbers: min(max(least, size/step), most), and 0 for a range
// that is no larger than the smallest lower band, since nothing would be left for the upper one.
func bandOffset(size, least, step, most uint64) uint64 {
	if size <= least {
		return 0
	}
	return min(max(least, size/step), most)
}

// addressBandOffset is the band offset of a Service range with size addresses, the network address and the broadcast address
// included (document "Service ClusterIP allocation", section on avoiding conflicts).
func addressBandOffset(size uint64) uint64 { return bandOffset(size, 16, 16, 256) }

// portBandOffset is the band offset of a node-port range with size ports (KEP-3668).
func portBandOffset(size uint64) uint64 { return bandOffset(size, 16, 32, 128) }

// band returns the band that a number is in, and its place there.
func (b *bands) band(n uint64) (*pool, uint64) {
	if n < b.offset {
		return &b.lower, n
	}
	return &b.upper, n - b.offset
}

// take takes a number and reports whether it was free.
func (b *bands) take(n uint64) bool {
	band, place := b.band(n)
	if band.taken(place) {
		return false
	}
	band.take(place)
	return true
}

// takeNext takes a random free number: of the upper band while that has one, then of the lower band.
func (b *bands) takeNext() (uint64, bool) {
	if b.faulty != nil {
		return b.faulty.takeNext(b)
	}
	if b.upper.free > 0 {
		return b.offset + b.upper.takeRandom(b.random), true
	}
	if b.lower.free > 0 {
		return b.lower.takeRandom(b.random), true
	}
	return 0, false
}

// release makes a number free, if it is taken.
func (b *bands) release(n uint64) {
	if band, place := b.band(n); band.taken(place) {
		band.release(place)
	}
}

func (b *bands) taken(n uint64) bool {
	band, place := b.band(n)
	return band.taken(place)
}

func (b *bands) free() uint64 { return b.lower.free + b.upper.free }
