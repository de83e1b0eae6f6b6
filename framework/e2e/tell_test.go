package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/e2e-framework/pkg/envconf"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// told notes what an assessment tells.
type told struct {
	text            strings.Builder
	failed, skipped bool
}

func (*told) Helper()                     {}
func (o *told) Logf(f string, a ...any)   { fmt.Fprintf(&o.text, f+"\n", a...) }
func (o *told) Errorf(f string, a ...any) { o.Logf(f, a...); o.failed = true }
func (o *told) Skipf(f string, a ...any)  { o.Logf(f, a...); o.skipped = true }
func (o *told) is(failed, skip bool) bool { return o.failed == failed && o.skipped == skip }

func TestAssessmentsTellEveryVerdict(t *testing.T) {
	const must, should, name = spec.APIPortNamesUnique, spec.AllocNodePortRandom, "the check"
	unmet := &check.Failure{Message: "expected 1, observed 2", Location: "a.go:1"}
	deviation := report.Expectations{Deviations: []report.Expectation{{Requirement: must, Reason: "it never did"}}}
	for about, c := range map[string]struct {
		id              spec.ID
		result          check.Result
		run             report.Run
		failed, skipped bool
		want            string
	}{
		"met":                 {id: must, result: check.Result{Verdict: check.Conformant}},
		"a MUST is not met":   {id: must, result: check.Result{Verdict: check.NonConformant, Failure: unmet}, failed: true, want: "expected 1, observed 2"},
		"a SHOULD is not met": {id: should, result: check.Result{Verdict: check.NonConformant, Failure: unmet}, want: "not met (SHOULD)"},
		"known deviation":     {id: must, result: check.Result{Verdict: check.NonConformant, Failure: unmet}, run: report.Run{Expectations: deviation}, want: "known deviation: the check: it never did"},
		"it has gone":         {id: must, result: check.Result{Verdict: check.Conformant}, run: report.Run{Expectations: deviation}, failed: true, want: "correct the list: it never did"},
		"not judged":          {id: must, result: check.Result{Verdict: check.NotJudged, Reason: "it takes long", JudgedBy: "--slow"}, skipped: true, want: "not judged: it takes long (judged by: --slow)"},
		"not applicable":      {id: must, result: check.Result{Verdict: check.NotApplicable, Reason: "not claimed"}, skipped: true, want: "not applicable: not claimed"},
		"unknown":             {id: must, result: check.Result{Verdict: check.Unknown, Reason: "connection refused"}, failed: true, want: "the environment is at fault, and nothing is said of the implementation: connection refused"},
		"interrupted":         {id: must, result: check.Result{Verdict: check.Unknown, Reason: check.Interrupted}, failed: true, want: "the run was interrupted"},
		"undecided":           {id: must, result: check.Result{Verdict: check.NonConformant, Requirements: []spec.ID{should}, Failure: &check.Failure{Message: "no", Violated: []spec.ID{should}, Undecided: []spec.ID{must}}}, failed: true, want: "the check ended before, at a demand that is not met: no"},
		"it did not run":      {id: must, result: check.Result{Check: "another", Verdict: check.Conformant}, failed: true, want: "the run has no result"},
		"it no longer ran":    {id: must, result: check.Result{Check: "another", Verdict: check.Conformant}, run: report.Run{Interrupted: true}, failed: true, want: "interrupted before this check"},
	} {
		t.Run(about, func(t *testing.T) {
			if c.result.Check == "" {
				c.result.Check = name
			}
			c.result.Requirements = append(c.result.Requirements, c.id)
			var o told
			tell(&o, report.Build(c.run, []check.Result{c.result}), c.id, name)
			if !o.is(c.failed, c.skipped) || !strings.Contains(o.text.String(), c.want) || c.want == "" && o.text.Len() > 0 {
				t.Errorf("failed %v, skipped %v, want %v, %v and %q:\n%s", o.failed, o.skipped, c.failed, c.skipped, c.want, &o.text)
			}
		})
	}
}

func TestAnAssessmentTellsWhatBlocksIt(t *testing.T) {
	id := spec.APIPortNamesUnique
	roots := spec.Default().Foundations(id)
	if len(roots) == 0 {
		t.Fatal("it builds on nothing")
	}
	unmet := &check.Failure{Message: "no", Location: "a.go:1"}
	r := report.Build(report.Run{}, []check.Result{
		{Check: "root", Requirements: []spec.ID{roots[0]}, Verdict: check.NonConformant, Failure: unmet},
		{Check: "above", Requirements: []spec.ID{id}, Verdict: check.NonConformant, Failure: unmet},
	})
	var o told
	if tell(&o, r, id, "above"); !o.is(true, false) || !strings.Contains(o.text.String(), "it builds on what is not met: "+string(roots[0])) {
		t.Errorf("failed %v, skipped %v:\n%s", o.failed, o.skipped, &o.text)
	}
}

// TestARangeThatIsNotJudgedIsToldBesideOneThatIs demands that a check that passes somewhere passes.
func TestARangeThatIsNotJudgedIsToldBesideOneThatIs(t *testing.T) {
	ids := []spec.ID{spec.APIPortNamesUnique}
	r := report.Build(report.Run{}, []check.Result{
		{Check: "c", ServiceCIDR: "10.96.0.0/24", Requirements: ids, Verdict: check.Conformant},
		{Check: "c", ServiceCIDR: "10.97.0.0/28", Requirements: ids, Verdict: check.NotJudged, Reason: "it is another one"},
	})
	var o told
	if tell(&o, r, ids[0], "c"); !o.is(false, false) || !strings.Contains(o.text.String(), "it is another one") {
		t.Errorf("failed %v, skipped %v:\n%s", o.failed, o.skipped, &o.text)
	}
}

func TestTheContextOfTheEnvironmentIsTaken(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "two")
	text := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1","certificate-authority":"ca.crt"}}],"contexts":[{"name":"one","context":{"cluster":"c"}},{"name":"two","context":{"cluster":"c"}}],"current-context":"one"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	config := envconf.NewWithKubeConfig(file)
	if got, err := kubeconfigOf(config, dir); err != nil || got != file {
		t.Errorf("%s, error %v", got, err)
	}
	got, err := kubeconfigOf(config.WithKubeContext("two"), dir)
	if err != nil {
		t.Fatal(err)
	}
	loaded, err := clientcmd.LoadFromFile(got)
	if err != nil || loaded.CurrentContext != "two" || loaded.Clusters["c"].CertificateAuthority != filepath.Join(dir, "ca.crt") {
		t.Errorf("%+v, error %v", loaded, err)
	}
	if _, err := kubeconfigOf(config.WithKubeContext("three"), dir); err == nil || !strings.Contains(err.Error(), `has no context "three"`) {
		t.Errorf("got %v", err)
	}
}
