package report

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestTheVerdictSaysNoMoreThanWasJudged(t *testing.T) {
	must := requirement(t, spec.Must)
	passes, fails := result(must, "a", check.Conformant), result(must, "a", check.NonConformant)
	whole, part := &Selection{Claimed: 7}, &Selection{Claimed: 7, Focus: []string{"x"}, Unasked: []spec.ID{spec.AllocUnique, spec.AllocExhaustedRefused}}
	excused := Expectations{Deviations: []Expectation{{Requirement: must, Reason: "it does"}}}
	own := Expectations{Deviations: []Expectation{{Requirement: must, Reason: "it does", Own: true}}}
	for name, c := range map[string]struct {
		result       check.Result
		selection    *Selection
		expectations Expectations
		verdict      check.Verdict
		code         int
		line         string
	}{
		"all":                                {passes, whole, Expectations{}, check.Conformant, 0, "conformant"},
		"a part":                             {passes, part, Expectations{}, InPart, 0, "conformant in what was judged, 1 of 3 requirements"},
		"a part that fails":                  {fails, part, Expectations{}, check.NonConformant, 1, "non-conformant"},
		"a published deviation":              {fails, whole, excused, check.Conformant, 0, "conformant but for 1 known deviation"},
		"a deviation of the candidate's own": {fails, whole, own, AsExpected, 0, "not conformant, as mine.yaml expects: 1 requirements are not met and are in no published list"},
		"an expected failure that passes":    {passes, whole, excused, Unlisted, 1, "1 expected failures passed: correct the list of known deviations"},
	} {
		t.Run(name, func(t *testing.T) {
			s := *c.selection
			s.Expectations = "mine.yaml"
			r := Build(Run{Candidate: candidate.Description{Version: "v1.37.1"}, Started: time.Now(), Planned: 1, Expectations: c.expectations, Selection: &s}, []check.Result{c.result})
			if r.Verdict != c.verdict || r.ExitCode() != c.code || r.VerdictLine() != c.line {
				t.Errorf("%s, exit code %d, %q", r.Verdict, r.ExitCode(), r.VerdictLine())
			}
			junit, err := r.JUnit()
			if err != nil {
				t.Fatal(err)
			}
			if red := bytes.Contains(junit, []byte("<failure")); c.code == 1 && !red {
				t.Errorf("exit code 1 and no failure in\n%s", junit)
			}
		})
	}
}

func TestOnlyWhatIsPublishedExcuses(t *testing.T) {
	what := candidate.Description{Implementation: "kubernetes", Version: "v1.37.1"}
	published, err := PublishedExpectations(&what)
	if err != nil || len(published.Deviations) == 0 {
		t.Fatalf("%d published deviations, %v", len(published.Deviations), err)
	}
	e := Expectations{Deviations: []Expectation{published.Deviations[0], {Requirement: published.Deviations[0].Requirement, Reason: "we say so"}}}
	if err := e.MarkOwn(&what); err != nil || e.Deviations[0].Own || !e.Deviations[1].Own {
		t.Errorf("own: %v, %v (%v)", e.Deviations[0].Own, e.Deviations[1].Own, err)
	}
}

func TestFailuresAreListedWithTheCommandThatRunsThemAgain(t *testing.T) {
	must := requirement(t, spec.Must)
	matrix := result(must, "b", check.NonConformant)
	matrix.Failure.Message = "after this: x\nnot met within 30s\n  client  to\n  ✓  pod a  b  answered\n  ✗  pod c  d  refused   dropped\n"
	r := Build(Run{Planned: 2}, []check.Result{result(must, "a", check.NonConformant), matrix, result(must, "c", check.Conformant)})
	var out strings.Builder
	r.WriteFailures(&out, Palette{}, func(ids []string) string { return "run " + strings.Join(ids, ",") })
	want := "non-conformant:\n" +
		"  " + string(must) + ": a\n      expected a observed \x00b (allocation/x.go:1)\n" +
		"  " + string(must) + ": b\n      after this: x: pod c d refused dropped (allocation/x.go:1)\n" +
		"again: run " + string(must) + "\n"
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestTheReportsOfTheRunBeforeAreMovedAway(t *testing.T) {
	dir := t.TempDir()
	first, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(dir); err == nil || !strings.Contains(err.Error(), "another run writes to "+dir) {
		t.Errorf("a second run at the same time: %v", err)
	}
	if _, err := first.Finish(Build(Run{Seed: 1}, nil)); err != nil {
		t.Fatal(err)
	}
	for _, of := range []string{dir, filepath.Join(dir, PreviousFolder)} { // that of the run before that one is replaced
		if err := errors.Join(os.MkdirAll(filepath.Join(of, LogsFolder), 0o755), os.WriteFile(filepath.Join(of, LogsFolder, filepath.Base(of)+".log"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	second, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer second.partial.Close()
	if _, err := os.Stat(filepath.Join(dir, LogsFolder)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("logs of the run before stand where those of this run will be: %v", err)
	}
	if logs, err := os.ReadDir(filepath.Join(dir, PreviousFolder, LogsFolder)); err != nil || len(logs) != 1 || logs[0].Name() != filepath.Base(dir)+".log" {
		t.Errorf("logs of the run before: %v, %v", logs, err)
	}
	if _, err := Open(dir); err == nil {
		t.Error("the report of the run before stands where that of this run will be")
	}
	if before, err := Open(dir + "/" + PreviousFolder); err != nil || before.Seed != 1 {
		t.Errorf("the report of the run before: %+v, %v", before, err)
	}
	// This run has no logs, so the next one finds none of the run before it.
	if _, err := second.Finish(Build(Run{Seed: 2}, nil)); err != nil {
		t.Fatal(err)
	}
	third, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer third.partial.Close()
	if _, err := os.Stat(filepath.Join(dir, PreviousFolder, LogsFolder)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("logs of the run before that one: %v", err)
	}
}
