package check

import (
	"testing"
	"testing/synctest"
	"time"
)

func TestShortageOfMemory(t *testing.T) {
	for name, c := range map[string]struct {
		known   bool
		stalled time.Duration // of the ten seconds that pass
		want    string
	}{
		"enough":         {true, 900 * time.Millisecond, ""},
		"short":          {true, 4 * time.Second, "this machine was short of memory: processes waited for memory in 4 of 10 s"},
		"nobody can say": {false, 4 * time.Second, ""},
	} {
		synctest.Test(t, func(t *testing.T) {
			before := memoryStalled
			defer func() { memoryStalled = before }()
			total := time.Hour // since the machine started
			memoryStalled = func() (time.Duration, bool) { return total, c.known }
			meter := meterMemory()
			time.Sleep(10 * time.Second)
			total += c.stalled
			if got := meter.shortage(); got != c.want {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		})
	}
}
