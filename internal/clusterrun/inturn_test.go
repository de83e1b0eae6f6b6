package clusterrun

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

// turns is what inTurn works on: clusters that are numbers.
type turns struct {
	mu          sync.Mutex
	alive, most int
	judged      []int
	failed      []int
	created     int
	onJudge     func(i int)
	fails       int // this one cannot be created
}

func (s *turns) create(ctx context.Context, i int) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if i == s.fails {
		return 0, errors.New("no room")
	}
	s.created++
	s.alive++
	s.most = max(s.most, s.alive)
	return i, nil
}

func (s *turns) judge(_ context.Context, i, thing int, err error) {
	if s.onJudge != nil {
		s.onJudge(i)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		s.failed = append(s.failed, i)
		return
	}
	s.judged = append(s.judged, thing)
}

func (s *turns) remove(ctx context.Context, _ int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.alive--
	}
}

func TestInTurnJudgesAllInOrderAndLeavesNone(t *testing.T) {
	for _, alive := range []int{1, 2, 3} {
		s := &turns{fails: 2}
		inTurn(t.Context(), 5, alive, s.create, s.judge, s.remove)
		if !slices.Equal(s.judged, []int{0, 1, 3, 4}) || !slices.Equal(s.failed, []int{2}) {
			t.Errorf("judged %v, failed %v", s.judged, s.failed)
		}
		if s.alive != 0 || s.most > alive {
			t.Errorf("%d are left, there were %d at a time, want at most %d", s.alive, s.most, alive)
		}
	}
}

func TestInTurnCreatesTheNextWhileOneIsJudged(t *testing.T) {
	s := &turns{fails: -1}
	second := make(chan struct{})
	create := func(ctx context.Context, i int) (int, error) {
		if i == 1 {
			close(second)
		}
		return s.create(ctx, i)
	}
	s.onJudge = func(i int) {
		if i == 0 {
			<-second // this would wait for ever if the next one came later
		}
	}
	inTurn(t.Context(), 2, 2, create, s.judge, s.remove)
	if !slices.Equal(s.judged, []int{0, 1}) {
		t.Errorf("judged %v", s.judged)
	}
}

func TestInTurnRemovesWhatThereIsWhenInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := &turns{fails: -1, onJudge: func(i int) {
		if i == 1 {
			cancel()
		}
	}}
	inTurn(ctx, 4, 2, s.create, s.judge, s.remove)
	if s.alive != 0 || s.created == 4 {
		t.Errorf("%d are left of %d", s.alive, s.created)
	}
	if len(s.judged)+len(s.failed) != 4 {
		t.Errorf("judged %v, failed %v: each must be told of", s.judged, s.failed)
	}
}
