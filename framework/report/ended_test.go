package report

import (
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// TestEndedProgramsAndInterruptionsAreNoPass demands that each face of the report tells of a program that ended by
// itself, and of an interruption. All checks that gave a verdict are conformant.
func TestEndedProgramsAndInterruptionsAreNoPass(t *testing.T) {
	results := []check.Result{result(requirement(t, spec.Must), "a", check.Conformant)}
	for name, c := range map[string]struct {
		run  Run
		want string
	}{
		"ended":       {Run{Planned: 1, Ended: []EndedProgram{{Program: "proxy-node-1", How: "exit status 2", Log: "logs/proxy-node-1.log"}}}, "proxy-node-1"},
		"interrupted": {Run{Planned: 3, Interrupted: true}, "interrupted"},
		"neither":     {Run{Planned: 1}, ""},
	} {
		r := Build(c.run, results)
		junit, err := r.JUnit()
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		r.WriteSummary(&text, Palette{})
		if c.want == "" {
			if r.ExitCode() != ExitConformant || strings.Contains(string(junit), `name="run"`) {
				t.Errorf("%s: exit code %d\n%s", name, r.ExitCode(), junit)
			}
			continue
		}
		if r.Verdict != check.Unknown || r.ExitCode() != ExitUnknown {
			t.Errorf("%s: verdict %s, exit code %d", name, r.Verdict, r.ExitCode())
		}
		for where, said := range map[string]string{"text": text.String(), "JUnit": string(junit), "verdict": r.VerdictLine()} {
			if !strings.Contains(said, c.want) {
				t.Errorf("%s: %s says\n%s", name, where, said)
			}
		}
		if !strings.Contains(string(junit), `errors="1"`) {
			t.Errorf("%s: JUnit has no error:\n%s", name, junit)
		}
	}
}
