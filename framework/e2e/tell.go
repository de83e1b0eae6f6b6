package e2e

import (
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// teller is what an assessment tells its outcome to: a *testing.T.
type teller interface {
	Helper()
	Logf(format string, args ...any)
	Errorf(format string, args ...any)
	Skipf(format string, args ...any)
}

// tell tells what a check says of a requirement, on each Service range that it ran on.
func tell(t teller, r *report.Report, id spec.ID, name string) {
	t.Helper()
	results, judged := 0, false
	var skipped []string
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Check != name {
			continue
		}
		results++
		switch on := c.VerdictOn(id); on {
		case check.NotJudged, check.NotApplicable:
			if why := fmt.Sprintf("%s: %s", on, c.Line()); !slices.Contains(skipped, why) {
				skipped = append(skipped, why)
			}
		case check.Conformant:
			judged = true
		default:
			judged = true
			tellUnmet(t, c, id, on)
		}
	}
	for _, x := range r.UnexpectedPasses {
		if judged && x.Requirement == id && (x.Check == "" || spec.Glob(x.Check)(name)) {
			t.Errorf("this known deviation has gone, so correct the list: %s", x.Reason)
		}
	}
	switch {
	case results == 0 && r.Interrupted:
		t.Errorf("unknown: the run was interrupted before this check")
	case results == 0:
		t.Errorf("unknown: the run has no result of this check")
	case len(skipped) > 0 && judged:
		t.Logf("on another Service range %s", strings.Join(skipped, "\n"))
	case len(skipped) > 0:
		t.Skipf("%s", strings.Join(skipped, "\n"))
	}
}

// tellUnmet tells of a requirement that a check did not find met: its verdict on it is non-conformant, blocked or unknown.
func tellUnmet(t teller, c *report.CheckVerdict, id spec.ID, on check.Verdict) {
	t.Helper()
	level := spec.Default().Get(id).Level
	fail := t.Errorf
	if level != spec.Must {
		fail = t.Logf
	}
	switch {
	case on == check.NonConformant && c.KnownDeviation != nil:
		t.Logf("known deviation: %s: %s", c.DisplayName(), c.KnownDeviation.Reason)
	case on == check.NonConformant:
		var text strings.Builder
		(&report.Log{}).Write(&text, c)
		fail("not met (%s)\n%s", level, strings.TrimRight(text.String(), "\n"))
	case on == check.Blocked:
		fail("not decided (%s): %s: it builds on what is not met: %s", level, c.DisplayName(), joined(c.BlockedBy[id]))
	case c.Failure != nil:
		fail("not decided (%s): %s: the check ended before, at a demand that is not met: %s", level, c.DisplayName(), c.Line())
	case c.Reason == check.Interrupted:
		t.Errorf("unknown: %s: the run was interrupted", c.DisplayName())
	default:
		t.Errorf("unknown: %s: the environment is at fault, and nothing is said of the implementation: %s", c.DisplayName(), c.Reason)
	}
}

func joined(ids []spec.ID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = string(id)
	}
	return strings.Join(texts, ", ")
}
