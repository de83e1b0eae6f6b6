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

func TestEveryFaceTellsWhatWouldDecide(t *testing.T) {
	r := Build(Run{Candidate: candidate.Description{Version: "v1.37.1"}, Started: time.Now(), Planned: 2}, []check.Result{result(spec.AllocUnique, "a", check.Conformant), unjudged(spec.AllocExhaustedRefused, "b")})
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
