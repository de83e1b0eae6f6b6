package allocator

import "math/rand/v2"

// pool is the numbers 0..size-1, each free or taken. Taking a given number, taking a random free one and giving one back all
// take constant time.
//
// The idea is a permutation whose first part holds the free numbers, so that a random place in it is a random free
// number. Only its exceptions are stored. Call the numbers below free the front, the others the tail. A free number of
// the front stands at its own place. A taken number of the front leaves its place to a free number of the tail. There
// are as many of the one as of the other, and each such two are partners. So
//
//	a number of the front is taken exactly if it has a partner, and
//	a number of the tail is free exactly if it has a partner,
//
// and no more pairs exist than numbers are taken, or are free, whichever are fewer.
type pool struct {
	size, free uint64
	// dense[n] is the partner of n plus one, or 0: for a size that an array serves well. Otherwise it is nil and
	dense []uint32
	// sparse holds the partners, in both directions.
	sparse map[uint64]uint64
}

// maxDense is the largest pool kept in an array: 4 MiB.
const maxDense = 1 << 20

func newPool(size uint64) pool {
	p := pool{size: size, free: size}
	if size <= maxDense {
		p.dense = make([]uint32, size)
	} else {
		p.sparse = map[uint64]uint64{}
	}
	return p
}

func (p *pool) taken(n uint64) bool {
	_, paired := p.partner(n)
	return paired == (n < p.free)
}

// takeRandom takes one of the free numbers, each as likely as the other. There must be one.
func (p *pool) takeRandom(random *rand.Rand) uint64 {
	n := random.Uint64N(p.free)
	if other, paired := p.partner(n); paired {
		n = other
	}
	p.take(n)
	return n
}

// take takes a number that is free. The front shrinks by its last place, and the number that stood there moves to the
// place of n.
func (p *pool) take(n uint64) {
	place := n
	if n >= p.free {
		place, _ = p.partner(n)
	}
	last := p.free - 1
	moving := last
	if other, paired := p.partner(last); paired {
		moving = other
		p.part(last, other)
	}
	if place != last {
		if n >= p.free {
			p.part(place, n)
		}
		p.join(place, moving)
	}
	p.free--
}

// release frees a number that is taken. The front grows by one place, for n or for the number that stood at the place
// of n.
func (p *pool) release(n uint64) {
	moving := n
	if n < p.free {
		moving, _ = p.partner(n)
		p.part(n, moving)
	}
	if last := p.free; moving != last {
		place := last
		if other, paired := p.partner(last); paired { // last is free: it moves to its own place and makes room where it was
			place = other
			p.part(place, last)
		}
		p.join(place, moving)
	}
	p.free++
}

func (p *pool) partner(n uint64) (uint64, bool) {
	if p.dense != nil {
		other := p.dense[n]
		return uint64(other) - 1, other != 0
	}
	other, paired := p.sparse[n]
	return other, paired
}

func (p *pool) join(a, b uint64) {
	if p.dense != nil {
		p.dense[a], p.dense[b] = uint32(b+1), uint32(a+1)
		return
	}
	p.sparse[a], p.sparse[b] = b, a
}

func (p *pool) part(a, b uint64) {
	if p.dense != nil {
		p.dense[a], p.dense[b] = 0, 0
		return
	}
	delete(p.sparse, a)
	delete(p.sparse, b)
}
