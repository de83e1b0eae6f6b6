package check

import (
	"sync"
	"time"
)

// stopwatch counts the time that a candidate had to follow a change. It stands still while this program does not get to
// run. The machine was suspended or starved, or a lab was stopped and continued with its terminal. The candidate had no
// time either. Its methods are safe for concurrent use.
type stopwatch struct {
	mu      sync.Mutex
	seen    time.Time // when it was read last
	counted time.Duration
	end     chan struct{}
}

const (
	// stopwatchTick is how often it reads itself.
	stopwatchTick = 100 * time.Millisecond
	// longestTick is what may lie between two reads and still counts as time that passed for all.
	longestTick = time.Second
)

// startStopwatch starts one, which must be stopped.
func startStopwatch() *stopwatch {
	w := &stopwatch{seen: time.Now(), end: make(chan struct{})}
	go func() {
		ticker := time.NewTicker(stopwatchTick)
		defer ticker.Stop()
		for {
			select {
			case <-ticker.C:
				w.elapsed()
			case <-w.end:
				return
			}
		}
	}()
	return w
}

func (w *stopwatch) stop() { close(w.end) }

// elapsed is the time counted since the start.
func (w *stopwatch) elapsed() time.Duration { return w.read(time.Now()) }

func (w *stopwatch) read(now time.Time) time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	passed := now.Sub(w.seen)
	if passed > longestTick {
		passed = stopwatchTick
	}
	if passed > 0 { // another reader may have come later and read first
		w.counted += passed
		w.seen = now
	}
	return w.counted
}
