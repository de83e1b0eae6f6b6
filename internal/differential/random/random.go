// Package random compares random inputs on two sides, until it is told to end: the same inputs for the same seed, and each class of differences told once.
package random

import (
	"context"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Difference is where two sides differ.
type Difference interface {
	// Class is what differences have in common that are told once.
	Class() string
	// Tolerance names what covers it; empty if nothing does.
	Tolerance() string
}

// Test is inputs of a kind, and how two sides are compared.
type Test[Input any, D Difference] struct {
	// Make makes an input.
	Make func(*rand.Rand) Input
	// Compare has an input on both sides. Inputs that are compared at the same time have other slots. An error is one of the environment.
	Compare func(ctx context.Context, slot int, input Input) ([]D, error)
	// Slots is how many slots there are.
	Slots int
}

// Options say what a run tries.
type Options[Input any, D Difference] struct {
	// Seed and From choose the inputs: those of number From and up.
	Seed uint64
	From int
	// Until is when no further one is begun. Most, unless 0, is how many are tried.
	Until time.Time
	Most  int
	// Workers is how many are compared at a time, at most as many as there are slots.
	Workers int
	// First is called for the first difference of each class, and Progress after each input: one call at a time.
	First    func(Found[Input, D])
	Progress func(Tally)
}

// Found is a difference with an input that shows it.
type Found[Input any, D Difference] struct {
	// Number is that of the random input.
	Number     int
	Input      Input
	Difference D
}

// Tally is what a run has done.
type Tally struct {
	// Inputs were compared. Next is the number below which there is none that was not.
	Inputs, Next int
	// Unsteady are inputs that differed once, and not when they were tried again.
	Unsteady int
	// Tolerated are how often each tolerance covered a difference, and Classes how many inputs showed each class of the others.
	Tolerated, Classes map[string]int
}

// Source is what the input of a number is made from.
func Source(seed uint64, number int) *rand.Rand {
	var key [32]byte
	binary.LittleEndian.PutUint64(key[:], seed)
	binary.LittleEndian.PutUint64(key[8:], uint64(number))
	return rand.New(rand.NewChaCha8(key))
}

// Run compares inputs until it is told to end. An error is one of the environment; the tally says what was compared before.
func (t *Test[Input, D]) Run(ctx context.Context, o Options[Input, D]) (Tally, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	r := run[Input, D]{Test: t, o: o, tally: Tally{Next: o.From, Tolerated: map[string]int{}, Classes: map[string]int{}}, done: map[int]bool{}}
	free := make(chan int, t.Slots)
	for slot := range t.Slots {
		free <- slot
	}
	var next atomic.Int64
	next.Store(int64(o.From))
	var workers sync.WaitGroup
	for range max(1, min(o.Workers, t.Slots)) {
		workers.Go(func() {
			for ctx.Err() == nil && time.Now().Before(o.Until) {
				n := int(next.Add(1)) - 1
				if o.Most > 0 && n >= o.From+o.Most {
					return
				}
				slot := <-free
				err := r.try(ctx, slot, n)
				free <- slot
				if err != nil && ctx.Err() == nil {
					stop(err)
				}
			}
		})
	}
	workers.Wait()
	if err := context.Cause(ctx); ctx.Err() != nil && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) {
		return r.tally, err
	}
	return r.tally, nil
}

type run[Input any, D Difference] struct {
	*Test[Input, D]
	o Options[Input, D]

	mu    sync.Mutex
	tally Tally
	done  map[int]bool
}

// try compares an input. What differs is compared again: a difference that goes away says nothing.
func (r *run[Input, D]) try(ctx context.Context, slot, n int) error {
	input := r.Make(Source(r.o.Seed, n))
	all, err := r.Compare(ctx, slot, input)
	if err != nil {
		return err
	}
	differences, tolerated := apart(all)
	steady := true
	if len(differences) > 0 {
		again, err := r.Compare(ctx, slot, input)
		if err != nil {
			return err
		}
		again, _ = apart(again)
		differences = slices.DeleteFunc(again, func(d D) bool {
			return !slices.ContainsFunc(differences, func(before D) bool { return before.Class() == d.Class() })
		})
		steady = len(differences) > 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.tally.Inputs++
	r.done[n] = true
	for r.done[r.tally.Next] {
		delete(r.done, r.tally.Next)
		r.tally.Next++
	}
	for _, d := range tolerated {
		r.tally.Tolerated[d.Tolerance()]++
	}
	if !steady {
		r.tally.Unsteady++
	}
	told := map[string]bool{}
	for _, d := range differences {
		class := d.Class()
		if told[class] {
			continue
		}
		told[class] = true
		if r.tally.Classes[class]++; r.tally.Classes[class] == 1 {
			r.o.First(Found[Input, D]{n, input, d})
		}
	}
	if r.o.Progress != nil {
		r.o.Progress(r.tally)
	}
	return nil
}

// apart are the differences that count, and those that are tolerated.
func apart[D Difference](all []D) (counting, tolerated []D) {
	for _, d := range all {
		if d.Tolerance() == "" {
			counting = append(counting, d)
		} else {
			tolerated = append(tolerated, d)
		}
	}
	return counting, tolerated
}
