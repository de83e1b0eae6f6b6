package check

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/onsi/ginkgo/v2/types"
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

func TestAFailureUnderShortageIsUnknown(t *testing.T) {
	sink := setup.Sink
	defer func() { setup.Sink, current = sink, nil }()
	for short, want := range map[string]Verdict{"": NonConformant, "this machine was short of memory": Unknown} {
		var got *Result
		setup.Sink = func(e Event) { got = e.Result }
		current = &running{ctx: t.Context(), declared: &Declaration{}, shortOfMemory: short}
		judge(types.SpecReport{State: types.SpecStateFailed, Failure: types.Failure{FailureNodeType: types.NodeTypeIt, Message: "not met within 1m0s"}})
		if got == nil || got.Verdict != want || got.Reason != short {
			t.Errorf("short of memory %q: %+v, want %s", short, got, want)
		}
	}
}
