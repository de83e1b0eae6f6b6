package check

import (
	"fmt"
	"time"

	"github.com/service-conformance/conformance/internal/memory"
)

// stallShare is the part of a check's time for which processes of this machine may wait for memory. Beyond it, what comes late accuses nobody: everything comes
// late then, for minutes. With enough memory the part is next to nothing, also where processors are busy.
const stallShare = 0.1

// memoryStalled tells for how long processes of this machine have waited for memory.
var memoryStalled = memory.Stalled

// memoryMeter is what memoryStalled said when something began.
type memoryMeter struct {
	began   time.Time
	stalled time.Duration
	known   bool
}

func meterMemory() memoryMeter {
	stalled, known := memoryStalled()
	return memoryMeter{time.Now(), stalled, known}
}

// noteShortage notes, when the body of a check of traffic has ended, how short of memory the machine was meanwhile. Nothing comes late on a virtual clock.
func (r *running) noteShortage(since memoryMeter) {
	if !onVirtualClock() {
		r.shortOfMemory = since.shortage()
	}
}

// shortage says how short of memory the machine was since the meter began; empty if it was not, or does not tell.
func (m *memoryMeter) shortage() string {
	stalled, known := memoryStalled()
	stalled -= m.stalled
	passed := time.Since(m.began)
	if !m.known || !known || stalled < time.Duration(stallShare*float64(passed)) {
		return ""
	}
	return fmt.Sprintf("this machine was short of memory: processes waited for memory in %.0f of %.0f s", stalled.Seconds(), passed.Seconds())
}
