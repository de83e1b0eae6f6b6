package allocator

import (
	"fmt"
	"sync"
)

// Ports hands out the node ports of a range, in the same two bands as addresses (KEP-3668). A port is taken for all
// protocols at once. All methods are safe for concurrent use.
type Ports struct {
	first, last int

	mu    sync.Mutex
	bands bands
}

// PortNotInRangeError says that a port does not belong to a range.
type PortNotInRangeError struct{ First, Last int }

func (e *PortNotInRangeError) Error() string {
	return fmt.Sprintf("it is not in the node-port range %d-%d", e.First, e.Last)
}

// NewPorts makes an allocator of the ports first to last, both included.
func NewPorts(first, last int, options Options) (*Ports, error) {
	if first < 1 || last > 65535 || last < first {
		return nil, fmt.Errorf("node-port range %d-%d: ports are 1 to 65535, the first one first", first, last)
	}
	size := uint64(last - first + 1)
	book := options.portBook()
	return &Ports{first: first, last: last, bands: newBands(size, size, uint64(first), options.Seed, &book.bandRules)}, nil
}

// Allocate takes the port that the caller chose. It returns ErrAllocated if it is taken and *PortNotInRangeError if it is
// not in the range.
func (p *Ports) Allocate(port int) error {
	n := uint64(port - p.first)
	if port < p.first || port > p.last || !p.bands.rules.admits.Do(&p.bands, n) {
		return &PortNotInRangeError{First: p.first, Last: p.last}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.bands.take(n) {
		return ErrAllocated
	}
	return nil
}

// AllocateNext takes a random free port, of the upper band as long as that has one. It returns ErrFull when none is free.
func (p *Ports) AllocateNext() (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	n, ok := p.bands.takeNext()
	if !ok {
		return 0, ErrFull
	}
	return p.first + int(n), nil
}

// Release makes a port free again. A port that is free or out of range is ignored.
func (p *Ports) Release(port int) {
	if port < p.first || port > p.last {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bands.release(uint64(port - p.first))
}

// Has reports whether the port is taken.
func (p *Ports) Has(port int) bool {
	if port < p.first || port > p.last {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.bands.taken(uint64(port - p.first))
}

// Free is the number of ports that are not taken.
func (p *Ports) Free() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return int(p.bands.free())
}
