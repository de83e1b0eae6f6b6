package apiservers

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/programs"

	"pgregory.net/rapid"

	"github.com/service-conformance/conformance/framework/candidate"
)

// fakeServer records what the pool does with it.
type fakeServer struct {
	ranges  Ranges
	resets  atomic.Int32
	stops   atomic.Int32
	dead    atomic.Bool
	stained error // what reset answers
}

func (f *fakeServer) Alive() error {
	if f.dead.Load() {
		return errors.New("dead")
	}
	return nil
}
func (f *fakeServer) Reset(context.Context) error { f.resets.Add(1); return f.stained }
func (f *fakeServer) Stop()                       { f.stops.Add(1) }

// fakePool starts fake servers, each of which takes a second of the time of the bubble that the test runs in.
type fakePool struct {
	*Pool
	mu      sync.Mutex
	servers []*fakeServer
	most    int // starts under way at a time
	current int
	fail    error
}

func newFakePool(limit int) *fakePool {
	f := new(fakePool)
	f.Pool = NewPool(limit, func(ctx context.Context, r Ranges) (Server, error) {
		f.mu.Lock()
		f.current++
		f.most = max(f.most, f.current)
		fail := f.fail
		f.mu.Unlock()
		defer func() {
			f.mu.Lock()
			f.current--
			f.mu.Unlock()
		}()
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		if fail != nil {
			return nil, fail
		}
		s := &fakeServer{ranges: r}
		f.mu.Lock()
		f.servers = append(f.servers, s)
		f.mu.Unlock()
		return s, nil
	})
	return f
}

func (f *fakePool) started() []*fakeServer {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.servers
}

// rangesOf is the n-th of as many ranges as needed.
func rangesOf(t interface{ Fatal(...any) }, n int) Ranges {
	r, err := ParseRanges(candidate.Request{ServiceCIDRs: fakes.Prefixes(fmt.Sprintf("10.0.%d.0/24", n))}, programs.Version{Minor: 37, Patch: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// get acquires a lease that must be available.
func (f *fakePool) get(t *testing.T, n int, exclusive bool) (*Lease, *fakeServer) {
	t.Helper()
	l, err := f.Acquire(t.Context(), rangesOf(t, n), exclusive)
	if err != nil {
		t.Fatal(err)
	}
	return l, l.member.Server.(*fakeServer)
}

// request acquires a lease in the background.
func (f *fakePool) request(ctx context.Context, r Ranges, exclusive bool) (*Lease, func() (done bool, err error)) {
	var l Lease
	var finished atomic.Bool
	var result error
	go func() {
		got, err := f.Acquire(ctx, r, exclusive)
		if err == nil {
			l.pool, l.member = got.pool, got.member
		}
		result = err
		finished.Store(true)
	}()
	return &l, func() (bool, error) {
		synctest.Wait()
		if !finished.Load() {
			return false, nil
		}
		return true, result
	}
}

func TestSharedLeasesShareAServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(4)
		defer p.Close()
		_, a := p.get(t, 1, false)
		_, b := p.get(t, 1, false)
		_, c := p.get(t, 2, false)
		if a != b || a == c || len(p.started()) != 2 {
			t.Errorf("%d servers; the same ranges share: %t, other ranges share: %t", len(p.started()), a == b, a == c)
		}
		if a.resets.Load() != 0 {
			t.Error("a server was reset under its users")
		}
	})
}

func TestConcurrentSharedRequestsStartOneServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(4)
		defer p.Close()
		var wg sync.WaitGroup
		for range 10 {
			wg.Go(func() {
				if _, err := p.Acquire(t.Context(), rangesOf(t, 1), false); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if n := len(p.started()); n != 1 {
			t.Errorf("%d servers", n)
		}
	})
}

func TestExclusiveLeasesWaitForEachOther(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(4)
		defer p.Close()
		first, a := p.get(t, 1, true)
		second, poll := p.request(t.Context(), rangesOf(t, 1), true)
		if done, err := poll(); done {
			t.Fatalf("a second exclusive lease, error %v", err)
		}
		first.Release()
		if done, err := poll(); !done || err != nil {
			t.Fatalf("after the release: done %t, error %v", done, err)
		}
		if second.member.Server != Server(a) || a.resets.Load() != 1 {
			t.Errorf("the next user got another server, or one that was reset %d times", a.resets.Load())
		}
	})
}

func TestSharedAndExclusiveLeasesNeverMeet(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(1)
		defer p.Close()
		shared, s := p.get(t, 1, false)
		exclusive, poll := p.request(t.Context(), rangesOf(t, 1), true)
		if done, _ := poll(); done {
			t.Fatal("an exclusive lease beside a shared one")
		}
		shared.Release()
		if done, err := poll(); !done || err != nil {
			t.Fatalf("done %t, error %v", done, err)
		}
		if s.resets.Load() != 1 {
			t.Errorf("reset %d times for the exclusive user", s.resets.Load())
		}
		_, poll = p.request(t.Context(), rangesOf(t, 1), false)
		if done, _ := poll(); done {
			t.Fatal("a shared lease beside an exclusive one")
		}
		exclusive.Release()
		if done, err := poll(); !done || err != nil {
			t.Fatalf("done %t, error %v", done, err)
		}
		if s.resets.Load() != 2 || len(p.started()) != 1 {
			t.Errorf("reset %d times, %d servers; want what the exclusive user left removed from the one server", s.resets.Load(), len(p.started()))
		}
	})
}

func TestSharedUsersGetAServerOfTheirOwnBesideAnExclusiveOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(2)
		defer p.Close()
		_, a := p.get(t, 1, true)
		_, b := p.get(t, 1, false)
		if a == b {
			t.Error("a shared lease on a server that is leased exclusively")
		}
	})
}

func TestIdleServersMakeRoomLongestUnusedFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(2)
		defer p.Close()
		one, a := p.get(t, 1, false)
		two, b := p.get(t, 2, false)
		two.Release()
		one.Release()
		again, _ := p.get(t, 1, false) // now 2 is unused for longer
		again.Release()
		_, _ = p.get(t, 3, false)
		if a.stops.Load() != 0 || b.stops.Load() != 1 {
			t.Errorf("stopped: the first server %d times, the second %d times; want the second once", a.stops.Load(), b.stops.Load())
		}
	})
}

func TestRequestsWaitWhileAllServersAreInUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(1)
		defer p.Close()
		first, a := p.get(t, 1, false)
		_, poll := p.request(t.Context(), rangesOf(t, 2), false)
		if done, _ := poll(); done {
			t.Fatal("more servers than allowed")
		}
		first.Release()
		time.Sleep(2 * time.Second) // of the bubble: the new server starts
		if done, err := poll(); !done || err != nil {
			t.Fatalf("done %t, error %v", done, err)
		}
		if a.stops.Load() != 1 {
			t.Error("the idle server still runs")
		}
	})
}

func TestWaitingEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(1)
		defer p.Close()
		p.get(t, 1, true)
		ctx, cancel := context.WithCancel(t.Context())
		_, poll := p.request(ctx, rangesOf(t, 1), true)
		cancel()
		if done, err := poll(); !done || !errors.Is(err, context.Canceled) {
			t.Errorf("done %t, error %v", done, err)
		}
	})
}

func TestDeadServersAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(4)
		defer p.Close()
		used, a := p.get(t, 1, false)
		a.dead.Store(true)
		second, b := p.get(t, 1, false)
		if a == b {
			t.Fatal("a lease on a dead server")
		}
		if a.stops.Load() != 0 {
			t.Error("a server that is in use was stopped")
		}
		used.Release()
		second.Release()
		p.get(t, 1, false)
		if a.stops.Load() != 1 {
			t.Error("what is left of the dead server was not cleared away")
		}
	})
}

func TestServersThatDoNotGetCleanAreReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(4)
		defer p.Close()
		l, a := p.get(t, 1, true)
		a.stained = errors.New("it stays")
		l.Release()
		_, b := p.get(t, 1, true)
		if a == b || a.stops.Load() != 1 {
			t.Errorf("the same server: %t; stopped %d times", a == b, a.stops.Load())
		}
	})
}

func TestAFailedStartIsReportedAndLeavesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(1)
		defer p.Close()
		p.fail = errors.New("refused")
		if _, err := p.Acquire(t.Context(), rangesOf(t, 1), false); !errors.Is(err, p.fail) {
			t.Errorf("error %v", err)
		}
		p.fail = nil
		p.get(t, 1, false)
	})
}

func TestReleaseTwiceIsOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(1)
		defer p.Close()
		first, _ := p.get(t, 1, false)
		p.get(t, 1, false)
		first.Release()
		first.Release()
		_, poll := p.request(t.Context(), rangesOf(t, 1), true)
		if done, _ := poll(); done {
			t.Error("an exclusive lease beside a shared one")
		}
	})
}

func TestCloseStopsEverythingAndEndsTheWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newFakePool(2)
		_, a := p.get(t, 1, true)
		_, waiting := p.request(t.Context(), rangesOf(t, 1), true)
		_, starting := p.request(t.Context(), rangesOf(t, 2), true)
		synctest.Wait()
		p.Close()
		for name, poll := range map[string]func() (bool, error){"waiting": waiting, "starting": starting} {
			if done, err := poll(); !done || !errors.Is(err, ErrClosed) {
				t.Errorf("the %s request: done %t, error %v", name, done, err)
			}
		}
		for _, s := range p.started() {
			if s.stops.Load() == 0 {
				t.Error("a server was not stopped")
			}
		}
		if a.stops.Load() != 1 {
			t.Errorf("stopped %d times", a.stops.Load())
		}
		if _, err := p.Acquire(t.Context(), rangesOf(t, 1), false); !errors.Is(err, ErrClosed) {
			t.Errorf("a request after close: %v", err)
		}
	})
}

// TestLeaseRules checks the rules under any mix of users. An exclusive user is alone and finds a clean server. Never
// more servers run than allowed, and everybody is served in the end.
func TestLeaseRules(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		limit := rapid.IntRange(1, 4).Draw(rt, "servers")
		type user struct {
			ranges, delay, hold int
			exclusive           bool
		}
		users := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) user {
			return user{rapid.IntRange(0, 3).Draw(t, "ranges"), rapid.IntRange(0, 9).Draw(t, "delay"),
				rapid.IntRange(1, 5).Draw(t, "hold"), rapid.Bool().Draw(t, "exclusive")}
		}), 1, 20).Draw(rt, "users")
		synctest.Test(t, func(t *testing.T) {
			p := newFakePool(limit)
			var mu sync.Mutex
			shared, exclusive, resets := map[*fakeServer]int{}, map[*fakeServer]int{}, map[*fakeServer]int32{}
			used := map[*fakeServer]bool{}
			var wg sync.WaitGroup
			for _, u := range users {
				wg.Go(func() {
					time.Sleep(time.Duration(u.delay) * time.Second)
					l, s := p.get(t, u.ranges, u.exclusive)
					count := shared
					if u.exclusive {
						count = exclusive
					}
					mu.Lock()
					count[s]++
					if s.ranges != rangesOf(t, u.ranges) {
						rt.Errorf("a server with the ranges %s", s.ranges)
					}
					if exclusive[s] > 1 || exclusive[s] == 1 && shared[s] > 0 {
						rt.Errorf("%d exclusive and %d shared users of one server", exclusive[s], shared[s])
					}
					if u.exclusive && used[s] && s.resets.Load() == resets[s] {
						rt.Errorf("an exclusive user found a server that was used and not reset")
					}
					used[s], resets[s] = true, s.resets.Load()
					running := 0
					for _, o := range p.started() {
						if o.stops.Load() == 0 {
							running++
						}
					}
					if running > limit {
						rt.Errorf("%d servers run, %d are allowed", running, limit)
					}
					mu.Unlock()
					time.Sleep(time.Duration(u.hold) * time.Second)
					mu.Lock()
					count[s]--
					mu.Unlock()
					l.Release()
				})
			}
			wg.Wait()
			p.Close()
			for _, s := range p.started() {
				if s.stops.Load() != 1 {
					rt.Errorf("a server was stopped %d times", s.stops.Load())
				}
			}
		})
	})
}
