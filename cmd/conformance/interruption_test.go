package main

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/report"
)

// TestASecondSignalEndsAtOnce demands that the first signal ends the context. A signal that a terminal sends beside one
// that is passed on is no second one. A second one does not wait for anything.
func TestASecondSignalEndsAtOnce(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	quits := []int{}
	i := &interruption{end: end, quit: func(code int) { quits = append(quits, code) }}
	began := time.Now()
	i.heed(os.Interrupt, began)
	i.heed(syscall.SIGTERM, began.Add(sameSignal/2))
	if !errors.Is(context.Cause(ctx), errInterrupted) || len(quits) > 0 {
		t.Fatalf("after the first signal: %v, quits %v", context.Cause(ctx), quits)
	}
	i.heed(os.Interrupt, began.Add(sameSignal))
	if len(quits) != 1 || quits[0] != report.ExitUnknown {
		t.Errorf("after the second signal: quits %v", quits)
	}
}

// TestSignalsThatAreLeftToTheCommandEndNothing is for shells, where Ctrl-C is for what runs inside, and for agents.
func TestSignalsThatAreLeftToTheCommandEndNothing(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	i := &interruption{end: end, quit: func(code int) { t.Errorf("it quits with %d", code) }}
	i.leave()
	i.heed(os.Interrupt, time.Now())
	i.heed(os.Interrupt, time.Now().Add(2*sameSignal))
	i.timeIsOver()
	if ctx.Err() != nil {
		t.Error("the context ended")
	}
}

// TestSignalsArePassedOn demands that a process that does the work gets every signal, and that none is passed on where the work must not begin.
func TestSignalsArePassedOn(t *testing.T) {
	ctx, end := context.WithCancelCause(t.Context())
	i := &interruption{end: end, quit: func(int) {}}
	signals, done, ok := i.passOn()
	if !ok {
		t.Fatal("there was no signal, and none is passed on")
	}
	i.heed(os.Interrupt, time.Now())
	if s := <-signals; s != os.Interrupt {
		t.Errorf("passed on: %v", s)
	}
	done()
	if _, _, ok := i.passOn(); ok || ctx.Err() == nil {
		t.Error("work begins after a signal")
	}
}
