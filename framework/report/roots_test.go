package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// catalogue has requirements of the given levels, of the feature G where the ID ends in g and F elsewhere, and what builds on what.
func catalogue(t *testing.T, levels map[spec.ID]spec.Level, buildsOn string) *spec.Catalogue {
	t.Helper()
	text := "area: allocation\ndocuments:\n- {id: page, title: A page, url: 'https://example.com/', basis: document, asOf: v1.37}\nrequirements:\n"
	text += "- {id: alloc-of-g, statement: It holds., level: MAY, sources: [page#part], feature: G}\n"
	for id, level := range levels {
		feature := "F"
		if strings.HasSuffix(string(id), "g") {
			feature = "G"
		}
		text += fmt.Sprintf("- {id: %s, statement: It holds., level: %s, sources: [page#part], feature: %s}\n", id, level, feature)
	}
	if buildsOn != "" {
		text += "buildsOn:\n" + buildsOn
	}
	c, err := spec.Load(fstest.MapFS{"spec/a.yaml": {Data: []byte(text)}}, "spec")
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func on(cidr string, r check.Result) check.Result {
	r.ServiceCIDR = cidr
	return r
}

func verdicts(r *Report) map[spec.ID]check.Verdict {
	got := map[spec.ID]check.Verdict{}
	for _, v := range r.Requirements {
		got[v.ID] = v.Verdict
	}
	return got
}

const chain = "- {because: x, requirements: [alloc-b], upon: [alloc-a]}\n- {because: x, requirements: [alloc-c], upon: [alloc-b]}\n"

func TestWhatBuildsOnAnUnmetRequirementIsBlocked(t *testing.T) {
	musts := map[spec.ID]spec.Level{"alloc-a": spec.Must, "alloc-b": spec.Must, "alloc-c": spec.Must}
	red, unknown, green := check.NonConformant, check.Unknown, check.Conformant
	excused := Expectations{Deviations: []Expectation{{Requirement: "alloc-a", Reason: "it does"}}}
	blockedExcused := Expectations{Deviations: []Expectation{{Requirement: "alloc-b", Reason: "it does"}}}
	interrupted := result("alloc-b", "x", unknown)
	interrupted.Reason = check.Interrupted
	for name, c := range map[string]struct {
		levels       map[spec.ID]spec.Level
		results      []check.Result
		expectations Expectations
		want         map[spec.ID]check.Verdict
		exit         int
	}{
		"all red": {results: []check.Result{result("alloc-a", "x", red), result("alloc-b", "x", red), result("alloc-c", "x", red)},
			want: map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": check.Blocked, "alloc-c": check.Blocked}, exit: 1},
		"through one that is met": {results: []check.Result{result("alloc-a", "x", red), result("alloc-b", "x", green), result("alloc-c", "x", red)},
			want: map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": green, "alloc-c": check.Blocked}, exit: 1},
		"unknown is blocked too": {results: []check.Result{result("alloc-a", "x", red), result("alloc-b", "x", unknown)},
			want: map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": check.Blocked}, exit: 1},
		"interrupted is not": {results: []check.Result{result("alloc-a", "x", red), interrupted},
			want: map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": unknown}, exit: 1},
		"unknown does not block": {results: []check.Result{result("alloc-a", "x", unknown), result("alloc-b", "x", red)},
			want: map[spec.ID]check.Verdict{"alloc-a": unknown, "alloc-b": red}, exit: 1},
		"a known deviation does not block": {expectations: excused, results: []check.Result{result("alloc-a", "x", red), result("alloc-b", "x", red)},
			want: map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": red}, exit: 1},
		"a known deviation is not blocked": {expectations: blockedExcused, results: []check.Result{result("alloc-a", "x", red), result("alloc-b", "x", red)},
			want: map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": red}, exit: 1},
		"a SHOULD does not block a MUST": {levels: map[spec.ID]spec.Level{"alloc-a": spec.Should, "alloc-b": spec.Must, "alloc-c": spec.Must},
			results: []check.Result{result("alloc-a", "x", red), result("alloc-b", "x", red)},
			want:    map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": red}, exit: 1},
		"a SHOULD blocks a SHOULD": {levels: map[spec.ID]spec.Level{"alloc-a": spec.Should, "alloc-b": spec.Should, "alloc-c": spec.Must},
			results: []check.Result{result("alloc-a", "x", red), result("alloc-b", "x", red), result("alloc-c", "x", green)},
			want:    map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": check.Blocked, "alloc-c": green}, exit: 0},
		"what is met elsewhere blocks only there": {results: []check.Result{on("10.0.0.0/24", result("alloc-a", "x", red)), on("10.0.0.0/20", result("alloc-a", "x", green)),
			on("10.0.0.0/20", result("alloc-b", "x", red))},
			want: map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": red}, exit: 1},
		"what was not decided on the range blocks there": {results: []check.Result{on("10.0.0.0/24", result("alloc-a", "x", red)), on("10.0.0.0/20", result("alloc-b", "x", red))},
			want: map[spec.ID]check.Verdict{"alloc-a": red, "alloc-b": check.Blocked}, exit: 1},
	} {
		levels := musts
		if c.levels != nil {
			levels = c.levels
		}
		r := build(catalogue(t, levels, chain), Run{Expectations: c.expectations}, c.results)
		if got := verdicts(r); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if r.ExitCode() != c.exit {
			t.Errorf("%s: exit code %d, want %d", name, r.ExitCode(), c.exit)
		}
	}
}

func TestACheckOfSeveralRequirementsIsBlockedInSomeOfThem(t *testing.T) {
	c := catalogue(t, map[spec.ID]spec.Level{"alloc-a": spec.Must, "alloc-b": spec.Must, "alloc-c": spec.Must}, "- {because: x, requirements: [alloc-b], upon: [alloc-a]}\n")
	both := result("alloc-b", "x", check.NonConformant)
	both.Requirements = []spec.ID{"alloc-b", "alloc-c"}
	r := build(c, Run{}, []check.Result{result("alloc-a", "x", check.NonConformant), both})
	if got := verdicts(r); got["alloc-b"] != check.Blocked || got["alloc-c"] != check.NonConformant {
		t.Errorf("verdicts %v", got)
	}
	x := &r.Checks[slices.IndexFunc(r.Checks, func(x CheckVerdict) bool { return len(x.Requirements) == 2 })]
	if x.Verdict != check.NonConformant || x.Violates("alloc-b") || !x.Violates("alloc-c") {
		t.Errorf("%+v", x)
	}
	// What the check did not come to, because of the first demand, goes back to the first too.
	both.Failure.Violated, both.Failure.Undecided = []spec.ID{"alloc-b"}, []spec.ID{"alloc-c"}
	r = build(c, Run{}, []check.Result{result("alloc-a", "x", check.NonConformant), both})
	if got := verdicts(r); got["alloc-c"] != check.Blocked || len(r.Roots) != 1 || r.Roots[0] != (Root{"alloc-a", 2}) {
		t.Errorf("verdicts %v, roots %v", got, r.Roots)
	}
}

func TestTheVerdictNamesTheRoots(t *testing.T) {
	levels := map[spec.ID]spec.Level{"alloc-a": spec.Must, "alloc-b": spec.Must, "alloc-c": spec.Must, "alloc-d": spec.Must}
	red := func(ids ...spec.ID) (results []check.Result) {
		for _, id := range ids {
			results = append(results, result(id, "x", check.NonConformant))
		}
		return results
	}
	for want, results := range map[string][]check.Result{
		"":                              {result("alloc-a", "x", check.Conformant)},
		"1 requirement is red: alloc-b": red("alloc-b"),
		"3 requirements are red; all go back to alloc-a":                         red("alloc-c", "alloc-b", "alloc-a"),
		"3 requirements are red; they go back to 2: alloc-b (blocks 1), alloc-d": red("alloc-c", "alloc-d", "alloc-b"),
		"2 requirements are red: alloc-a, alloc-d":                               red("alloc-a", "alloc-d"),
	} {
		r := build(catalogue(t, levels, chain), Run{}, results)
		if got := r.RootsLine(); got != want {
			t.Errorf("%q, want %q", got, want)
		}
		var text strings.Builder
		r.WriteSummary(&text, Palette{})
		if want != "" && !strings.Contains(text.String(), want+"\n") {
			t.Errorf("the summary does not say %q:\n%s", want, &text)
		}
	}
}

func TestABlockedCheckIsSkippedInJUnitAndSaysWhy(t *testing.T) {
	musts := map[spec.ID]spec.Level{"alloc-a": spec.Must, "alloc-b": spec.Must, "alloc-c": spec.Must}
	r := build(catalogue(t, musts, chain), Run{}, []check.Result{result("alloc-a", "x", check.NonConformant), result("alloc-c", "x", check.NonConformant)})
	xml, err := r.JUnit()
	if err != nil || !strings.Contains(string(xml), `<skipped message="blocked by alloc-a">`) || !strings.Contains(string(xml), `failures="1" errors="0" skipped="1"`) {
		t.Errorf("%v\n%s", err, xml)
	}
	data, err := json.Marshal(r)
	if err != nil || !strings.Contains(string(data), `"blockedBy":{"alloc-c":["alloc-a"]}`) || !strings.Contains(string(data), `"blockedBy":["alloc-a"]`) {
		t.Errorf("%v\n%s", err, data)
	}
	var text strings.Builder
	r.WriteReasons(&text, Palette{})
	if want := "blocked  1 check: by alloc-a\n"; text.String() != want {
		t.Errorf("%q, want %q", &text, want)
	}
	if c := r.Summary.Checks; c.NonConformant != 1 || c.Blocked != 1 || c.Conformant != 0 || c.Unknown != 0 {
		t.Errorf("counts %+v", c)
	}
	// A report that is read and merged is judged anew.
	var read Report
	if err := json.Unmarshal(data, &read); err != nil {
		t.Fatal(err)
	}
	for _, x := range read.Checks {
		if x.found().Verdict != check.NonConformant {
			t.Errorf("%s was found %s", x.Check, x.found().Verdict)
		}
	}
}

// Blocking tells roots from what follows from them. It never changes what a run says as a whole, and leaves a root to everything that it takes away.
func TestBlockingNeverMakesARunLookBetter(t *testing.T) {
	for seed := range uint64(1500) {
		rng := rand.New(rand.NewPCG(seed, 1))
		levels := map[spec.ID]spec.Level{}
		var ids []spec.ID
		for i := range 8 {
			id := spec.ID(fmt.Sprintf("alloc-r%d", i))
			if i > 0 && rng.IntN(2) == 0 {
				id += "g"
			}
			ids = append(ids, id)
			levels[id] = []spec.Level{spec.Must, spec.Must, spec.Should, spec.May}[rng.IntN(4)]
		}
		buildsOn := "- {because: x, requirements: ['*'], upon: [alloc-r0]}\n"
		for range rng.IntN(12) {
			a, b := rng.IntN(8), rng.IntN(8)
			if a == b {
				continue
			}
			buildsOn += fmt.Sprintf("- {because: x, requirements: [%s], upon: [%s]}\n", ids[max(a, b)], ids[min(a, b)])
		}
		var results []check.Result
		run := Run{}
		for i := range 12 {
			r := result(ids[rng.IntN(8)], fmt.Sprint("c", i), []check.Verdict{check.Conformant, check.NonConformant, check.NonConformant, check.Unknown, check.NotApplicable}[rng.IntN(5)])
			if other := ids[rng.IntN(8)]; other != r.Requirements[0] && rng.IntN(2) == 0 {
				r.Requirements = append(r.Requirements, other)
				if r.Failure != nil && rng.IntN(2) == 0 {
					r.Failure.Violated, r.Failure.Undecided = r.Requirements[:1], r.Requirements[1:]
				}
			}
			if r.Failure != nil {
				r.Failure.Uses = [][][]string{nil, {{"G"}}, {{"G"}, {}}, {{"F"}}, {{"F", "G"}}, {{"F"}, {"G"}}}[rng.IntN(6)]
			}
			r.Uses = [][]string{nil, {"F"}, {"G"}, {"F", "G"}}[rng.IntN(4)]
			r.ServiceCIDR = []string{"", "10.0.0.0/24", "10.0.0.0/20"}[rng.IntN(3)]
			results = append(results, r)
		}
		if rng.IntN(2) == 0 {
			run.Expectations.Deviations = []Expectation{{Requirement: ids[rng.IntN(8)], Reason: "it does"}}
		}
		plain, blocked := build(catalogue(t, levels, ""), run, results), build(catalogue(t, levels, buildsOn), run, results)
		if plain.ExitCode() != blocked.ExitCode() || plain.Verdict != blocked.Verdict {
			t.Fatalf("seed %d: %s becomes %s:\n%s%+v", seed, plain.Verdict, blocked.Verdict, buildsOn, results)
		}
		got := verdicts(blocked)
		for _, x := range blocked.Checks {
			for id, by := range x.BlockedBy {
				for _, root := range by {
					if got[root] != check.NonConformant {
						t.Fatalf("seed %d: %s is blocked by %s, which is %s", seed, id, root, got[root])
					}
				}
			}
			if x.Verdict == check.Blocked && x.KnownDeviation != nil {
				t.Fatalf("seed %d: a known deviation is blocked", seed)
			}
		}
		if n := blocked.Summary.Checks; n.Conformant != plain.Summary.Checks.Conformant {
			t.Fatalf("seed %d: %d conformant checks become %d", seed, plain.Summary.Checks.Conformant, n.Conformant)
		}
	}
}

// A check that ended at what builds on a requirement did not come to that requirement, which is blocked elsewhere. The
// two must not lead to each other for ever.
func TestWhatACheckDidNotComeToDoesNotGoBackToItself(t *testing.T) {
	c := catalogue(t, map[spec.ID]spec.Level{"alloc-a": spec.Must, "alloc-b": spec.Must, "alloc-x": spec.Must},
		"- {because: x, requirements: [alloc-b], upon: [alloc-a]}\n- {because: x, requirements: [alloc-a], upon: [alloc-x]}\n")
	both := on("10.0.0.0/20", result("alloc-b", "x", check.NonConformant))
	both.Requirements = []spec.ID{"alloc-b", "alloc-a"}
	both.Failure.Violated, both.Failure.Undecided = []spec.ID{"alloc-b"}, []spec.ID{"alloc-a"}
	r := build(c, Run{}, []check.Result{
		on("10.0.0.0/24", result("alloc-x", "x", check.NonConformant)), on("10.0.0.0/20", result("alloc-x", "x", check.Conformant)),
		on("10.0.0.0/24", result("alloc-a", "x", check.NonConformant)), both,
	})
	if line := r.RootsLine(); line != "3 requirements are red; all go back to alloc-x" {
		t.Errorf("%s\n%+v", line, r.Checks)
	}
}
