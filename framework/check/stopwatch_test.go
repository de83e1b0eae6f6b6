package check

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestStopwatchLeavesOutWhenNobodyRan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &stopwatch{seen: time.Unix(0, 0)}
		now, ran := w.seen, time.Duration(0)
		for range rapid.IntRange(1, 50).Draw(t, "reads") {
			if rapid.Bool().Draw(t, "stalled") {
				now = now.Add(time.Duration(rapid.Int64Range(int64(longestTick)+1, int64(time.Hour)).Draw(t, "stall")))
				ran += stopwatchTick
			} else {
				tick := time.Duration(rapid.Int64Range(0, int64(longestTick)).Draw(t, "tick"))
				now, ran = now.Add(tick), ran+tick
			}
			if got := w.read(now); got != ran {
				t.Fatalf("counted %s of %s", got, ran)
			}
			if got := w.read(now.Add(-time.Millisecond)); got != ran {
				t.Fatalf("counted %s of %s after a read that came late", got, ran)
			}
		}
	})
}
