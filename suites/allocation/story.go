package allocation

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/history"
)

// story records what several clients do at the same time. Each Service is changed by the client that created it, and read by all. So a request that is refused has
// held nothing for a moment, and a conflict is with somebody whose request was accepted.
type story struct {
	*plot
	servers []*check.ControlPlane
	began   time.Time
	latest  atomic.Int64 // the latest moment that was read
	took    time.Duration
	sent    int

	requests atomic.Int64 // that clients have begun
	died     atomic.Int64 // those without an answer
	full     atomic.Int64 // those of which the answer says that nothing is free
	lower    atomic.Int64 // those that were given something of the lower band by choice of the server
	mu       sync.Mutex
	history  history.History
	names    []string // of Services that have been created
	down     []window // when the first server was not there
	// settled is how old a Service is that is given an address. kube-apiserver may take the address away from one that was created in the same second: that is another
	// requirement, AllocUpgradeSecondaryUnique.
	settled time.Duration
	watched bool          // whether the candidate has IPAddress objects
	objects []object      // what became of them
	another chan struct{} // has something when there may be more of them
}

// window is a time between two moments: of a server that is not there, or of a request. It has not ended while its end is Never.
type window struct{ from, to time.Duration }

// newStory makes the story of clients that use the servers in turn.
func newStory(ctx context.Context, what func(*check.ControlPlane) *plot, servers ...*check.ControlPlane) *story {
	ginkgo.GinkgoHelper()
	cp := servers[0]
	for _, f := range []string{spec.FeatureDryRun, spec.FeatureExternalName} { // whichever the dice come to, the report says the same
		cp.Claims(f)
	}
	s := &story{plot: what(cp), servers: servers}
	if s.further && cp.Has(spec.ManageServiceCIDRs) {
		cp.Claims(spec.FeatureServiceCIDR)
	}
	s.history.Initially = s.initially(ctx, cp)
	// Dynamic allocation may look for free addresses in a copy of what is stored, which follows within this time. On a virtual clock no time passes meanwhile.
	if !cp.Has(spec.VirtualClock) {
		s.history.Lag, s.settled = reuse, 2*time.Second
	}
	s.began = time.Now()
	s.watchObjects(ctx)
	return s
}

// named reports whether clients name a register.
func (s *story) named(register string) bool {
	return slices.ContainsFunc(s.pools, func(p *pool) bool { return slices.Contains(p.named, register) })
}

// now is a moment since the story began. What happens after it has a later moment, whichever processor reads its clock.
func (s *story) now() time.Duration {
	for {
		latest := s.latest.Load()
		now := max(int64(time.Since(s.began)), latest+1)
		if s.latest.CompareAndSwap(latest, now) {
			return time.Duration(now)
		}
	}
}

// tell lets the clients send their requests, and do what happens when half of them have been sent. Afterwards it deletes what there is, and names all that can be named.
func (s *story) tell(ctx context.Context, meanwhile func()) {
	ginkgo.GinkgoHelper()
	clients := make([]*client, storyClients)
	for i := range clients {
		clients[i] = &client{story: s, id: i, server: i % len(s.servers), random: rand.New(rand.NewPCG(s.servers[0].Rand().Uint64(), 0))}
	}
	begun := s.now()
	half := make(chan struct{})
	turn := sync.OnceFunc(func() { close(half) })
	check.Concurrently(storyClients+1, func(i int) {
		if i == storyClients {
			select {
			case <-half:
				meanwhile()
			case <-ctx.Done():
			}
			return
		}
		defer turn() // if a client fails, nobody waits for it
		for ctx.Err() == nil && s.now()-begun-s.downTime() < storyTime {
			n := s.requests.Add(1)
			if n >= storyLength/2 || s.now()-begun > storyTime/2 {
				turn()
			}
			if n > storyLength {
				return
			}
			clients[i].act(ctx)
		}
	})
	s.took, s.sent = s.now()-begun, len(s.history.Operations)
	check.Concurrently(storyClients, func(i int) { clients[i].leave(ctx) })
	clients[0].removeRange(ctx)
	for _, p := range s.pools {
		alone := s.forms[slices.IndexFunc(s.forms, func(f *form) bool { return f.named == p })]
		for i, register := range p.named {
			if s.history.Initially[register] == history.Free {
				last := clients[i%len(clients)]
				last.create(ctx, alone, register)
				last.leave(ctx)
			}
		}
	}
}

// restart kills the first server and starts it again.
func (s *story) restart(ctx context.Context) {
	ginkgo.GinkgoHelper()
	s.mu.Lock()
	s.down = append(s.down, window{s.now(), history.Never})
	s.mu.Unlock()
	s.servers[0].Restart(ctx)
	s.mu.Lock()
	s.down[len(s.down)-1].to = s.now()
	s.mu.Unlock()
}

// wasDown reports whether the first server was not there at a moment of an operation.
func (s *story) wasDown(from, to time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.ContainsFunc(s.down, func(w window) bool { return w.from <= to && from <= w.to })
}

// downTime is how long the first server was not there.
func (s *story) downTime() (sum time.Duration) {
	now := s.now()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, w := range s.down {
		sum += min(w.to, now) - w.from
	}
	return sum
}

// add puts an operation into the history.
func (s *story) add(o *history.Operation, effects ...history.Effect) {
	o.Effects = effects
	s.mu.Lock()
	defer s.mu.Unlock()
	s.history.Operations = append(s.history.Operations, *o)
}

// cloud notes registers that may be held by a request that was lost.
func (s *story) cloud(from time.Duration, registers ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range registers {
		s.history.Clouds = append(s.history.Clouds, history.Cloud{Register: r, From: from})
	}
}

// service is the register of a Service.
func service(name string) string { return servicePrefix + name }

const servicePrefix = "Service "

// together stands between those that hold something at the same time, and between what one holds.
const together = " and "

// impossible is an effect that no order explains: the answer says something that is never so.
func impossible(register string) history.Effect { return history.See(register, "what cannot be") }

// stateOf is the value of the register of a Service that holds something.
func (s *story) stateOf(holds []string) string {
	if len(holds) == 0 {
		return s.without
	}
	return strings.Join(holds, together)
}

// stored is the state of a Service that was read.
func (s *story) stored(svc *corev1.Service) string { return s.stateOf(s.holds(svc)) }

// answerOf is what a reader sees of an answer.
func (s *story) answerOf(a check.Response) string {
	switch {
	case a.Status != nil && a.Status.Status == metav1.StatusFailure:
		return fmt.Sprintf("%d %s: %s", a.Code, a.Status.Reason, a.Status.Message)
	case a.Service != nil:
		return fmt.Sprintf("%d, %s", a.Code, s.stored(a.Service))
	}
	return fmt.Sprint(a.Code)
}

// path is where a Service, or all of them, are found.
func (s *story) path(name string) string { return s.servers[0].Path(name) }
