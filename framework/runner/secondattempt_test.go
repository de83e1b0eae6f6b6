package runner

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/service-conformance/conformance/framework/check"
)

// ends is the event of a check that ends.
func ends(name string, verdict check.Verdict, transient bool) check.Event {
	return check.Event{Check: name, Transient: transient, Result: &check.Result{Check: name, Verdict: verdict, Reason: "of " + name}}
}

// TestEveryCheckHasOneResult demands that each check has one result after two attempts, and that only an unknown one is replaced.
func TestEveryCheckHasOneResult(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		results := map[string][]check.Result{}
		f := &firstAttempt{sink: func(e check.Event) {
			if e.Result != nil {
				results[e.Check] = append(results[e.Check], *e.Result)
			}
		}}
		first := map[string]check.Verdict{}
		transient := 0
		for i := range rapid.IntRange(0, 30).Draw(t, "checks") {
			name := fmt.Sprint("check ", i)
			first[name] = rapid.SampledFrom([]check.Verdict{check.Conformant, check.NonConformant, check.Unknown}).Draw(t, "first")
			passing := first[name] == check.Unknown && rapid.Bool().Draw(t, "passing")
			if passing {
				transient++
			}
			f.pass(ends(name, first[name], passing))
		}
		again := f.leave()
		want := transient
		if transient > mostSecondAttempts {
			want = 0
		}
		if len(again) != want {
			t.Fatalf("%d of %d transient results get a second attempt, want %d", len(again), transient, want)
		}
		second := map[string]check.Verdict{}
		for _, name := range again {
			if first[name] != check.Unknown {
				t.Fatalf("%s was %s and runs again", name, first[name])
			}
			if rapid.Bool().Draw(t, "runs") {
				second[name] = rapid.SampledFrom([]check.Verdict{check.Conformant, check.NonConformant, check.Unknown}).Draw(t, "second")
				f.replace(ends(name, second[name], true))
			}
		}
		f.replace(ends("nobody asked for it", check.Conformant, false))
		f.settle()
		f.pass(ends("too late", check.Conformant, true))
		if len(results) != len(first)+1 {
			t.Fatalf("%d results of %d checks", len(results)-1, len(first))
		}
		for name, verdict := range first {
			want, attempts := verdict, 1
			if v, ok := second[name]; ok {
				want, attempts = v, 2
			}
			if len(results[name]) != 1 || results[name][0].Verdict != want {
				t.Errorf("%s: %v, want %s", name, results[name], want)
			} else if told := len(results[name][0].Evidence); told != attempts-1 {
				t.Errorf("%s tells of %d earlier attempts, want %d", name, told, attempts-1)
			}
		}
	})
}

// TestAnInterruptedSecondAttemptIsNone demands that what the first attempt said stays.
func TestAnInterruptedSecondAttemptIsNone(t *testing.T) {
	var got []check.Result
	f := &firstAttempt{sink: func(e check.Event) {
		if e.Result != nil {
			got = append(got, *e.Result)
		}
	}}
	f.pass(ends("a", check.Unknown, true))
	f.leave()
	e := ends("a", check.Unknown, false)
	e.Result.Reason = check.Interrupted
	f.replace(e)
	f.settle()
	if len(got) != 1 || got[0].Reason != "of a" {
		t.Errorf("got %v", got)
	}
}
