package gotest

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/runner"

	_ "github.com/service-conformance/conformance/suites/allocation"
)

// recorder stands in for a test of a user.
type recorder struct {
	testing.TB
	text          strings.Builder
	failed, ended bool
}

func (*recorder) Helper()        {}
func (r *recorder) Fail()        { r.failed = true }
func (r *recorder) Log(a ...any) { fmt.Fprintln(&r.text, a...) }
func (r *recorder) Fatalf(format string, a ...any) {
	fmt.Fprintf(&r.text, format+"\n", a...)
	r.failed, r.ended = true, true
	runtime.Goexit()
}

// tried runs what a user's test does.
func tried(t *testing.T, test func(testing.TB)) *recorder {
	r := &recorder{TB: t}
	done := make(chan bool)
	go func() {
		defer close(done)
		test(r)
	}()
	<-done
	return r
}

// TestRunTellsFailuresAsTheProgramDoes makes all its runs in one test: a process has one that judges.
func TestRunTellsFailuresAsTheProgramDoes(t *testing.T) {
	faults, err := fault.Parse("lower-band-first")
	if err != nil {
		t.Fatal(err)
	}
	candidate, err := reference.New(reference.Options{Faults: faults})
	if err != nil {
		t.Fatal(err)
	}
	defer candidate.Close(t.Context())
	dir := t.TempDir()
	selection := runner.Selection{Focus: []string{"alloc-upper-band-first", "alloc-duplicate-refused"}, ServiceCIDRs: []string{"10.96.0.0/27"}}

	for _, c := range []struct {
		options Options
		want    string
	}{
		{Options{Selection: runner.Selection{Focus: []string{"alloc-uper-band-first"}}}, "did you mean"},
		{Options{Selection: runner.Selection{Suites: []string{"proxy"}}}, `unknown suite "proxy"`},
		{Options{Selection: selection, Expectations: filepath.Join(dir, "none.yaml")}, "none.yaml"},
	} {
		if r := tried(t, func(tb testing.TB) { Run(tb, candidate, c.options) }); !r.ended || !strings.Contains(r.text.String(), c.want) {
			t.Errorf("want the end of the test and %q, got %v\n%s", c.want, r.ended, &r.text)
		}
	}

	r := tried(t, func(tb testing.TB) {
		got := Run(tb, candidate, Options{Selection: selection, ReportDir: dir, Seed: 7})
		if got.Summary.Requirements.NonConformant != 1 || got.Seed != 7 {
			t.Errorf("got %+v with seed %d", got.Summary, got.Seed)
		}
	})
	text := r.text.String()
	if !r.failed || r.ended {
		t.Errorf("failed %v, ended %v", r.failed, r.ended)
	}
	for _, want := range []string{
		"non-conformant  alloc-upper-band-first: ", "expected an address in the upper (dynamic) band of 10.96.0.0/27", "observed 10.96.0.", "requirement alloc-upper-band-first (MUST): ",
		"demanded at allocation/", "kubectl create -n conformance-", "verdict: non-conformant", "seed 7",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("the log does not say %q:\n%s", want, text)
		}
	}
	if strings.Contains(text, "\x1b[") || strings.Contains(text, "[FAILED]") {
		t.Errorf("the log holds colours, or what Ginkgo says:\n%s", text)
	}
	for _, name := range []string{"junit_01.xml", "report.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}

	again := tried(t, func(tb testing.TB) { Run(tb, candidate, Options{Selection: selection}) })
	if !again.ended || !strings.Contains(again.text.String(), check.ErrRunTwice.Error()) {
		t.Errorf("a second run says %q", &again.text)
	}
	if second := tried(t, func(tb testing.TB) { check.Run(tb.(*recorder), check.Setup{Candidate: candidate}) }); !second.failed {
		t.Error("a second check.Run does not fail")
	}
}
