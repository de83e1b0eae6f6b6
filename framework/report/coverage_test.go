package report

import (
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
)

func TestCoverageTellsWhatEachReportJudgedAndWhyNot(t *testing.T) {
	row := func(name string, v check.Verdict, why, by string) CheckVerdict {
		return CheckVerdict{Result: check.Result{Check: name, Verdict: v, Reason: why, JudgedBy: by}}
	}
	lab := &Report{Checks: []CheckVerdict{
		row("a: fills", check.Conformant, "", ""), row("b: asks", check.NonConformant, "", ""), row("c: waits", check.NotApplicable, "no feature", ""),
	}}
	kind := &Report{Checks: []CheckVerdict{
		row("a: fills", check.NotJudged, "too large", "--slow"), row("a: fills", check.Conformant, "", ""), row("b: asks", check.NotJudged, "no data plane", "--agent-image"),
	}}
	text := CoverageMarkdown([]Covered{{"lab", lab}, {"kind", kind}})
	for _, want := range []string{
		"| checks that are judged | 2 | 1 |", "| checks that are not judged | 0 | 1 |", "| checks that do not apply | 1 | 0 |", "| checks that the run left out | 0 | 1 |",
		"| a: fills | judged | judged |", "| b: asks | judged | 1 |", "| c: waits | (2) | – |", "1. no data plane (judged by: --agent-image)\n2. no feature\n",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	if strings.Contains(text, "too large") {
		t.Errorf("a check that was decided on one range is not counted as judged:\n%s", text)
	}
}
