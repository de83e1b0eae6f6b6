package report

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// shardsOf builds the reports of n shards of a run, as files would give them back; in says in which one each result is.
func shardsOf(t require, run Run, results []check.Result, n int, in func(check.Result) int) (shards []ShardReport) {
	for i := range n {
		mine := slices.DeleteFunc(slices.Clone(results), func(r check.Result) bool { return in(r) != i })
		part := run
		part.Planned = len(mine)
		selection := *run.Selection
		selection.Shard = &Shard{Shard: candidate.Shard{Index: i + 1, Of: n}, Checks: len(results)}
		selection.Arguments = append(slices.Clone(selection.Arguments), fmt.Sprintf("--shard=%d/%d", i+1, n), "--report-dir", fmt.Sprint("part-", i))
		part.Selection = &selection
		data, err := json.Marshal(Build(part, mine))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Decode(data)
		if err != nil {
			t.Fatal(err)
		}
		shards = append(shards, ShardReport{Path: fmt.Sprint("part-", i+1), Report: r})
	}
	return shards
}

// require is what testing.T and rapid.T have in common here.
type require interface {
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}

// randomRun is a run whose results block each other, and that has a list of known deviations.
func randomRun(t *rapid.T) (Run, []check.Result) {
	all := spec.Default().Requirements
	// Requirements that build on each other, so that some block others.
	var ids []spec.ID
	for range rapid.IntRange(1, 12).Draw(t, "requirements") {
		r := rapid.SampledFrom(all).Draw(t, "requirement")
		ids = append(ids, r.ID)
		if below := spec.Default().Foundations(r.ID); len(below) > 0 {
			ids = append(ids, rapid.SampledFrom(below).Draw(t, "foundation"))
		}
	}
	slices.Sort(ids)
	ids = slices.Compact(ids)
	var results []check.Result
	var deviations []Expectation
	for _, id := range ids {
		for k := range rapid.IntRange(1, 3).Draw(t, "checks") {
			v := rapid.SampledFrom([]check.Verdict{check.Conformant, check.Conformant, check.NonConformant, check.Unknown, check.NotApplicable}).Draw(t, "verdict")
			r := result(id, fmt.Sprint("check ", k), v)
			r.Suite, r.Seconds = "proxy", float64(rapid.IntRange(0, 9).Draw(t, "seconds"))
			r.Convergence = []check.Convergence{{What: "it", Seconds: r.Seconds / 7}}
			if other := rapid.SampledFrom(ids).Draw(t, "other"); other != id {
				r.Requirements = append(r.Requirements, other)
			}
			for _, cidr := range []string{"10.96.0.0/24", "10.96.0.0/16"}[:rapid.IntRange(0, 2).Draw(t, "ranges")] {
				ranged := r
				ranged.ServiceCIDR = cidr
				results = append(results, ranged)
			}
			if len(results) == 0 || results[len(results)-1].Check != r.Check {
				results = append(results, r)
			}
		}
		if rapid.Bool().Draw(t, "listed") {
			deviations = append(deviations, Expectation{Requirement: id, Reason: "r", Check: rapid.SampledFrom([]string{"", "*: check 1"}).Draw(t, "which"), Own: rapid.Bool().Draw(t, "own")})
		}
	}
	return Run{
		SuiteVersion: "v1", Started: time.Unix(1, 0), Duration: time.Second, Seed: 7, Planned: len(results), Expectations: Expectations{deviations},
		Candidate: candidate.Description{Implementation: "kubernetes", Version: "v1.37.1", Tier: "cluster", Capabilities: []spec.Capability{spec.SingleStack}},
		Selection: &Selection{Expectations: "published", Claimed: 9, Arguments: []string{"run"}},
	}, results
}

// TestMergedShardsAreTheReportOfOneRun demands byte for byte what one process would have written. Blocking, known
// deviations, expected failures that pass, profiles and exit code follow from all results together.
func TestMergedShardsAreTheReportOfOneRun(t *testing.T) {
	seen := map[string]bool{}
	rapid.Check(t, func(t *rapid.T) {
		run, results := randomRun(t)
		whole := Build(run, results)
		n := rapid.IntRange(1, 5).Draw(t, "n")
		choice := map[string]int{}
		shards := shardsOf(t, run, results, n, func(r check.Result) int {
			if _, before := choice[r.Check]; !before {
				choice[r.Check] = rapid.IntRange(0, n-1).Draw(t, "shard")
			}
			return choice[r.Check]
		})
		for _, s := range shards {
			if s.Verdict == check.Conformant || len(s.UnexpectedPasses) > 0 {
				t.Fatalf("a shard alone is %s, with expected failures that pass: %v", s.Verdict, s.UnexpectedPasses)
			}
		}
		rand.New(rand.NewPCG(1, uint64(len(results)))).Shuffle(n, func(i, k int) { shards[i], shards[k] = shards[k], shards[i] })
		merged, err := MergeShards(shards)
		if err != nil {
			t.Fatal(err)
		}
		got, want := asJSON(merged), asJSON(whole)
		if string(got) != string(want) || merged.ExitCode() != whole.ExitCode() {
			t.Fatalf("%s", difference(got, want))
		}
		seen[string(whole.Verdict)] = true
		if whole.Summary.Checks.Blocked > 0 {
			seen["blocked"] = true
		}
		if len(whole.UnexpectedPasses) > 0 {
			seen["passes"] = true
		}
	})
	for _, what := range []string{"blocked", "passes", string(check.NonConformant), string(Unlisted)} {
		if !seen[what] {
			t.Errorf("no run had %s: it showed nothing of that", what)
		}
	}
}

// TestShardsOfARunOnSeveralClusters has two clusters in each shard. A check of a fixed range, which one of the clusters has, and a deviation that one of them shows, are in
// different shards.
func TestShardsOfARunOnSeveralClusters(t *testing.T) {
	must := requirement(t, spec.Must)
	fixed := func(v check.Verdict) check.Result { return on("10.97.0.0/28", result(must, "fixed", v)) }
	clusters := map[string][]check.Result{
		"10.96.0.0/24": {fixed(check.NotApplicable), result(must, "a", check.Conformant), result(must, "b", check.NonConformant)},
		"10.97.0.0/28": {fixed(check.Conformant), result(must, "a", check.Conformant), result(must, "b", check.Conformant)},
	}
	run := Run{
		Started: time.Unix(1, 0), Duration: time.Second, Selection: &Selection{Expectations: "published"},
		Candidate:    candidate.Description{Implementation: "kubernetes", Tier: "kind", Capabilities: []spec.Capability{spec.SingleStack}},
		Expectations: Expectations{[]Expectation{{Requirement: must, Reason: "r"}}},
	}
	// ofClusters is the merged report of the clusters for the checks of the names.
	ofClusters := func(run Run, names ...string) *Report {
		var parts []Part
		for _, cidr := range []string{"10.96.0.0/24", "10.97.0.0/28"} {
			mine := slices.DeleteFunc(slices.Clone(clusters[cidr]), func(r check.Result) bool {
				return !slices.ContainsFunc(names, func(name string) bool { return strings.HasSuffix(r.Check, ": "+name) })
			})
			of := run
			of.Planned = len(mine)
			parts = append(parts, Part{cidr, Build(of, mine)})
		}
		return Merge(run, parts)
	}
	var shards []ShardReport
	for i, names := range [][]string{{"fixed", "a"}, {"b"}} {
		of := run
		of.Selection = &Selection{Expectations: "published", Shard: &Shard{Shard: candidate.Shard{Index: i + 1, Of: 2}, Checks: 3}}
		shards = append(shards, ShardReport{fmt.Sprint(i), ofClusters(of, names...)})
	}
	merged, err := MergeShards(shards)
	if err != nil {
		t.Fatal(err)
	}
	whole := ofClusters(run, "fixed", "a", "b")
	if got, want := asJSON(merged), asJSON(whole); string(got) != string(want) || len(merged.Checks) != 5 || merged.Verdict != check.Conformant {
		t.Errorf("%s, %d checks: %s", merged.Verdict, len(merged.Checks), difference(got, want))
	}
}

// threeShards are those of a run of three checks.
func threeShards(t *testing.T) []ShardReport {
	t.Helper()
	must := requirement(t, spec.Must)
	results := []check.Result{result(must, "0", check.Conformant), result(must, "1", check.Conformant), result(must, "2", check.Conformant)}
	run := Run{
		SuiteVersion: "v1", Started: time.Unix(1, 0), Duration: time.Second, Seed: 7, Expectations: Expectations{[]Expectation{{Requirement: must, Check: "*: none", Reason: "r"}}},
		Candidate: candidate.Description{
			Implementation: "kubernetes", Version: "v1.37.1", Tier: "cluster", Capabilities: []spec.Capability{spec.SingleStack},
			Admission: &candidate.Admission{Refused: map[string]string{"ExternalIPs": "services \"a\" is refused"}},
		},
		Selection: &Selection{Expectations: "published", Claimed: 9},
	}
	return shardsOf(t, run, results, 3, func(r check.Result) int { return int(r.Check[len(r.Check)-1] - '0') })
}

func TestShardsThatDoNotFitAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(s []ShardReport) []ShardReport
		want  string
	}{
		"missing":      {func(s []ShardReport) []ShardReport { return slices.Delete(s, 1, 2) }, "shard 2/3 is missing: 2 of 3 are there"},
		"missing last": {func(s []ShardReport) []ShardReport { return s[:2] }, "shard 3/3 is missing: 2 of 3 are there"},
		"doubled":      {func(s []ShardReport) []ShardReport { s[2] = ShardReport{"again", s[0].Report}; return s }, "part-1 and again are both of shard 1/3"},
		"whole":        {func(s []ShardReport) []ShardReport { s[1].Selection.Shard = nil; return s }, "part-2 is the report of a whole run: only those of shards are merged (run --shard)"},
		"no selection": {func(s []ShardReport) []ShardReport { s[1].Selection = nil; return s }, "part-2 is the report of a whole run"},
		"no shard":     {func(s []ShardReport) []ShardReport { s[1].Selection.Shard.Index = 4; return s }, "part-2 is of shard 4/3, which there is not"},
		"other number": {func(s []ShardReport) []ShardReport { s[1].Selection.Shard.Of = 4; return s }, "part-1 and part-2 are not of one run: shard 1/3 of 3 checks, and shard 2/4 of 3 checks"},
		"other checks": {func(s []ShardReport) []ShardReport { s[1].Selection.Shard.Checks = 4; return s }, "shard 1/3 of 3 checks, and shard 2/3 of 4 checks"},
		"interrupted":  {func(s []ShardReport) []ShardReport { s[1].Interrupted, s[1].NotRun = true, 4; return s }, "part-2 is partial, 4 checks were not judged: run shard 2/3 again"},
		"catalogue":    {func(s []ShardReport) []ShardReport { s[1].Catalogue = "sha256:0"; return s }, "part-2 was judged by another catalogue of requirements than that of this program: merge with the program of suite v1"},
		"nothing":      {func(s []ShardReport) []ShardReport { s[1].Candidate = candidate.Description{}; return s }, "part-2 judged nothing, for there was no cluster: run shard 2/3 again"},
		"suite":        {func(s []ShardReport) []ShardReport { s[1].SuiteVersion = "v2"; return s }, `part-1 and part-2 are not of one run: suiteVersion is "v1" there, and "v2" here`},
		"seed":         {func(s []ShardReport) []ShardReport { s[2].Seed = 8; return s }, `part-1 and part-3 are not of one run: seed is 7 there, and 8 here`},
		"version":      {func(s []ShardReport) []ShardReport { s[1].Candidate.Version = "v1.36.0"; return s }, `candidate.version is "v1.37.1" there, and "v1.36.0" here`},
		"capability":   {func(s []ShardReport) []ShardReport { s[1].Candidate.Capabilities = nil; return s }, `candidate.capabilities is ["single-stack"] there, and nothing here`},
		"refusal": {func(s []ShardReport) []ShardReport {
			s[1].Candidate.Admission = &candidate.Admission{}
			return s
		}, `candidate.admission is {"refused":{"ExternalIPs":""}} there, and {} here`},
		"flags":     {func(s []ShardReport) []ShardReport { s[1].Selection.Focus = []string{"alloc-*"}; return s }, `selection.focus is nothing there, and ["alloc-*"] here`},
		"slow":      {func(s []ShardReport) []ShardReport { s[1].Selection.Slow = true; return s }, `selection.slow is nothing there, and true here`},
		"list":      {func(s []ShardReport) []ShardReport { s[1].Expectations = nil; return s }, `expectations is [{`},
		"submitter": {func(s []ShardReport) []ShardReport { s[1].Submitter = &Submitter{Project: "p"}; return s }, `submitter is nothing there, and {`},
		"other program": {func(s []ShardReport) []ShardReport {
			s[1].Checks = append(s[1].Checks, s[0].Checks[0])
			return s
		}, "part-1 and part-2 are not of one run: both have check "},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := MergeShards(c.spoil(threeShards(t)))
			if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") || r != nil {
				t.Errorf("got %v\nwant %s", err, c.want)
			}
		})
	}
}

func TestWhatDiffersFromPlaceToPlaceKeepsNoShardsApart(t *testing.T) {
	s := threeShards(t)
	s[1].Candidate.Surroundings = []candidate.Surrounding{{Clients: "pods", Says: "silence"}}
	s[1].Candidate.Admission.Refused["ExternalIPs"] = "services \"b\" is refused"
	s[1].Selection.Arguments = []string{"run", "--kubeconfig", "elsewhere"}
	s[1].Started, s[2].Seconds = time.Unix(0, 0), 9
	s[1].Ended = []EndedProgram{{Program: "proxy-node-1", How: "exit status 1", Log: "logs/proxy-node-1.log"}}
	r, err := MergeShards(s)
	if err != nil {
		t.Fatal(err)
	}
	if !r.Started.Equal(time.Unix(0, 0)) || r.Seconds != 10 || r.Verdict != check.Unknown || r.Ended[0].Log != "logs/shard-2/proxy-node-1.log" || r.Interrupted {
		t.Errorf("began %s, took %v s, is %s, ended %+v", r.Started, r.Seconds, r.Verdict, r.Ended)
	}
	if s[1].Report.Ended[0].Log != "logs/proxy-node-1.log" {
		t.Error("the report of a shard was changed")
	}
}

// TestTheReportOfAShardSaysSo looks at the report of a shard alone. It is conformant in what was judged at best and
// follows the schema, and its faces name the shard.
func TestTheReportOfAShardSaysSo(t *testing.T) {
	s := threeShards(t)[1]
	if s.Verdict != InPart || s.ExitCode() != ExitConformant || !strings.HasSuffix(s.VerdictLine(), "; shard 2/3") {
		t.Errorf("verdict %s, exit code %d, %s", s.Verdict, s.ExitCode(), s.VerdictLine())
	}
	page, err := s.HTML()
	if err != nil || !strings.Contains(string(page), "2/3") {
		t.Errorf("the page does not name the shard: %v", err)
	}
	raw, err := os.ReadFile(filepath.Join("..", "..", "docs", "report.schema.json"))
	if err != nil {
		t.Fatal(err)
	}
	if problems := validateAgainst(t, raw, asJSON(s.Report)); len(problems) > 0 {
		t.Error(problems)
	}
}

func TestArgumentsOfTheWholeRun(t *testing.T) {
	for given, want := range map[string]string{
		"run --shard 1/3 --seed 7":                       "run --seed 7",
		"run --shard=index/3 --report-dir=/x --sonobuoy": "run --sonobuoy",
		"run --report-dir x --focus a":                   "run --focus a",
		"run --shard":                                    "run",
	} {
		if got := strings.Join(withoutShard(strings.Fields(given)), " "); got != want {
			t.Errorf("%s: %s, want %s", given, got, want)
		}
	}
}
