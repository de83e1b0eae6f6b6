package report

import (
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// unjudged is a result that binds the candidate and could not be decided.
func unjudged(id spec.ID, name string) check.Result {
	r := result(id, name, check.NotJudged)
	r.JudgedBy = "--slow"
	return r
}

func TestWhatWasNotJudgedIsTold(t *testing.T) {
	met, other := spec.AllocUnique, spec.AllocExhaustedRefused // both are MUSTs of profile core
	for name, c := range map[string]struct {
		results   []check.Result
		selection *Selection
		verdict   check.Verdict
		profile   check.Verdict
		counts    Counts
		line      string
		code      int
	}{
		"a MUST": {
			[]check.Result{result(met, "a", check.Conformant), unjudged(other, "b")}, &Selection{}, InPart, InPart, Counts{Conformant: 1, NotJudged: 1},
			"conformant in what was judged, 1 of 2 requirements", ExitConformant,
		},
		"one check of a MUST": {
			[]check.Result{result(met, "a", check.Conformant), unjudged(met, "b")}, &Selection{}, check.Conformant, check.Conformant, Counts{Conformant: 1}, "conformant", ExitConformant,
		},
		"a MUST that was not asked for": {
			[]check.Result{result(met, "a", check.Conformant)}, &Selection{Focus: []string{"a"}, Unasked: []spec.ID{other}}, InPart, InPart, Counts{Conformant: 1, NotJudged: 1},
			"conformant in what was judged, 1 of 2 requirements", ExitConformant,
		},
		"all": {
			[]check.Result{unjudged(met, "a")}, &Selection{}, check.NotJudged, check.NotJudged, Counts{NotJudged: 1},
			"nothing was decided: this run can judge no check that applies", ExitUnknown,
		},
		"beside what is not met": {
			[]check.Result{result(met, "a", check.NonConformant), unjudged(other, "b")}, &Selection{}, check.NonConformant, check.NonConformant, Counts{NonConformant: 1, NotJudged: 1},
			"non-conformant", ExitNonConformant,
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := Build(Run{Candidate: candidate.Description{Version: "v1.37.1"}, Started: time.Now(), Planned: len(c.results), Selection: c.selection}, c.results)
			if r.Verdict != c.verdict || r.VerdictLine() != c.line || r.ExitCode() != c.code || r.Summary.Requirements != c.counts {
				t.Errorf("%s, %q, exit code %d, %+v", r.Verdict, r.VerdictLine(), r.ExitCode(), r.Summary.Requirements)
			}
			if len(r.Profiles) != 1 || r.Profiles[0].Verdict != c.profile {
				t.Errorf("profiles: %+v", r.Profiles)
			}
			if problems := r.Problems(); len(problems) > 0 {
				t.Errorf("the report contradicts itself: %v", problems)
			}
		})
	}
}

// facesOf are the summary at the end of a run ("text") and all faces of a report, by name.
func facesOf(t *testing.T, r *Report) map[string]string {
	t.Helper()
	var text strings.Builder
	r.WriteSummary(&text, Palette{})
	faces := map[string]string{"text": text.String()}
	for _, f := range Faces {
		data, err := f.Render(r)
		if err != nil {
			t.Fatal(err)
		}
		faces[f.Name] = string(data)
	}
	return faces
}

func TestEveryFaceTellsWhatWouldDecide(t *testing.T) {
	r := Build(Run{Candidate: candidate.Description{Version: "v1.37.1"}, Started: time.Now(), Planned: 2}, []check.Result{result(spec.AllocUnique, "a", check.Conformant), unjudged(spec.AllocExhaustedRefused, "b")})
	faces := facesOf(t, r)
	for name, want := range map[string]string{
		"text": "not judged  alloc-exhausted-refused: because (judged by: --slow)", "md": "## Not judged: 1", "junit": "not judged: because (judged by: --slow)",
		"yaml": "notJudgedRequirements:\n    - alloc-exhausted-refused", "html": "<code>--slow</code>",
	} {
		if !strings.Contains(faces[name], want) {
			t.Errorf("%s does not say %q:\n%s", name, want, faces[name])
		}
	}
	if !strings.Contains(string(r.Badge()), "conformant in part, 1 not judged") {
		t.Errorf("the badge says %s", r.Badge())
	}
}

func TestAReportOfBeforeIsConformantInPartAtMost(t *testing.T) {
	r := Build(Run{Candidate: candidate.Description{Version: "v1.37.1"}, Started: time.Now(), Planned: 1}, []check.Result{result(spec.AllocUnique, "a", check.Conformant)})
	if r.Standing() != check.Conformant {
		t.Fatalf("a new one is %s", r.Standing())
	}
	r.SchemaVersion = 1
	if r.Standing() != InPart || !r.Partial() {
		t.Errorf("it is %s", r.Standing())
	}
}

// TestWhatAKnownDeviationHidIsNotUnknown: a check that ends at a known deviation has not judged what it would have come to. If another check has, that decides.
func TestWhatAKnownDeviationHidIsNotUnknown(t *testing.T) {
	known, other := spec.AllocHistoryExplained, spec.AllocUpdateFreesWhenStored
	hidden := result(known, "history", check.NonConformant)
	hidden.Requirements = []spec.ID{known, other}
	hidden.Failure = &check.Failure{Violated: []spec.ID{known}, Undecided: []spec.ID{other}, Message: "m"}
	run := Run{
		Candidate: candidate.Description{Implementation: "kubernetes", Version: "v1.37.1"}, Started: time.Date(2026, 11, 29, 0, 0, 0, 0, time.UTC), Selection: &Selection{},
		Expectations: Expectations{Deviations: []Expectation{{Requirement: known, Reason: "it is known", Intermittent: true}}},
	}
	for _, c := range []struct {
		results []check.Result
		want    check.Verdict
		why     string
	}{
		{[]check.Result{hidden, result(other, "own", check.Conformant)}, check.Conformant, ""},
		{[]check.Result{hidden}, check.NotJudged, "its check ended before, at a known deviation: " + hidden.Check},
		{[]check.Result{hidden, result(other, "own", check.Unknown)}, check.Unknown, ""},
	} {
		run.Planned = len(c.results)
		r := Build(run, c.results)
		for _, v := range r.Requirements {
			if v.ID == other && v.Verdict != c.want {
				t.Errorf("%d checks: %s is %s, want %s", len(c.results), other, v.Verdict, c.want)
			}
		}
		why := ""
		for _, u := range r.NotJudged() {
			why = u.Why
		}
		if why != c.why {
			t.Errorf("%d checks: not judged because %q, want %q", len(c.results), why, c.why)
		}
		if problems := r.Problems(); len(problems) > 0 {
			t.Errorf("the report contradicts itself: %v", problems)
		}
		for i := range r.Checks {
			if x := &r.Checks[i]; x.KnownDeviation != nil && (x.home() != known || x.Red()) {
				t.Errorf("%d checks: the deviation is shown under %s, and is red: %v", len(c.results), x.home(), x.Red())
			}
		}
	}
}
