package report

import (
	"fmt"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestALogStaysShort(t *testing.T) {
	var text strings.Builder
	var log Log
	write := func(r check.Result) { log.Write(&text, &CheckVerdict{Result: r}) }
	for i := range 100 {
		write(check.Result{Check: fmt.Sprint("red ", i), Verdict: check.NonConformant, Failure: &check.Failure{Message: "a\nb\nc\nd\ne", Location: "proxy/x.go:1"}})
		write(check.Result{Check: fmt.Sprint("lost ", i), Verdict: check.Unknown, Reason: fmt.Sprintf("pod p-%d did not start", i)})
	}
	write(check.Result{Check: "other", Verdict: check.Unknown, Reason: "no answer"})
	write(check.Result{Check: "fine", Verdict: check.Conformant})
	write(check.Result{Check: "later", Verdict: check.Blocked})
	got := text.String()
	if n := strings.Count(got, "demanded at"); n != failuresInFull {
		t.Errorf("%d failures were told in full, want %d", n, failuresInFull)
	}
	for want, times := range map[string]int{"non-conformant  red": 100, "unknown  lost 0": 1, "unknown  lost": 1, "unknown  other": 1, "fine": 0, "later": 0} {
		if n := strings.Count(got, want); n != times {
			t.Errorf("%q stands %d times, want %d, in\n%s", want, n, times, got)
		}
	}
	if !strings.Contains(got, "non-conformant  red 99\n    a b c d e (proxy/x.go:1)\n") {
		t.Errorf("the last failure has no line of its own in\n%s", got)
	}
}

func TestReasonsAreCounted(t *testing.T) {
	r := &Report{}
	for i := range 12 {
		r.Checks = append(r.Checks, CheckVerdict{Result: check.Result{Verdict: check.Unknown, Reason: fmt.Sprintf("pod p-%d did not start\nits log", i)}})
		r.Checks = append(r.Checks, CheckVerdict{Result: check.Result{Verdict: check.Unknown, Reason: "odd " + strings.Repeat("x", i+1)}})
	}
	root := spec.ID("proxy-root")
	r.Checks = append(r.Checks, CheckVerdict{Result: check.Result{Verdict: check.Blocked}, BlockedBy: map[spec.ID][]spec.ID{"a": {root}}})
	var text strings.Builder
	r.WriteReasons(&text, Palette{})
	got := text.String()
	if !strings.HasPrefix(got, "unknown  12 checks: pod p-0 did not start its log\nunknown  1 check: odd x\n") ||
		!strings.HasSuffix(got, "unknown  for 3 more reasons: see the reports\nblocked  1 check: by proxy-root\n") {
		t.Errorf("got\n%s", got)
	}
}
