package traffic

import (
	"math/rand/v2"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Ports chooses the source ports of shots that leave them to the prober. It takes one that the client has not used for
// as long as there are others. The kernel would choose at random. It could hit a flow that conntrack still remembers
// with its backend, or a connection of which a backend has not seen the end. Clients are used by one lease after the
// other, and so is Ports. The zero value is ready to use, and safe for concurrent use.
type Ports struct {
	mu   sync.Mutex
	last map[candidate.Client]int // by client, the port that was taken last
}

// The ports that are taken in turn: those that kernels take by default.
const (
	firstPort = 32768
	portCount = 28232
)

// next takes the client's next port, of which the first is any.
func (p *Ports) next(from candidate.Client) uint16 {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.last == nil {
		p.last = map[candidate.Client]int{}
	}
	last, used := p.last[from]
	if !used {
		last = rand.IntN(portCount)
	}
	p.last[from] = (last + 1) % portCount
	return uint16(firstPort + p.last[from])
}
