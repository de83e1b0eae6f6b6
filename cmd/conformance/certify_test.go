package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/report/bundle"
	"github.com/service-conformance/conformance/framework/spec"
)

const claimOfTests = `organization: Example
project: reference
version: v0.1.0
url: https://example.com
contact: ["@example"]
`

// certifiedOnce is a folder with the bundle of the reference, which takes ten seconds to make.
var certifiedOnce = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "certified-")
	if err != nil {
		panic(err)
	}
	return dir
})

// certified returns the path of a bundle of the reference, in a folder of its own. Tests that claim the same get copies of one bundle.
func certified(t *testing.T, name string, more ...string) string {
	t.Helper()
	dir := t.TempDir()
	kept := filepath.Join(certifiedOnce(), fmt.Sprintf("%x", sha256.Sum256([]byte(strings.Join(more, "\n")))))
	if _, err := os.Stat(kept); err == nil {
		return copied(t, kept, filepath.Join(dir, name))
	}
	if err := os.WriteFile(filepath.Join(dir, "implementation.yaml"), []byte(claimOfTests+strings.Join(more, "\n")), 0o644); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := conformance(t, dir, "certify", "--implementation", "implementation.yaml", "--out", name)
	if code != report.ExitConformant || !strings.Contains(stdout, "bundle: "+name+".tar.gz\n") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	copied(t, filepath.Join(dir, name), kept)
	return filepath.Join(dir, name)
}

// copied copies a bundle, as a folder and as an archive.
func copied(t *testing.T, from, to string) string {
	t.Helper()
	err := os.CopyFS(to, os.DirFS(from))
	var archive []byte
	if err == nil {
		archive, err = os.ReadFile(from + ".tar.gz")
	}
	if err == nil {
		err = os.WriteFile(to+".tar.gz", archive, 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	return to
}

func TestABundleIsSoundAndSaysWhetherARepeatedRunSawTheSame(t *testing.T) {
	one, other := certified(t, "one"), certified(t, "other")
	dir := t.TempDir()
	stdout, stderr, code := conformance(t, dir, "report", "verify", one, one+".tar.gz", "--against", other)
	if code != report.ExitConformant || strings.Count(stdout, ": sound; reference ") != 2 {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	files, err := bundle.Open(other)
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Decode(files[report.JSONFile])
	if err != nil {
		t.Fatal(err)
	}
	failing(r, 3)
	writeBundle(t, other, rebuilt(t, files, r))
	stdout, _, code = conformance(t, dir, "report", "verify", one, "--against", other)
	if code != report.ExitNonConformant || !strings.Contains(stdout, "differs from "+other) || !strings.Contains(stdout, "is conformant and non-conformant") {
		t.Errorf("exit code %d\n%s", code, stdout)
	}
}

// TestAClaimOfOneSuiteIsJudgedByItAlone demands that what is not about an implementation is neither judged nor missing.
func TestAClaimOfOneSuiteIsJudgedByItAlone(t *testing.T) {
	one := certified(t, "one", "suites: [apischema]")
	stdout, stderr, code := conformance(t, t.TempDir(), "report", "verify", one)
	if code != report.ExitConformant || !strings.Contains(stdout, ": sound; ") || strings.Contains(stdout, "in part") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	files, err := bundle.Open(one)
	if err != nil {
		t.Fatal(err)
	}
	r, err := report.Decode(files[report.JSONFile])
	if err != nil {
		t.Fatal(err)
	}
	if r.Verdict != check.Conformant || slices.ContainsFunc(r.Checks, func(c report.CheckVerdict) bool { return c.Suite != "apischema" }) {
		t.Errorf("the verdict is %s, and checks of other suites ran", r.Verdict)
	}
}

// TestABundleOfAnotherCatalogueOrProgramIsVerifiedAsFarAsThisOneCan demands a note on what is left to the program that made it.
func TestABundleOfAnotherCatalogueOrProgramIsVerifiedAsFarAsThisOneCan(t *testing.T) {
	files, err := bundle.Open(certified(t, "one"))
	if err != nil {
		t.Fatal(err)
	}
	suite, err := suiteOfProgram()
	if err != nil {
		t.Fatal(err)
	}
	suite.Program = "sha256:another"
	if _, findings, notes := bundle.Verify(files, suite); len(findings) > 0 || len(notes) != 1 || !strings.Contains(notes[0], "rendered") {
		t.Errorf("findings %q, notes %q", findings, notes)
	}
}

// failing makes the i-th check of a report fail, and everything that follows from it.
func failing(r *report.Report, i int) {
	var results []check.Result
	for _, c := range r.Checks {
		results = append(results, c.Result)
	}
	results[i].Verdict, results[i].Evidence = check.NonConformant, nil
	results[i].Failure = &check.Failure{Message: "expected one thing, observed another", Location: "suites/x.go:1"}
	built := report.Build(report.Run{SuiteVersion: r.SuiteVersion, Candidate: r.Candidate, Started: r.Started, Seed: r.Seed, Planned: len(results), Selection: r.Selection, Submitter: r.Submitter}, results)
	built.Seconds = r.Seconds
	*r = *built
}

// rebuilt is the bundle with another report: its faces and its digests follow it, as those of somebody who has this program would.
func rebuilt(t *testing.T, files bundle.Files, r *report.Report) bundle.Files {
	t.Helper()
	changed := bundle.Files{}
	maps.Copy(changed, files)
	data, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	changed[report.JSONFile] = append(data, '\n')
	for _, face := range report.Faces {
		if len(r.Problems()) > 0 {
			break // a report that Decode refuses need not be one that can be rendered
		}
		if changed[face.File], err = face.Render(r); err != nil {
			t.Fatal(err)
		}
	}
	return summed(t, changed)
}

// summed is the bundle with digests that are right.
func summed(t *testing.T, files bundle.Files) bundle.Files {
	t.Helper()
	dir := t.TempDir()
	delete(files, bundle.SumsFile)
	writeBundle(t, dir, files)
	if err := bundle.Sum(dir); err != nil {
		t.Fatal(err)
	}
	again, err := bundle.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	return again
}

func writeBundle(t *testing.T, dir string, files bundle.Files) {
	t.Helper()
	for name, data := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestEveryTamperedBundleIsRejected(t *testing.T) {
	sound, err := bundle.Open(certified(t, "sound"))
	if err != nil {
		t.Fatal(err)
	}
	suite, err := suiteOfProgram()
	if err != nil {
		t.Fatal(err)
	}
	original := func() *report.Report {
		r, err := report.Decode(sound[report.JSONFile])
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	red := original()
	failing(red, 10)
	redBundle := rebuilt(t, sound, red)
	for name, files := range map[string]bundle.Files{"sound": sound, "sound, not conformant": redBundle} {
		if _, findings, _ := bundle.Verify(files, suite); len(findings) > 0 {
			t.Fatalf("%s: %q", name, findings)
		}
	}
	type variant struct {
		name  string
		files bundle.Files
	}
	var variants []variant
	add := func(name string, files bundle.Files) { variants = append(variants, variant{name, files}) }
	clone := func() bundle.Files {
		files := bundle.Files{}
		for name, data := range sound {
			files[name] = bytes.Clone(data)
		}
		return files
	}
	// Somebody changes files and leaves the digests.
	for name := range sound {
		files := clone()
		files[name][len(files[name])/2] ^= 1
		add("a bit of "+name, files)
		files = clone()
		delete(files, name)
		add("without "+name, files)
	}
	files := clone()
	files["notes.txt"] = []byte("trust me")
	add("a file without digest", files)
	// Somebody changes files and makes the digests anew.
	for _, name := range []string{report.JSONFile, bundle.ImplementationFile, bundle.ManifestFile} {
		files := clone()
		delete(files, name)
		add("without "+name+", summed", summed(t, files))
	}
	for _, face := range report.Faces {
		files := clone()
		files[face.File] = append(files[face.File], "<!-- better -->"...)
		add("another "+face.File, summed(t, files))
	}
	replaced := func(name, file, old, new string) {
		files := clone()
		if !bytes.Contains(files[file], []byte(old)) {
			t.Fatalf("%s: %s does not hold %q", name, file, old)
		}
		files[file] = bytes.Replace(files[file], []byte(old), []byte(new), 1)
		add(name, summed(t, files))
	}
	replaced("manifest of another catalogue", bundle.ManifestFile, spec.Digest(), "sha256:00")
	replaced("manifest of another suite", bundle.ManifestFile, "suite: ", "suite: v9.")
	replaced("manifest of a newer schema", bundle.ManifestFile, "schemaVersion: 1", "schemaVersion: 2")
	replaced("manifest with more", bundle.ManifestFile, "schemaVersion: 1", "schemaVersion: 1\nsurprise: 1")
	replaced("manifest without command", bundle.ManifestFile, "reproduce: ", "reproduce: \"\" #")
	replaced("claim of less", bundle.ImplementationFile, "organization:", "features: [VirtualIP]\norganization:")
	replaced("claim of another profile", bundle.ImplementationFile, "organization:", "profiles: [core]\norganization:")
	replaced("claim of somebody else", bundle.ImplementationFile, "Example", "Other")
	replaced("claim with another declaration", bundle.ImplementationFile, "organization:", "declarations: {hairpin: not-served}\norganization:")
	replaced("claim that is no YAML", bundle.ImplementationFile, "organization:", "\t{")
	replaced("truncated report", report.JSONFile, `"checks": [`, ``)
	replaced("report of a newer schema", report.JSONFile, `"schemaVersion": 2`, `"schemaVersion": 3`)
	replaced("report with an unknown field", report.JSONFile, `"schemaVersion": 2`, `"schemaVersion": 2, "surprise": true`)
	replaced("report with another verdict", report.JSONFile, `"verdict": "conformant"`, `"verdict": "non-conformant"`)
	// Somebody changes the report, and renders everything anew with this program.
	edited := func(name string, edit func(*report.Report)) {
		r := original()
		edit(r)
		add(name, rebuilt(t, sound, r))
	}
	edited("a check fewer", func(r *report.Report) { r.Checks = r.Checks[1:] })
	edited("a check fewer, counted", func(r *report.Report) {
		var results []check.Result
		for _, c := range r.Checks[1:] {
			results = append(results, c.Result)
		}
		*r = *report.Build(report.Run{SuiteVersion: r.SuiteVersion, Candidate: r.Candidate, Started: r.Started, Planned: len(results), Selection: r.Selection, Submitter: r.Submitter}, results)
	})
	edited("a requirement fewer", func(r *report.Report) { r.Requirements = r.Requirements[1:] })
	edited("a check twice", func(r *report.Report) { r.Checks = append(r.Checks, r.Checks[0]) })
	edited("a check of another name", func(r *report.Report) { r.Checks[0].Check += " well" })
	edited("a check of nothing", func(r *report.Report) { r.Checks[0].Requirements = nil })
	edited("a check of the future", func(r *report.Report) { r.Checks[0].Requirements = []spec.ID{"alloc-of-the-future"} })
	edited("a verdict that there is not", func(r *report.Report) { r.Checks[0].Verdict = "excellent" })
	edited("unknown without a reason", func(r *report.Report) { r.Checks[0].Verdict = check.Unknown })
	edited("conformant with a reason", func(r *report.Report) { r.Checks[0].Reason = "it was not judged" })
	edited("better counts", func(r *report.Report) { r.Summary.Requirements.Conformant++ })
	edited("better profiles", func(r *report.Report) { r.Profiles[0].Requirements.Conformant++ })
	edited("better times", func(r *report.Report) { r.TimeToConsistency.Max = 0.1 })
	edited("another level", func(r *report.Report) { r.Requirements[0].Level = spec.Should })
	edited("focused", func(r *report.Report) { r.Selection.Focus = []string{"alloc-*"} })
	edited("skipped", func(r *report.Report) { r.Selection.Skip = []string{"proxy-*"} })
	edited("claims one suite", func(r *report.Report) { r.Selection.ClaimedSuites = []string{"allocation"} })
	edited("one suite", func(r *report.Report) { r.Selection.Suites = []string{"allocation"} })
	edited("one shard", func(r *report.Report) { r.Selection.Shard = &report.Shard{Shard: candidate.Shard{Index: 1, Of: 2}} })
	edited("shortened", func(r *report.Report) { r.Selection.MaxWaitSeconds = 3 })
	edited("other expectations", func(r *report.Report) { r.Selection.Expectations = "mine.yaml" })
	edited("nothing selected", func(r *report.Report) { r.Selection = nil })
	edited("fewer features", func(r *report.Report) { r.Selection.Features = []string{"VirtualIP"} })
	edited("fewer profiles", func(r *report.Report) { r.Selection.Profiles = []spec.Profile{"core"} })
	edited("interrupted", func(r *report.Report) { r.Interrupted = true })
	edited("not all run", func(r *report.Report) { r.NotRun = 3 })
	edited("a program ended", func(r *report.Report) {
		r.Ended = []report.EndedProgram{{Program: "proxy-node-1", How: "exit status 2"}}
	})
	edited("faults", func(r *report.Report) { r.Candidate.Faults = []string{"lower-band-first"} })
	edited("another catalogue", func(r *report.Report) { r.Catalogue = "sha256:00" })
	edited("another submitter", func(r *report.Report) { r.Submitter.Organization = "Other" })
	edited("no submitter", func(r *report.Report) { r.Submitter = nil })
	edited("addresses of the lower band first", func(r *report.Report) {
		for i := range r.Checks {
			for _, e := range r.Checks[i].Evidence {
				if e.Addresses != nil && slices.Contains(r.Checks[i].Requirements, spec.AllocUpperBandFirst) {
					slices.Reverse(e.Addresses.Offsets)
				}
			}
		}
	})
	edited("an address twice", func(r *report.Report) {
		for i := range r.Checks {
			for _, e := range r.Checks[i].Evidence {
				if e.Addresses != nil && len(e.Addresses.Offsets) > 1 {
					e.Addresses.Offsets[0] = e.Addresses.Offsets[1]
				}
			}
		}
	})
	// Somebody hides a failure.
	hidden := func(name string, edit func(r *report.Report, c *report.CheckVerdict)) {
		r, err := report.Decode(redBundle[report.JSONFile])
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Checks, func(c report.CheckVerdict) bool { return c.Failure != nil })
		edit(r, &r.Checks[i])
		add(name, rebuilt(t, sound, r))
	}
	hidden("hidden: the verdict of the run", func(r *report.Report, _ *report.CheckVerdict) { r.Verdict = check.Conformant })
	hidden("hidden: the verdict of the check", func(_ *report.Report, c *report.CheckVerdict) { c.Verdict = check.Conformant })
	hidden("hidden: the failure", func(_ *report.Report, c *report.CheckVerdict) { c.Failure = nil })
	hidden("hidden: verdict and failure", func(_ *report.Report, c *report.CheckVerdict) { c.Verdict, c.Failure = check.Conformant, nil })
	hidden("hidden: not applicable", func(_ *report.Report, c *report.CheckVerdict) {
		c.Verdict, c.Failure, c.Reason = check.NotApplicable, nil, ""
	})
	hidden("hidden: blocked", func(_ *report.Report, c *report.CheckVerdict) {
		c.Verdict, c.BlockedBy = check.Blocked, map[spec.ID][]spec.ID{c.Requirements[0]: {"proxy-cluster-ip-reached"}}
	})
	hidden("hidden: an excuse of its own", func(r *report.Report, c *report.CheckVerdict) {
		excused(r, report.Expectation{Requirement: c.Requirements[0], Reason: "it is so"})
	})
	hidden("hidden: a published excuse for something else", func(r *report.Report, c *report.CheckVerdict) {
		c.KnownDeviation = &report.Expectation{Requirement: spec.ProxyAffinityTimeout, Reason: "r"}
	})
	hidden("hidden: the message", func(_ *report.Report, c *report.CheckVerdict) { c.Failure.Message = "" })

	if len(variants) < 70 {
		t.Errorf("only %d variants", len(variants))
	}
	for _, v := range variants {
		_, findings, _ := bundle.Verify(v.files, suite)
		if len(findings) == 0 {
			t.Errorf("%s: accepted", v.name)
		}
		for _, f := range findings {
			if strings.ContainsAny(f, "\n\x1b") {
				t.Errorf("%s: %q is not one line", v.name, f)
			}
		}
	}
}

// excused builds the report again with an expectation.
func excused(r *report.Report, x report.Expectation) {
	var results []check.Result
	for _, c := range r.Checks {
		results = append(results, c.Result)
	}
	*r = *report.Build(report.Run{
		SuiteVersion: r.SuiteVersion, Candidate: r.Candidate, Started: r.Started, Planned: len(results), Selection: r.Selection, Submitter: r.Submitter,
		Expectations: report.Expectations{Deviations: []report.Expectation{x}},
	}, results)
}

func TestBadArchivesAreRefused(t *testing.T) {
	archive := func(write func(*tar.Writer)) []byte {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		w := tar.NewWriter(z)
		write(w)
		w.Close()
		z.Close()
		return b.Bytes()
	}
	file := func(w *tar.Writer, name string, size int64, r io.Reader) {
		if err := w.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644, Size: size}); err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(w, r); err != nil {
			t.Fatal(err)
		}
	}
	one := func(name string) []byte {
		return archive(func(w *tar.Writer) { file(w, name, 1, strings.NewReader("x")) })
	}
	whole := one("b/report.json")
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"no archive":   {[]byte("hello"), "neither a folder nor a .tar.gz"},
		"truncated":    {whole[:len(whole)-20], "broken"},
		"leaves":       {one("../report.json"), "leaves the folder"},
		"leaves later": {one("b/../../report.json"), "leaves the folder"},
		"absolute":     {one("/etc/report.json"), "leaves the folder"},
		"no folder":    {one("report.json"), "not in the one folder"},
		"two folders": {archive(func(w *tar.Writer) {
			file(w, "a/x", 1, strings.NewReader("x"))
			file(w, "b/x", 1, strings.NewReader("x"))
		}), "not in the one folder"},
		"twice": {archive(func(w *tar.Writer) {
			file(w, "a/x", 1, strings.NewReader("x"))
			file(w, "a/x", 1, strings.NewReader("x"))
		}), "in it twice"},
		"a link": {archive(func(w *tar.Writer) {
			_ = w.WriteHeader(&tar.Header{Name: "a/x", Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"})
		}), "no ordinary file"},
		"a bomb": {archive(func(w *tar.Writer) { file(w, "a/x", 1<<30, io.LimitReader(zeros{}, 1<<30)) }), "larger than 64 MiB"},
		"many files": {archive(func(w *tar.Writer) {
			for i := range 2001 {
				file(w, fmt.Sprint("a/", i), 1, strings.NewReader("x"))
			}
		}), "more than 2000 files"},
		"escapes": {one("\x1b[2J"), "not in the one folder"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, "b.tar.gz"), c.data, 0o644); err != nil {
			t.Fatal(err)
		}
		stdout, stderr, code := conformance(t, dir, "report", "verify", "b.tar.gz")
		if code != report.ExitUsage || !strings.Contains(stderr, c.want) || strings.Count(stderr, "\n") != 1 || strings.Contains(stderr, "\x1b") || stdout != "" {
			t.Errorf("%s: exit code %d, %q %q, want %q", name, code, stdout, stderr, c.want)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }
