package allocator

import "math/rand/v2"

// bands is a range of the numbers 0..size-1 that is split at an offset. The numbers below it are the lower (static)
// band, the others are the upper (dynamic) band. It is not safe for concurrent use.
type bands struct {
	rules  *bandRules
	offset uint64
	lower  pool
	upper  pool
	random *rand.Rand
}

// newBands makes the bands of a range of size numbers, of which the first ones are usable.
func newBands(size, usable, stream, seed uint64, rules *bandRules) bands {
	offset := min(rules.offset.Do(size, usable), usable)
	return bands{
		rules:  rules,
		offset: offset,
		lower:  newPool(offset),
		upper:  newPool(usable - offset),
		random: rand.New(rand.NewPCG(seed, stream)),
	}
}

// bandOffset is the size of the lower band of a range of size numbers: min(max(least, size/step), most). It is 0 for a
// range that is no larger than the smallest lower band, because nothing would be left for the upper one.
func bandOffset(size, least, step, most uint64) uint64 {
	if size <= least {
		return 0
	}
	return min(max(least, size/step), most)
}

// anyNumber is an admitting rule: clients choose freely.
func anyNumber(*bands, uint64) bool { return true }

// freeNumber is a giving rule.
func freeNumber(b *bands) (uint64, bool) {
	p := b.rules.next.Do(b)
	if p == nil {
		return 0, false
	}
	return b.number(p, b.rules.draw.Do(b, p)), true
}

// upperBandFirst is a banding rule: the upper band while that has a free number, then the lower band.
func upperBandFirst(b *bands) *pool {
	switch {
	case b.upper.free > 0:
		return &b.upper
	case b.lower.free > 0:
		return &b.lower
	}
	return nil
}

// randomNumber is a drawing rule: each free number is as likely as the other.
func randomNumber(b *bands, p *pool) uint64 { return p.takeRandom(b.random) }

// band returns the band that a number is in, and its place there.
func (b *bands) band(n uint64) (*pool, uint64) {
	if n < b.offset {
		return &b.lower, n
	}
	return &b.upper, n - b.offset
}

// number is the inverse of band.
func (b *bands) number(p *pool, place uint64) uint64 {
	if p == &b.upper {
		return b.offset + place
	}
	return place
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

// takeNext takes a number that nobody chose; false if the range is full.
func (b *bands) takeNext() (uint64, bool) { return b.rules.gives.Do(b) }

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
