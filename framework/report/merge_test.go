package report

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

func names(r *Report) map[string]check.Verdict {
	all := map[string]check.Verdict{}
	for _, c := range r.Checks {
		all[c.DisplayName()] = c.Verdict
	}
	return all
}

func TestMergeNamesTheRangeOfEachClusterAndWeighsVerdicts(t *testing.T) {
	a, b, c := spec.AllocUnique, spec.AllocUpperBandFirst, spec.AllocDynamicInRange
	ranged := result(b, "y", check.Conformant)
	ranged.ServiceCIDR = "10.96.0.0/24"
	single := candidate.Description{Implementation: "kubernetes", Version: "v1.37.1", Tier: "cluster", Capabilities: []spec.Capability{spec.SingleStack}}
	dual := candidate.Description{Implementation: "kubernetes", Capabilities: []spec.Capability{spec.DualStack}}
	first := Build(Run{Planned: 3, Candidate: single},
		[]check.Result{result(a, "x", check.Conformant), ranged, result(c, "z", check.NotApplicable)})
	ranged.ServiceCIDR, ranged.Verdict, ranged.Reason = "10.96.0.0/20", check.Unknown, "because"
	second := Build(Run{Planned: 4, Interrupted: true, Candidate: dual},
		[]check.Result{result(a, "x", check.NonConformant), ranged, result(c, "z", check.Conformant)})

	r := Merge(Run{Candidate: candidate.Description{Tier: "kind"}, Started: time.Now()}, []Part{{"10.96.0.0/24", first}, {"10.96.0.0/20", second}})

	want := map[string]check.Verdict{
		string(a) + ": x [10.96.0.0/24]": check.Conformant, string(a) + ": x [10.96.0.0/20]": check.NonConformant,
		string(b) + ": y [10.96.0.0/24]": check.Conformant, string(b) + ": y [10.96.0.0/20]": check.Unknown,
		string(c) + ": z [10.96.0.0/24]": check.NotApplicable, string(c) + ": z [10.96.0.0/20]": check.Conformant,
	}
	got := names(r)
	if len(got) != len(r.Checks) || len(got) != len(want) {
		t.Errorf("results %v, want %v", got, want)
	}
	for name, v := range want {
		if got[name] != v {
			t.Errorf("%s is %q, want %q", name, got[name], v)
		}
	}
	byID := map[spec.ID]check.Verdict{}
	for _, v := range r.Requirements {
		byID[v.ID] = v.Verdict
	}
	if byID[a] != check.NonConformant || byID[b] != check.Unknown || byID[c] != check.Conformant {
		t.Errorf("requirements %v", byID)
	}
	if r.Candidate.Tier != "kind" || r.Candidate.Version != "v1.37.1" || len(r.Candidate.Capabilities) != 2 {
		t.Errorf("candidate %+v", r.Candidate)
	}
	if !r.Interrupted || r.NotRun != 1 {
		t.Errorf("interrupted %v, %d not run; want what the second part says", r.Interrupted, r.NotRun)
	}
}

func TestMergeOfOnePartChangesNoName(t *testing.T) {
	one := Build(Run{Planned: 1}, []check.Result{result(spec.AllocUnique, "x", check.Conformant)})
	r := Merge(Run{}, []Part{{"10.96.0.0/24", one}})
	if got := names(r); got[string(spec.AllocUnique)+": x"] != check.Conformant {
		t.Errorf("results %v", got)
	}
}

func TestMergeKeepsOneResultOfAFixedRange(t *testing.T) {
	of := func(v check.Verdict) *Report {
		r := result(spec.AllocUnique, "x", v)
		r.ServiceCIDR = "10.96.0.0/28"
		return Build(Run{Planned: 1}, []check.Result{r})
	}
	other := of(check.NotApplicable)
	for _, order := range [][]Part{
		{{"10.96.0.0/24", of(check.NotApplicable)}, {"10.97.0.0/24", of(check.Conformant)}, {"10.96.0.0/20", other}},
		{{"10.97.0.0/24", of(check.Conformant)}, {"10.96.0.0/24", of(check.NotApplicable)}, {"10.96.0.0/20", other}},
	} {
		r := Merge(Run{}, order)
		if len(r.Checks) != 1 || r.Checks[0].Verdict != check.Conformant || r.NotRun != 0 {
			t.Errorf("checks %+v, %d not run", r.Checks, r.NotRun)
		}
	}
}

// A deviation that shows on one range only is known on it, and is no surprise where it does not show.
func TestMergeHoldsExpectationsAgainstAllClusters(t *testing.T) {
	known := Expectations{Deviations: []Expectation{{Requirement: spec.AllocUnique, Reason: "r"}}}
	part := func(cidr string, v check.Verdict) Part {
		return Part{cidr, Build(Run{Planned: 1, Expectations: known}, []check.Result{result(spec.AllocUnique, "x", v)})}
	}
	r := Merge(Run{Expectations: known}, []Part{part("10.96.0.0/24", check.Conformant), part("10.96.0.0/20", check.NonConformant)})
	if r.ExitCode() != ExitConformant || len(r.UnexpectedPasses) != 0 {
		t.Errorf("exit code %d, unexpected passes %v", r.ExitCode(), r.UnexpectedPasses)
	}
}

func TestUndecidedIsUnknownForWhatWasSelected(t *testing.T) {
	r := Undecided([]check.Declaration{
		{Suite: "allocation", Name: "alloc-unique: x", Requirements: []spec.ID{spec.AllocUnique}, Runs: 1, Timeout: time.Minute},
		{Suite: "allocation", Name: "alloc-unique: y", Requirements: []spec.ID{spec.AllocUnique}},
	}, "no cluster")
	if len(r.Checks) != 1 || r.Checks[0].Verdict != check.Unknown || r.Checks[0].Reason != "no cluster" || r.ExitCode() != ExitUnknown {
		t.Errorf("got %+v, exit code %d", r.Checks, r.ExitCode())
	}
	raw, err := os.ReadFile("../../docs/report.schema.json")
	if err != nil {
		t.Fatal(err)
	}
	data, err := json.Marshal(Merge(Run{Candidate: candidate.Description{Tier: "kind"}}, []Part{{"10.96.0.0/24", r}}))
	if err != nil {
		t.Fatal(err)
	}
	if problems := validateAgainst(t, raw, data); len(problems) > 0 {
		t.Errorf("%v\n%s", problems, data)
	}
}

func TestReadReturnsWhatFinishWrote(t *testing.T) {
	dir := t.TempDir()
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	wrote := Build(Run{Planned: 2, Seed: 7}, []check.Result{result(spec.AllocUnique, "x", check.NonConformant), result(spec.AllocUnique, "y", check.Unknown)})
	if _, err := folder.Finish(wrote); err != nil {
		t.Fatal(err)
	}
	read, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if read.Seed != 7 || !slices.EqualFunc(read.Checks, wrote.Checks, func(a, b CheckVerdict) bool { return a.Check == b.Check && a.Verdict == b.Verdict }) {
		t.Errorf("got %+v", read)
	}
	if _, err := Open(t.TempDir()); err == nil {
		t.Error("an empty folder was read")
	}
}
