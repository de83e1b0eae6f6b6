// Package apiservers is what tiers have in common that start API servers for their checks: the ranges of a server, a pool
// that leases servers, a client that knows when one can be used, and how one is emptied.
package apiservers

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
)

// Server is what the pool manages.
type Server interface {
	// Alive returns nil while the server runs, else why it does not.
	Alive() error
	// Reset leaves nothing in the ranges but what a new server has.
	Reset(context.Context) error
	// Stop ends the server.
	Stop()
}

// Pool leases servers. A server is used either by any number of shared leases or by one exclusive lease. One that
// nobody uses can go over to either kind. For each ranges at most one server is kept for each kind. Exclusive users of
// the same ranges wait for each other, which is faster than another server. At most max servers run; idle ones make
// room, the longest unused first.
type Pool struct {
	start func(context.Context, Ranges) (Server, error)
	max   int
	// starts holds a token for each start under way. Half of a start is computing and half is waiting.
	starts chan struct{}

	ctx    context.Context // ends with close
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	members []*member
	changed chan struct{} // closed and replaced whenever a waiting request may succeed
	clock   int           // counts leases, to tell how long a server is unused
	closed  bool
	busy    sync.WaitGroup // starts and resets under way
}

// member is a server of the pool, its fields under the pool's lock.
type member struct {
	ranges    Ranges
	Server    Server // nil until it has started
	exclusive bool   // the kind of its leases, also while it starts or is reset
	leases    int
	dirty     bool // may hold what an exclusive user left
	preparing bool // starting or being reset: not to be used yet
	lastUse   int
}

// ErrClosed says that a pool was closed while something was asked of it.
var ErrClosed = errors.New("the control planes are closed")

// NewPool makes a pool of at most max servers, which start starts.
func NewPool(max int, start func(context.Context, Ranges) (Server, error)) *Pool {
	p := &Pool{start: start, max: max, starts: make(chan struct{}, 2*runtime.NumCPU()), changed: make(chan struct{})}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	return p
}

// notify wakes the waiting requests. The caller holds the lock.
func (p *Pool) notify() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// attemptsToReset is how often a server that does not get clean is replaced before the request fails.
const attemptsToReset = 3

// Acquire waits for a lease on a server with these ranges, starting one where that is needed.
func (p *Pool) Acquire(ctx context.Context, r Ranges, exclusive bool) (*Lease, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(p.ctx, func() { stop(context.Cause(p.ctx)) })()

	failures := 0
	for {
		p.mu.Lock()
		if p.closed {
			p.mu.Unlock()
			return nil, ErrClosed
		}
		dead := p.removeDead()
		m, action := p.choose(r, exclusive)
		changed := p.changed
		switch action {
		case wait:
			p.mu.Unlock()
			stopAll(dead)
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return nil, fmt.Errorf("wait for a control plane with %s: %w", r, context.Cause(ctx))
			}
		case evict:
			p.remove(m)
			p.mu.Unlock()
			stopAll(append(dead, m))
			continue
		case startNew:
			m = &member{ranges: r}
			p.members = append(p.members, m)
		}
		reset := m.Server != nil && (exclusive || m.dirty)
		m.exclusive = exclusive
		m.leases++
		p.clock++
		m.lastUse = p.clock
		m.preparing = reset || m.Server == nil
		if !m.preparing {
			p.mu.Unlock()
			stopAll(dead)
			return &Lease{pool: p, member: m}, nil
		}
		p.busy.Add(1)
		p.mu.Unlock()
		stopAll(dead)

		err := p.prepare(ctx, m)
		p.busy.Done()
		if err == nil {
			return &Lease{pool: p, member: m}, nil
		}
		failures++
		if !reset || ctx.Err() != nil || failures == attemptsToReset {
			return nil, err
		}
		// A server that does not get clean was thrown away: the next round starts another.
	}
}

// action says what a request does next.
type action int

const (
	use      action = iota // take a lease on the member
	startNew               // start a server
	evict                  // stop the idle member to make room
	wait                   // until something changes
)

// choose decides how a request goes on. The caller holds the lock.
func (p *Pool) choose(r Ranges, exclusive bool) (*member, action) {
	var idle *member // with the same ranges, of the other kind
	for _, m := range p.members {
		if m.ranges != r || m.Server != nil && m.Server.Alive() != nil {
			continue // the users of a dead server find out by themselves
		}
		switch {
		case m.leases == 0 && m.exclusive == exclusive:
			return m, use
		case m.leases == 0:
			idle = m
		case m.exclusive != exclusive:
		case exclusive || m.preparing:
			return nil, wait
		default:
			return m, use
		}
	}
	if idle != nil {
		return idle, use
	}
	if len(p.members) < p.max {
		return nil, startNew
	}
	var oldest *member
	for _, m := range p.members {
		if m.leases == 0 && (oldest == nil || m.lastUse < oldest.lastUse) {
			oldest = m
		}
	}
	if oldest != nil {
		return oldest, evict
	}
	return nil, wait
}

// prepare starts or resets a member that the caller has a lease on. If it fails the member is gone.
func (p *Pool) prepare(ctx context.Context, m *member) error {
	var err error
	s := m.Server
	if s != nil {
		err = s.Reset(ctx)
	} else {
		select {
		case p.starts <- struct{}{}:
			s, err = p.start(ctx, m.ranges)
			<-p.starts
		case <-ctx.Done():
			err = fmt.Errorf("wait to start a control plane: %w", context.Cause(ctx))
		}
	}
	p.mu.Lock()
	m.preparing = false
	if err == nil {
		m.Server, m.dirty = s, false
	} else {
		p.remove(m)
	}
	p.notify()
	p.mu.Unlock()
	if err != nil && s != nil {
		s.Stop()
	}
	return err
}

// removeDead takes the idle members out whose server has ended; the caller stops them without the lock, which it
// holds now. Members in use stay for their users to find out.
func (p *Pool) removeDead() (dead []*member) {
	for _, m := range slices.Clone(p.members) {
		if m.leases == 0 && m.Server.Alive() != nil {
			p.remove(m)
			dead = append(dead, m)
		}
	}
	return dead
}

// remove takes a member out. The caller holds the lock.
func (p *Pool) remove(m *member) {
	p.members = slices.DeleteFunc(p.members, func(o *member) bool { return o == m })
	p.notify()
}

func stopAll(members []*member) {
	for _, m := range members {
		if m.Server != nil {
			m.Server.Stop()
		}
	}
}

// Close stops all servers, those in use included; requests that wait fail.
func (p *Pool) Close() {
	p.mu.Lock()
	p.closed = true
	p.cancel(ErrClosed)
	p.notify()
	p.mu.Unlock()
	p.busy.Wait()
	p.mu.Lock()
	members := p.members
	p.members = nil
	p.mu.Unlock()
	stopAll(members)
}

// Lease is the right to use a server.
type Lease struct {
	pool   *Pool
	member *member
	once   sync.Once
}

// Server is what is leased.
func (l *Lease) Server() Server { return l.member.Server }

// Release gives the lease back. It may be called more than once.
func (l *Lease) Release() {
	l.once.Do(func() {
		p := l.pool
		p.mu.Lock()
		defer p.mu.Unlock()
		l.member.leases--
		l.member.dirty = l.member.dirty || l.member.exclusive
		p.notify()
	})
}
