package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// ofVerdicts is a report with nothing but verdicts.
func ofVerdicts(level spec.Level, of map[spec.ID]check.Verdict, known ...spec.ID) *Report {
	r := &Report{}
	for id, v := range of {
		r.Requirements = append(r.Requirements, RequirementVerdict{ID: id, Level: level, Verdict: v, KnownDeviation: slices.Contains(known, id)})
	}
	return r
}

func TestChangesBetweenReportsAreTold(t *testing.T) {
	good, bad, unknown, blocked, na := check.Conformant, check.NonConformant, check.Unknown, check.Blocked, check.NotApplicable
	for _, c := range []struct {
		old, now check.Verdict // "" where the report does not have the requirement
		kind     Kind          // "" for no change
		worse    bool          // for a MUST
	}{
		{good, good, "", false}, {bad, bad, "", false}, {"", good, New, false}, {"", bad, New, true}, {good, "", Gone, false},
		{good, bad, Regression, true}, {good, unknown, Regression, true}, {good, blocked, Regression, true}, {unknown, bad, Regression, true},
		{bad, good, Fix, false}, {bad, unknown, Fix, false}, {blocked, good, Fix, false},
		{na, good, New, false}, {na, bad, New, true}, {na, unknown, New, false}, {good, na, Gone, false}, {bad, na, Gone, false},
	} {
		of := func(v check.Verdict) map[spec.ID]check.Verdict {
			if v == "" {
				return nil
			}
			return map[spec.ID]check.Verdict{"a": v}
		}
		changes := Changes(ofVerdicts(spec.Must, of(c.old)), ofVerdicts(spec.Must, of(c.now)))
		kind := Kind("")
		if len(changes) == 1 {
			kind = changes[0].Kind
		}
		if kind != c.kind || Regressed(changes) != c.worse {
			t.Errorf("%q to %q: %v, regressed %v", c.old, c.now, changes, Regressed(changes))
		}
		if should := Changes(ofVerdicts(spec.Should, of(c.old)), ofVerdicts(spec.Should, of(c.now))); Regressed(should) != (kind == Regression) {
			t.Errorf("%q to %q of a SHOULD: regressed %v", c.old, c.now, Regressed(should))
		}
	}
	bads := map[spec.ID]check.Verdict{"a": bad}
	if changes := Changes(ofVerdicts(spec.Must, bads), ofVerdicts(spec.Must, bads, "a")); len(changes) != 1 || changes[0].Kind != Fix || changes[0].New != "known deviation" {
		t.Errorf("what a list excuses now: %v", changes)
	}
	if changes := Changes(ofVerdicts(spec.Must, bads, "a"), ofVerdicts(spec.Must, bads)); !Regressed(changes) {
		t.Errorf("what a list excuses no longer: %v", changes)
	}
}

func TestChangesAreInOrderAndCounted(t *testing.T) {
	old := ofVerdicts(spec.Must, map[spec.ID]check.Verdict{"a": check.Conformant, "b": check.NonConformant, "c": check.Conformant, "d": check.Conformant})
	now := ofVerdicts(spec.Must, map[spec.ID]check.Verdict{"a": check.NonConformant, "b": check.Conformant, "d": check.Unknown, "e": check.Conformant})
	changes := Changes(old, now)
	var said []string
	for _, c := range changes {
		said = append(said, fmt.Sprintf("%s %s", c.Kind, c.Requirement))
	}
	if got := strings.Join(said, ", "); got != "regression a, regression d, fix b, new e, gone c" {
		t.Errorf("the changes are %s", got)
	}
	if got := CountChanges(changes); got != "2 regressions, 1 fix, 1 new, 1 gone" {
		t.Errorf("counted: %s", got)
	}
}
