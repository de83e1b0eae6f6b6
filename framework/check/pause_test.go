package check

import (
	"testing"
	"time"

	"pgregory.net/rapid"
)

func TestPausesAreATenthOfTheWaitAndDoNotStretchTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		within := time.Duration(rapid.Int64Range(0, int64(time.Hour)).Draw(t, "within"))
		n := &Network{patience: rapid.IntRange(1, 20).Draw(t, "patience")}
		short := n.Patiently(shortPause)
		pause, waited := n.Patiently(pollInterval), time.Duration(0)
		for waited < within {
			waited += pause
			if next := n.nextPause(pause, waited, within); next > max(short, waited/10) || next > 2*pause || next <= 0 {
				t.Fatalf("after %s, %s follows %s", waited, next, pause)
			} else {
				pause = next
			}
		}
		if over := waited - within; over > short {
			t.Fatalf("a bound of %s is looked at %s late", within, over)
		}
	})
}
