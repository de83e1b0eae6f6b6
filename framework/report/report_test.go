package report

import (
	"bytes"
	"encoding/json"
	"encoding/xml"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// must is any requirement of level MUST, should any of level SHOULD.
func requirement(t *testing.T, level spec.Level) spec.ID {
	t.Helper()
	for _, r := range spec.Default().Requirements {
		if r.Level == level {
			return r.ID
		}
	}
	t.Fatalf("the catalogue has no requirement of level %s", level)
	return ""
}

func result(id spec.ID, name string, v check.Verdict) check.Result {
	r := check.Result{Suite: "allocation", Check: string(id) + ": " + name, Requirements: []spec.ID{id}, Verdict: v}
	switch v {
	case check.NonConformant:
		r.Failure = &check.Failure{Message: "expected a\nobserved \x00b", Location: "allocation/x.go:1", Reproduce: []string{"kubectl get"}}
	case check.Unknown, check.NotJudged, check.NotApplicable:
		r.Reason = "because"
	}
	return r
}

func TestExitCode(t *testing.T) {
	must, should := requirement(t, spec.Must), requirement(t, spec.Should)
	known := Expectations{Deviations: []Expectation{{Requirement: must, Check: "*: x*", Reason: "it does", Versions: ">=1.37"}}}
	inIPVS := Expectations{Deviations: []Expectation{{Requirement: must, Reason: "it does", ProxyMode: "ipvs"}}}
	seldom := Expectations{Deviations: []Expectation{{Requirement: must, Reason: "it may", Intermittent: true}}}
	expired := Expectations{Deviations: []Expectation{{Requirement: must, Reason: "it does", Expires: "2020-01-01"}}}
	for name, c := range map[string]struct {
		results      []check.Result
		expectations Expectations
		proxyMode    string
		planned      int
		want         int
	}{
		"deviation of this proxy mode":           {results: []check.Result{result(must, "a", check.NonConformant)}, expectations: inIPVS, proxyMode: "ipvs", want: 0},
		"all conformant":                         {results: []check.Result{result(must, "a", check.Conformant), result(must, "b", check.NotApplicable)}, want: 0},
		"one non-conformant":                     {results: []check.Result{result(must, "a", check.Conformant), result(must, "b", check.NonConformant), result(must, "c", check.Unknown)}, want: 1},
		"a SHOULD does not decide":               {results: []check.Result{result(must, "a", check.Conformant), result(should, "b", check.NonConformant)}, want: 0},
		"a SHOULD alone":                         {results: []check.Result{result(should, "b", check.Conformant), result(must, "a", check.NotApplicable)}, want: 0},
		"a SHOULD alone that is unknown":         {results: []check.Result{result(should, "b", check.Unknown)}, want: 2},
		"intermittent deviation that shows":      {results: []check.Result{result(must, "a", check.NonConformant)}, expectations: seldom, want: 0},
		"intermittent deviation that does not":   {results: []check.Result{result(must, "a", check.Conformant)}, expectations: seldom, want: 0},
		"unknown":                                {results: []check.Result{result(must, "a", check.Conformant), result(must, "b", check.Unknown)}, want: 2},
		"nothing decided":                        {results: []check.Result{result(must, "a", check.NotApplicable)}, want: 2},
		"nothing ran":                            {planned: 3, want: 2},
		"a result is missing":                    {results: []check.Result{result(must, "a", check.Conformant)}, planned: 2, want: 2},
		"known deviation":                        {results: []check.Result{result(must, "a", check.Conformant), result(must, "x1", check.NonConformant)}, expectations: known, want: 0},
		"deviation of another check":             {results: []check.Result{result(must, "y", check.NonConformant), result(must, "x", check.NonConformant)}, expectations: known, want: 1},
		"expected failure that passes":           {results: []check.Result{result(must, "x", check.Conformant)}, expectations: known, want: 1},
		"expected failure that does not apply":   {results: []check.Result{result(must, "a", check.Conformant), result(must, "x", check.NotApplicable)}, expectations: known, want: 0},
		"deviation of another proxy mode":        {results: []check.Result{result(must, "a", check.NonConformant)}, expectations: inIPVS, want: 1},
		"an expired expectation does not excuse": {results: []check.Result{result(must, "a", check.NonConformant)}, expectations: expired, want: 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := Build(Run{Candidate: candidate.Description{Version: "v1.37.1", ProxyMode: c.proxyMode}, Started: time.Now(), Planned: max(c.planned, len(c.results)), Expectations: c.expectations}, c.results)
			if got := r.ExitCode(); got != c.want {
				t.Errorf("exit code %d, want %d (verdict %s)", got, c.want, r.VerdictLine())
			}
		})
	}
}

func TestVerdictLineNamesWhatIsNotMetAndDecidesNothing(t *testing.T) {
	must, should, may := requirement(t, spec.Must), requirement(t, spec.Should), requirement(t, spec.May)
	results := []check.Result{
		result(must, "a", check.Conformant), result(should, "b", check.NonConformant), result(should, "c", check.NonConformant), result(may, "d", check.NonConformant),
	}
	if got, want := Build(Run{Planned: 4}, results).VerdictLine(), "conformant; not met besides: "+string(should)+" (SHOULD), "+string(may)+" (MAY)"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	results = results[:3]
	known := Expectations{Deviations: []Expectation{{Requirement: should, Reason: "it does"}}}
	if got, want := Build(Run{Planned: 3, Expectations: known}, results).VerdictLine(), "conformant but for 1 known deviation"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestReportIsDeterministic(t *testing.T) {
	must := requirement(t, spec.Must)
	results := []check.Result{
		result(must, "a", check.Conformant), result(must, "b", check.NonConformant), result(must, "c", check.Unknown), result(must, "d", check.NotApplicable),
	}
	var first []byte
	for range 5 {
		rand.Shuffle(len(results), func(i, j int) { results[i], results[j] = results[j], results[i] })
		data, err := json.Marshal(Build(Run{Planned: 4}, results))
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		} else if !bytes.Equal(first, data) {
			t.Fatalf("the order of results shows:\n%s\n%s", first, data)
		}
	}
}

func TestJUnitMapsVerdicts(t *testing.T) {
	must := requirement(t, spec.Must)
	known := Expectations{Deviations: []Expectation{{Requirement: must, Check: "*: e", Reason: "it does"}}}
	r := Build(Run{Planned: 5, Expectations: known, Started: time.Now()}, []check.Result{
		result(must, "a", check.Conformant), result(must, "b", check.NonConformant), result(must, "c", check.Unknown), result(must, "d", check.NotApplicable),
		result(must, "e", check.NonConformant),
	})
	data, err := r.JUnit()
	if err != nil {
		t.Fatal(err)
	}
	var suites junitSuites
	if err := xml.Unmarshal(data, &suites); err != nil {
		t.Fatalf("not XML: %v\n%s", err, data)
	}
	if suites.Tests != 5 || suites.Failures != 1 || suites.Errors != 1 || suites.Suites[0].Skipped != 2 {
		t.Errorf("counts: %+v", suites)
	}
	cases := suites.Suites[0].Cases
	if cases[1].Failure == nil || cases[1].Failure.Type != "non-conformant" || cases[2].Error == nil || cases[3].Skipped == nil || cases[3].Skipped.Message != "not applicable: because" {
		t.Errorf("verdicts are not mapped: %s", data)
	}
	if cases[4].Skipped == nil || cases[4].Skipped.Message != "known deviation: it does" {
		t.Errorf("a known deviation is not skipped with its reason: %s", data)
	}
}

func TestFolderKeepsResultsOfACrashAndReplacesThemWhenDone(t *testing.T) {
	dir := t.TempDir()
	f, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	must := requirement(t, spec.Must)
	one := result(must, "a", check.Conformant)
	if err := f.Add(&one); err != nil {
		t.Fatal(err)
	}
	partial, err := os.ReadFile(filepath.Join(dir, partialFile))
	if err != nil || !strings.Contains(string(partial), `"verdict":"conformant"`) {
		t.Fatalf("the result is not on disk: %s %v", partial, err)
	}
	if _, err := f.Finish(Build(Run{Planned: 1}, []check.Result{one})); err != nil {
		t.Fatal(err)
	}
	entries, _ := os.ReadDir(dir)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if strings.Join(names, " ") != strings.Join([]string{JUnitFile, HTMLFile, JSONFile, MarkdownFile, YAMLFile}, " ") {
		t.Errorf("files: %v", names)
	}
}

func TestOpenFolderRefusesWhatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := OpenFolder(file); err == nil || !strings.Contains(err.Error(), "--report-dir") {
		t.Errorf("got %v", err)
	}
}

func TestExpectationsAreValidated(t *testing.T) {
	must := string(requirement(t, spec.Must))
	for text, want := range map[string]string{
		"deviations: [{requirement: api-no-such-thing, reason: r}]":              "unknown requirement",
		"deviations: [{requirement: " + must + "}]":                              "a reason is required",
		"deviations: [{requirement: " + must + ", reason: r, versions: latest}]": "versions",
		"deviations: [{requirement: " + must + ", reason: r, expires: soon}]":    "not a date",
		"deviations: [{requirement: " + must + ", reason: r, waitsFor: a fix}]":  "expires must say",
		"deviation: []": "unknown field",
	} {
		if _, err := parseExpectations("f.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error with %q", text, err, want)
		}
	}
}

func TestFailingNamesTheChecksThatAreExpectedToFail(t *testing.T) {
	list, err := parseExpectations("f.yaml", []byte(`deviations:
- {requirement: alloc-unique, reason: r, check: "alloc-unique: * twice"}
- {requirement: alloc-dynamic-in-range, reason: r, versions: ">=1.33"}
- {requirement: alloc-upper-band-first, reason: r, proxyMode: ipvs}`))
	if err != nil {
		t.Fatal(err)
	}
	checks := []check.Declaration{
		{Name: "alloc-unique: is given twice", Requirements: []spec.ID{spec.AllocUnique}},
		{Name: "alloc-unique: is given once", Requirements: []spec.ID{spec.AllocUnique}},
		{Name: "alloc-ranges: are kept", Requirements: []spec.ID{spec.AllocUpperBandFirst, spec.AllocDynamicInRange}},
	}
	for _, c := range []struct {
		version, mode string
		want          []string
	}{
		{"v1.37.1", "iptables", []string{checks[0].Name, checks[2].Name}},
		{"v1.31.0", "iptables", []string{checks[0].Name}},
		{"v1.31.0", "ipvs", []string{checks[0].Name, checks[2].Name}},
	} {
		if got := list.Failing(checks, &candidate.Description{Version: c.version, ProxyMode: c.mode}); !slices.Equal(got, c.want) {
			t.Errorf("%s in mode %s: %q, want %q", c.version, c.mode, got, c.want)
		}
	}
}

func TestAFailureDecidesOnlyWhatItsDemandIsAbout(t *testing.T) {
	a, b, c := spec.AllocUnique, spec.AllocUpperBandFirst, spec.AllocDynamicInRange
	failed := check.Result{Check: "x", Requirements: []spec.ID{a, b, c}, Verdict: check.NonConformant,
		Failure: &check.Failure{Message: "m", Violated: []spec.ID{b}, Undecided: []spec.ID{c}}}
	r := Build(Run{Planned: 1}, []check.Result{failed})
	got := map[spec.ID]check.Verdict{}
	for _, v := range r.Requirements {
		got[v.ID] = v.Verdict
	}
	if got[a] != check.Conformant || got[b] != check.NonConformant || got[c] != check.Blocked {
		t.Errorf("verdicts %v", got)
	}
	about := func(id spec.ID) Expectations {
		return Expectations{Deviations: []Expectation{{Requirement: id, Reason: "r"}}}
	}
	if r := Build(Run{Planned: 1, Expectations: about(a)}, []check.Result{failed}); r.ExitCode() != ExitNonConformant {
		t.Errorf("an expectation about another requirement excused the failure: %s", r.VerdictLine())
	}
	if r := Build(Run{Planned: 1, Expectations: about(b)}, []check.Result{failed}); r.Verdict != InPart || r.Summary.Requirements.NotJudged != 1 {
		t.Errorf("what the check did not come to is not judged, not %s", r.VerdictLine())
	}
}

func TestPublishedExpectationsAreDeviationsInTheCatalogue(t *testing.T) {
	if err := CheckPublished(); err != nil {
		t.Error(err)
	}
	published, err := PublishedExpectations(&candidate.Description{Implementation: "kubernetes", DataPlane: candidate.Implementation{Name: "kube-proxy"}})
	if err != nil || len(published.Deviations) == 0 {
		t.Fatalf("%d published expectations, %v", len(published.Deviations), err)
	}
	for _, x := range published.Deviations {
		if len(spec.Default().Get(x.Requirement).Deviations) == 0 {
			t.Errorf("%s: the list expects a failure that the catalogue does not show", x.Requirement)
		}
	}
}

// TestExpectationsOfEachPart: the author of another proxy keeps the known deviations of the API server, and none of kube-proxy's.
func TestExpectationsOfEachPart(t *testing.T) {
	count := func(controlPlane, dataPlane string) (ofControlPlane, ofDataPlane int) {
		published, err := PublishedExpectations(&candidate.Description{Implementation: controlPlane, DataPlane: candidate.Implementation{Name: dataPlane}})
		if err != nil {
			t.Fatal(err)
		}
		for _, x := range published.Deviations {
			if spec.Default().Get(x.Requirement).Part() == spec.DataPlanePart {
				ofDataPlane++
			} else {
				ofControlPlane++
			}
		}
		return ofControlPlane, ofDataPlane
	}
	if c, d := count("kubernetes", "my-proxy"); c == 0 || d != 0 {
		t.Errorf("another proxy beside Kubernetes: %d and %d deviations", c, d)
	}
	if c, d := count("my-api", "kube-proxy"); c != 0 || d == 0 {
		t.Errorf("kube-proxy beside another API server: %d and %d deviations", c, d)
	}
	if c, d := count("kubernetes", ""); c == 0 || d != 0 {
		t.Errorf("a proxy that is not known: %d and %d deviations", c, d)
	}
}

// Dashboards read JUnit, pipelines the exit code: they must not differ.
func TestJUnitIsRedExactlyIfTheExitCodeSaysSo(t *testing.T) {
	var ids []spec.ID
	for _, r := range spec.Default().Requirements {
		if (r.Level == spec.Must || r.Level == spec.Should) && len(ids) < 60 {
			ids = append(ids, r.ID)
		}
	}
	verdicts := []check.Verdict{check.Conformant, check.Conformant, check.Conformant, check.NonConformant, check.Unknown, check.NotApplicable}
	codes := map[int]int{}
	for seed := range uint64(3000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var results []check.Result
		run := Run{Planned: random.IntN(6), Interrupted: random.IntN(12) == 0}
		if random.IntN(20) == 0 {
			run.Ended = []EndedProgram{{Program: "proxy-node-1", How: "exit status 2"}}
		}
		for i := range random.IntN(5) {
			verdict := verdicts[random.IntN(len(verdicts))]
			r := result(ids[random.IntN(len(ids))], string(rune('a'+i)), verdict)
			if also := ids[random.IntN(len(ids))]; random.IntN(3) == 0 && also != r.Requirements[0] {
				r.Requirements = append(r.Requirements, also)
				if r.Failure != nil {
					r.Failure.Violated = r.Requirements[random.IntN(2):][:1]
					if random.IntN(2) == 0 {
						r.Failure.Undecided = slices.DeleteFunc(slices.Clone(r.Requirements), func(id spec.ID) bool { return id == r.Failure.Violated[0] })
					}
				}
			}
			if random.IntN(3) == 0 {
				run.Expectations.Deviations = append(run.Expectations.Deviations, Expectation{Requirement: r.Requirements[0], Reason: "it does", Own: random.IntN(2) == 0})
			}
			results = append(results, r)
		}
		report := Build(run, results)
		data, err := report.JUnit()
		if err != nil {
			t.Fatal(err)
		}
		var suites junitSuites
		if err := xml.Unmarshal(data, &suites); err != nil {
			t.Fatal(err)
		}
		code := report.ExitCode()
		codes[code]++
		if red := suites.Failures+suites.Errors > 0; red != (code != ExitConformant) {
			t.Fatalf("seed %d: exit code %d (%s), JUnit\n%s", seed, code, report.VerdictLine(), data)
		}
	}
	if len(codes) != 3 {
		t.Errorf("exit codes seen: %v", codes)
	}
}
