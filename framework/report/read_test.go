package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// judgedReport is a report in which something of everything is.
func judgedReport(t *testing.T) *Report {
	t.Helper()
	must := requirement(t, spec.Must)
	conformant := result(spec.AllocUpperBandFirst, "a", check.Conformant)
	conformant.Evidence = []check.Evidence{{Name: "addresses handed out", Value: "3", Addresses: &check.Addresses{ServiceCIDR: "10.96.0.0/24", Offsets: []int{40, 17, 3}}}}
	red := result(must, "b", check.NonConformant)
	red.Failure.Cases = []check.CaseSeen{{Clients: "pod a", To: []string{"10.96.0.7:80/TCP"}, Expected: "answered", Observed: "refused"}}
	traffic := result(spec.ProxyServiceAdded, "c", check.Conformant)
	traffic.Suite, traffic.Convergence = "proxy", []check.Convergence{{What: "the Service is created", Seconds: 0.3}}
	return Build(Run{
		SuiteVersion: "devel", Started: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Duration: time.Minute, Seed: 7, Planned: 5,
		Candidate: candidate.Description{Implementation: "example", Version: "v1.37.1", Tier: "lab", Capabilities: spec.Capabilities},
		Selection: &Selection{Expectations: "published", Claimed: 5},
	}, []check.Result{conformant, red, traffic, result(must, "d", check.Unknown), result(must, "e", check.NotApplicable)})
}

func TestOpenReadsWhatARunHasWritten(t *testing.T) {
	dir := t.TempDir()
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	wrote := judgedReport(t)
	if _, err := folder.Finish(wrote); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{dir, filepath.Join(dir, JSONFile)} {
		read, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		for _, face := range Faces {
			one, errOne := face.Render(wrote)
			other, errOther := face.Render(read)
			if errOne != nil || errOther != nil || !bytes.Equal(one, other) {
				t.Errorf("%s of the report that was read differs: %v %v", face.File, errOne, errOther)
			}
		}
	}
}

func TestOpenRefusesWhatIsNoReport(t *testing.T) {
	whole, err := json.Marshal(judgedReport(t))
	if err != nil {
		t.Fatal(err)
	}
	changed := func(old, new string) []byte {
		if !bytes.Contains(whole, []byte(old)) {
			t.Fatalf("the report does not hold %s", old)
		}
		return bytes.Replace(whole, []byte(old), []byte(new), 1)
	}
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"empty":              {nil, "no report, or a part of one"},
		"truncated":          {whole[:len(whole)/2], "no report, or a part of one"},
		"foreign":            {[]byte(`{"kind":"ConformanceReport"}`), "it has no schemaVersion"},
		"a list":             {[]byte(`[1]`), "no report"},
		"newer schema":       {changed(`"schemaVersion":2`, `"schemaVersion":9`), "schema version 9, this program knows 2: use the program of suite devel"},
		"no schema version":  {changed(`"schemaVersion":2`, `"schemaVersion":0`), "there is no schema version 0"},
		"unknown ID":         {changed(`"alloc-upper-band-first"]`, `"alloc-of-the-future"]`), `requirement "alloc-of-the-future", which this program does not know`},
		"another verdict":    {changed(`"verdict":"non-conformant","selection"`, `"verdict":"conformant","selection"`), "the verdict: not what follows from the checks"},
		"another summary":    {changed(`"unknown":1`, `"unknown":0`), "the summary: not what follows"},
		"a verdict too good": {changed(`"verdict":"non-conformant","failure"`, `"verdict":"conformant","failure"`), "does not follow from its failure"},
		"escapes":            {changed(`"suite":"allocation","check":"alloc-upper-band-first: a"`, `"suite":"allocation","check":"\u001b[2Jalloc-upper-band-first: a","reason":"x"`), "\uFFFD[2Jalloc"},
	} {
		path := filepath.Join(t.TempDir(), JSONFile)
		if err := os.WriteFile(path, c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		_, err := Open(path)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.ContainsAny(err.Error(), "\n\x1b") {
			t.Errorf("%s: %v, want %q in one line", name, err, c.want)
		}
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "holds no report.json") {
		t.Errorf("an empty folder: %v", err)
	}
	huge := filepath.Join(t.TempDir(), JSONFile)
	f, err := os.Create(huge)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(largestReport + 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := Open(huge); err == nil || !strings.Contains(err.Error(), "larger than 64 MiB") {
		t.Errorf("a report that is too large: %v", err)
	}
}

// A run that was killed leaves the results that it had: they make a report of an interrupted run.
func TestOpenMakesAReportOfPartialResults(t *testing.T) {
	dir := t.TempDir()
	folder, err := OpenFolder(dir)
	if err != nil {
		t.Fatal(err)
	}
	run := Run{SuiteVersion: "devel", Seed: 7, Planned: 4, Candidate: candidate.Description{Implementation: "example", Tier: "lab"}, Selection: &Selection{Expectations: "published"}}
	if err := folder.Begin(&run); err != nil {
		t.Fatal(err)
	}
	one, two := result(spec.AllocUnique, "x", check.Conformant), result(spec.AllocUnique, "y", check.Conformant)
	if err := folder.Add(&one); err != nil {
		t.Fatal(err)
	}
	if err := folder.Add(&two); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, partialFile))
	if err != nil {
		t.Fatal(err)
	}
	for cut, decided := range map[int]int{0: 2, 10: 1} {
		if err := os.WriteFile(filepath.Join(dir, partialFile), whole[:len(whole)-cut], 0o644); err != nil {
			t.Fatal(err)
		}
		r, err := Open(dir)
		if err != nil || !r.Interrupted || r.ExitCode() != ExitUnknown || len(r.Checks) != decided || r.NotRun != 4-decided || r.Candidate.Implementation != "example" {
			t.Errorf("cut by %d: %+v, %v", cut, r, err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, partialFile), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(dir); err == nil || !strings.Contains(err.Error(), "it ended before its first check") {
		t.Errorf("a file without a beginning: %v", err)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"schemaVersion":1,"checks":[{"check":"a: b","requirements":["alloc-unique"],"verdict":"conformant","evidence":[{"addresses":{"serviceCIDR":"10.96.0.0/24","offsets":[1,-1]}}]}]}`))
	f.Add([]byte(`{"schemaVersion":1,"verdict":"does"}`))
	f.Add([]byte(`{"schemaVersion":1,"verdict":"an invention","checks":[]}`))
	f.Add([]byte(`{"schemaVersion":1,"checks":[{"check":"a: b","requirements":["alloc-unique"],"verdict":"non-conformant","failure":{"message":"m","cases":[{"met":false}]}}]}`))
	f.Add([]byte(`{"schemaVersion":1,"checks":[{"check":"a: b","requirements":["alloc-unique"],"verdict":"conformant","evidence":[{"timeline":{"marks":[{"at":0,"what":"m"}],"lanes":[{"client":"c","to":"t","segments":[{"after":0,"from":1,"to":1e300,"answered":{"a":1}},{"after":0,"from":2,"to":3,"otherwise":{"dropped":1}}]}]}}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := Decode(data)
		if err != nil {
			return
		}
		for _, face := range Faces {
			if _, err := face.Render(r); err != nil {
				t.Errorf("%s: %v", face.File, err)
			}
		}
		if r.Shortly() == "" && r.Verdict != "" {
			t.Error("the verdict has no words")
		}
	})
}

// Text of a cluster is shown, never obeyed.
func TestFacesObeyNoTextOfTheCandidate(t *testing.T) {
	evil := "</pre><script>alert(1)</script>\x1b[2J|`<img src=x onerror=alert(1)>\"' onload=x"
	r := judgedReport(t)
	r.Candidate.Implementation, r.Candidate.Components = evil, map[string]string{"go": evil}
	r.Submitter = &Submitter{Organization: evil, Project: evil, Version: evil, URL: "javascript:alert(1)", Contact: []string{evil}}
	for i := range r.Checks {
		c := &r.Checks[i]
		c.Evidence = append(c.Evidence, check.Evidence{Name: evil, Value: evil, Timeline: &check.Timeline{
			Marks: []check.Mark{{What: evil}}, Lanes: []check.Lane{{Client: evil, To: evil, Segments: []check.Segment{{Answered: map[string]int{evil: 1}, Otherwise: map[string]int{evil: 1}}}}},
		}})
		if c.Failure != nil {
			c.Failure.Message, c.Failure.Reproduce = evil, []string{evil}
			c.Failure.Cases = []check.CaseSeen{{Clients: evil, To: []string{evil}, Expected: evil, Observed: evil}}
		}
		if c.Reason != "" {
			c.Reason = evil
		}
	}
	for _, face := range Faces {
		data, err := face.Render(r)
		if err != nil {
			t.Fatal(err)
		}
		text := string(data)
		if face.Name == "yaml" { // text there, and quoted
			if strings.Contains(text, "\x1b") {
				t.Error("report.yaml moves the cursor")
			}
			continue
		}
		for _, bad := range []string{"<script>alert", "<img", "\x1b", `href="javascript:`} {
			if strings.Contains(text, bad) {
				t.Errorf("%s holds %q", face.File, bad)
			}
		}
	}
}

func TestTheLargestReportFits(t *testing.T) {
	var results []check.Result
	for i := range 2000 {
		q := spec.Default().Requirements[i%len(spec.Default().Requirements)]
		r := result(q.ID, fmt.Sprintf("does what is demanded, as number %d of the checks says in words of the usual length", i), check.Conformant)
		r.Suite, r.Location = string(q.Area), "suites/proxy/affinity.go:141"
		r.Evidence = []check.Evidence{{Name: "controls", Value: "6 times a client reached a pod (app-1) at its own address and nobody at a closed port"}}
		results = append(results, r)
	}
	for i := range 100 { // more timelines than a run of all suites has, each with as much in it as a run keeps
		results[20*i].Evidence = append(results[20*i].Evidence, check.Evidence{Name: "who answered whom", Value: "v", Timeline: largestTimeline()})
	}
	r := Build(Run{Planned: 2000}, results)
	page, err := r.HTML()
	if err != nil || len(page) > 2<<20 {
		t.Errorf("the page has %d bytes, %v", len(page), err)
	}
	if n := bytes.Count(page, []byte(`class="timeline"`)); n == 0 || n > 20 || !bytes.Contains(page, []byte("timeline is in report.json")) {
		t.Errorf("%d timelines are drawn, or the page does not say that others are not", n)
	}
	for i := range results {
		results[i] = result(results[i].Requirements[0], fmt.Sprint("fails ", i), check.NonConformant)
		results[i].Failure.Message = strings.Repeat("a long line | with * everything < in it\n", 100)
	}
	text, err := Build(Run{Planned: 2000}, results).Markdown()
	if err != nil || len(text) > 64<<10 {
		t.Errorf("report.md has %d bytes, %v", len(text), err)
	}
	if !strings.Contains(string(text), "And ") {
		t.Error("report.md does not say that there is more")
	}
}

func BenchmarkHTML(b *testing.B) {
	var results []check.Result
	for i := range 2000 {
		q := spec.Default().Requirements[i%len(spec.Default().Requirements)]
		results = append(results, result(q.ID, fmt.Sprint("does what is demanded ", i), check.Conformant))
	}
	r := Build(Run{Planned: 2000}, results)
	for b.Loop() {
		if _, err := r.HTML(); err != nil {
			b.Fatal(err)
		}
	}
}
