package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/clusterrun"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/scratch"
)

// Bounds on what happens after a signal.
const (
	// sameSignal is the time in which signals count as one. A terminal, or a program such as timeout, sends its signal
	// to a process and to those that pass it on.
	sameSignal = time.Second
	// endsWithin is how long the program takes to end.
	endsWithin = 8 * time.Second
	// passedOnWithin is how much longer it waits for a process that a signal was passed on to.
	passedOnWithin = 500 * time.Millisecond
)

// interruption is what signals do to the program. The first one ends its context. A later one ends the program at once,
// and so does time.
type interruption struct {
	end  context.CancelCauseFunc
	quit func(code int)

	mu     sync.Mutex
	left   bool      // signals are left to the command
	leaves string    // what the program leaves if it ends at once; empty if nothing
	first  time.Time // zero until there is one
	passed chan<- os.Signal
}

// ending is the interruption of this process; nil in tests that call commands directly.
var ending *interruption

// errInterrupted is why a context ended that a signal has ended.
var errInterrupted = errors.New("interrupted")

// interrupted is how a command ends that a signal has interrupted; nil if none has.
func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted) {
		return &exitError{code: report.ExitUnknown, err: errors.New("interrupted")}
	}
	return nil
}

// listen begins to heed signals and returns the context that they end.
func listen() (context.Context, *interruption) {
	ctx, end := context.WithCancelCause(context.Background())
	i := &interruption{end: end, quit: quit}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		for s := range signals {
			i.heed(s, time.Now())
		}
	}()
	if os.Getenv(clusterrun.FollowsVariable) != "" {
		go func() {
			_, _ = io.Copy(io.Discard, os.Stdin)
			i.heed(syscall.SIGHUP, time.Now())
		}()
	}
	return ctx, i
}

// withReader has the program end as by a signal, and clean up, when nobody reads its output any more. Else the system would end it at once.
func (i *interruption) withReader() {
	if i == nil {
		return
	}
	gone := make(chan os.Signal, 1)
	signal.Notify(gone, syscall.SIGPIPE)
	go func() {
		for s := range gone {
			if unread(output...) {
				i.heed(s, time.Now())
			}
		}
	}()
}

// causes name what heed heeds.
var causes = map[os.Signal]string{
	os.Interrupt: "SIGINT", syscall.SIGTERM: "SIGTERM", syscall.SIGHUP: "the end of the process that started it", syscall.SIGPIPE: "the end of what read its output",
}

// heed does what a signal asks for.
func (i *interruption) heed(s os.Signal, now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.left {
		return
	}
	if i.passed != nil {
		select {
		case i.passed <- s:
		default: // it has a number of them already
		}
	}
	switch {
	case i.first.IsZero():
		i.first = now
		within := endsWithin
		if i.passed == nil { // else the other process says it
			over := ""
			if isTerminal(os.Stderr) {
				over = "\r\x1b[K" // the progress, and what the terminal shows of the key
			}
			fmt.Fprintf(os.Stderr, "%sconformance: interrupted by %s: it ends within %s; another signal ends it at once\n", over, causes[s], endsWithin)
		} else {
			within += passedOnWithin
		}
		i.end(errInterrupted)
		time.AfterFunc(within, i.timeIsOver)
	case now.Sub(i.first) < sameSignal:
	case i.passed == nil:
		fmt.Fprintln(os.Stderr, "conformance: interrupted again: it ends at once")
		i.atOnce()
	default:
		time.AfterFunc(passedOnWithin, i.timeIsOver)
	}
}

func (i *interruption) timeIsOver() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.atOnce()
}

// passOn hands signals to a process that does the work of this one, until done is called. It returns false if there has been a signal.
func (i *interruption) passOn() (signals <-chan os.Signal, done func(), ok bool) {
	if i == nil {
		return nil, func() {}, true
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.first.IsZero() {
		return nil, nil, false
	}
	passed := make(chan os.Signal, 4)
	i.passed = passed
	return passed, func() {
		i.mu.Lock()
		defer i.mu.Unlock()
		i.passed = nil
	}, true
}

// leave leaves signals to the command, which outlives them or passes them on in its own way.
func (i *interruption) leave() {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.left = true
}

// mayLeave says what the program leaves outside of this machine's processes and files if it ends at once.
func (i *interruption) mayLeave(what string) {
	if i == nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.leaves = what
}

// atOnce ends the program. The lock is held.
func (i *interruption) atOnce() {
	if i.left {
		return
	}
	if i.leaves != "" {
		fmt.Fprintln(os.Stderr, "conformance: this may leave", i.leaves)
	}
	i.quit(report.ExitUnknown)
}

// quit ends the program without waiting for anything, and removes what it has on disk, but what the next start needs to remove the rest. Other processes of its own end with it.
func quit(code int) {
	time.AfterFunc(passedOnWithin, func() { os.Exit(code) })
	isolation.Abandon()
	scratch.Abandon()
	os.Exit(code)
}
