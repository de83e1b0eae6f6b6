// Package selftest judges the reference with each of its deliberate bugs, and without each of its optional features. The score card says which checks see which bug.
package selftest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/scratch"
)

// Options say what is tried.
type Options struct {
	// Program is the path of the conformance program, which judges: checks run once per process.
	Program string
	// Faults are what the reference is started with, one at a time.
	Faults []*fault.Fault
	// Without are the features that the reference is started without, one at a time, as --without names them.
	Without []string
	// All says that nothing was left out. A check that never fails, and a low precision, are then findings.
	All bool
	// Quick runs only the suites that can catch a fault. It says nothing of precision.
	Quick bool
	// Parallel is how many references are judged at a time; it is at least 1.
	Parallel int
	// Out is told what became of each fault and feature, in the order in which they end.
	Out io.Writer
}

// UnsoundError says that the reference without a fault is not conformant, so that no score means anything.
type UnsoundError struct {
	// Failed are the checks that it fails; empty if some could not be decided.
	Failed []string
}

func (e *UnsoundError) Error() string {
	return "the reference without a fault is not conformant: " + strings.Join(e.Failed, "; ")
}

// Run judges the reference as it is, then with each fault, then without each feature. The error is an *UnsoundError, that of a context that has ended, or tells that the
// program could not judge. A fault that could not be judged is a problem in the card.
//
// The declarations of checks are those of the suites that this process imports.
func Run(ctx context.Context, o Options) (*Card, error) {
	check.Preview() // for suitesOf
	dir, err := scratch.New("selftest")
	if err != nil {
		return nil, err
	}
	defer dir.Remove()
	p := program{o.Program, dir.Path}
	sound, err := p.judge(ctx, "sound")
	if err != nil {
		return nil, err
	}
	if bad := failed(sound); len(bad) > 0 || sound.Summary.Checks.Unknown > 0 {
		return nil, &UnsoundError{bad}
	}
	card := &Card{Faults: make([]Score, len(o.Faults)), all: o.All, quick: o.Quick}
	var printing sync.Mutex
	told := func(text string) {
		printing.Lock()
		defer printing.Unlock()
		if ctx.Err() == nil {
			fmt.Fprintln(o.Out, text)
		}
	}
	atATime(o.Parallel, len(o.Faults), func(i int) {
		card.Faults[i] = score(ctx, p, o.Faults[i], o.Quick)
		told(card.Faults[i].line())
	})
	card.Ablations = make([]Ablation, len(o.Without))
	atATime(o.Parallel, len(o.Without), func(i int) {
		card.Ablations[i] = ablate(ctx, p, o.Without[i])
		told(card.Ablations[i].line())
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	card.add(sound)
	return card, nil
}

// atATime does n things, some of them at a time, and returns when all are done.
func atATime(most, n int, do func(i int)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, most)
	for i := range n {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			do(i)
		})
	}
	wait.Wait()
}

// score judges the reference with a fault.
func score(ctx context.Context, p program, x *fault.Fault, quick bool) Score {
	s := Score{Fault: x}
	args := []string{"--fault", x.Name}
	if x.Slow {
		args = append(args, "--slow")
	}
	if quick {
		for _, suite := range suitesOf(x) {
			args = append(args, "--suite", suite)
		}
	}
	r, err := p.judge(ctx, "fault-"+x.Name, args...)
	if err != nil {
		s.Problem = err.Error()
		return s
	}
	s.judge(r)
	return s
}

// suitesOf are the suites with checks of the requirements that a fault breaks: no others can catch it.
func suitesOf(x *fault.Fault) (suites []string) {
	for _, d := range check.Declarations() {
		if !slices.Contains(suites, d.Suite) && slices.ContainsFunc(d.Requirements, func(id spec.ID) bool { return slices.Contains(x.Breaks, id) }) {
			suites = append(suites, d.Suite)
		}
	}
	return suites
}
