package runner

import (
	"slices"
	"sync"

	"github.com/service-conformance/conformance/framework/check"
)

// mostSecondAttempts bounds the results that get a second attempt. More of them are no accident of a few requests: the environment is broken, and stays so.
const mostSecondAttempts = 10

// FirstAttempt names the evidence that a result has of the attempt before it.
const FirstAttempt = "first attempt"

// firstAttempt keeps results back that the environment left unknown by what may pass, and passes on everything else. A second attempt replaces what was kept.
// It never has a say on what was decided: a result that is conformant or not is final. It is safe for concurrent use.
type firstAttempt struct {
	sink check.Sink

	mu      sync.Mutex
	kept    []check.Event
	tooMany bool
	over    bool // the first attempt is
}

// pass takes the events of the first attempt.
func (f *firstAttempt) pass(e check.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !e.Transient || e.Result == nil || f.tooMany || f.over {
		f.sink(e)
		return
	}
	if len(f.kept) == mostSecondAttempts {
		f.tooMany = true
		f.release()
		f.sink(e)
		return
	}
	f.kept = append(f.kept, e)
	f.sink(check.Event{Check: e.Check, ServiceCIDR: e.ServiceCIDR, Time: e.Time, Postponed: e.Result.Reason})
}

// leave ends the first attempt, and returns the names of the checks that run a second time.
func (f *firstAttempt) leave() (names []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.over = true
	for _, e := range f.kept {
		if !slices.Contains(names, e.Check) {
			names = append(names, e.Check)
		}
	}
	return names
}

// replace takes the events of the second attempt. A check runs on all of its ranges again: a result that nothing was kept of is dropped.
func (f *firstAttempt) replace(e check.Event) {
	f.mu.Lock()
	defer f.mu.Unlock()
	i := slices.IndexFunc(f.kept, func(k check.Event) bool { return k.Check == e.Check && k.ServiceCIDR == e.ServiceCIDR })
	switch {
	case i < 0 || e.Result != nil && e.Result.Reason == check.Interrupted: // what the first attempt says is more
		return
	case e.Result != nil:
		before := check.Evidence{Name: FirstAttempt, Value: "unknown: " + f.kept[i].Result.Reason}
		e.Result.Evidence = append([]check.Evidence{before}, e.Result.Evidence...)
		f.kept = slices.Delete(f.kept, i, i+1)
	}
	f.sink(e)
}

// settle passes on what no second attempt has replaced.
func (f *firstAttempt) settle() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.release()
}

func (f *firstAttempt) release() {
	for _, e := range f.kept {
		f.sink(e)
	}
	f.kept = nil
}
