package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// NotApplying is a reason why requirements of one profile do not bind the candidate.
type NotApplying struct {
	Profile spec.Profile
	Why     string
	IDs     []spec.ID
}

// NotApplicableOf is how many requirements of a profile do not bind the candidate. The verdict on the profile says nothing about these.
// A report of before it was told apart from what was not judged has none.
func (r *Report) NotApplicableOf(profile spec.Profile) (n int) {
	if r.SchemaVersion < tellsNotJudged {
		return 0
	}
	for _, v := range r.Requirements {
		if v.Profile == profile && v.Verdict == check.NotApplicable {
			n++
		}
	}
	return n
}

// WhyNotApplicable are the reasons why requirements do not bind the candidate, of profiles of which others were judged. A profile may be conformant by few of its
// requirements. They are in the order of the profiles, the reason of most requirements first. A report of before it was told apart has none.
func (r *Report) WhyNotApplicable() (all []NotApplying) {
	for _, p := range r.Profiles {
		if p.Verdict == check.NotJudged || r.SchemaVersion < tellsNotJudged {
			continue
		}
		var of []NotApplying
		for _, v := range r.Requirements {
			if v.Profile != p.Profile || v.Verdict != check.NotApplicable {
				continue
			}
			why := r.whyNotApplicable(v.ID)
			at := slices.IndexFunc(of, func(x NotApplying) bool { return x.Why == why })
			if at < 0 {
				at = len(of)
				of = append(of, NotApplying{Profile: p.Profile, Why: why})
			}
			of[at].IDs = append(of[at].IDs, v.ID)
		}
		slices.SortStableFunc(of, func(a, b NotApplying) int { return len(b.IDs) - len(a.IDs) })
		all = append(all, of...)
	}
	return all
}

// whyNotApplicable is the reason of the first check of the requirement that does not apply.
func (r *Report) whyNotApplicable(id spec.ID) string {
	for i := range r.Checks {
		if c := &r.Checks[i]; c.Verdict == check.NotApplicable && slices.Contains(c.Requirements, id) {
			return c.Reason
		}
	}
	return ""
}

// listedNotApplicable bounds the list of reasons at the end of a run.
const listedNotApplicable = 8

// writeNotApplicable writes why requirements of profiles that were judged do not bind the candidate.
func (r *Report) writeNotApplicable(w io.Writer) {
	reasons := r.WhyNotApplicable()
	for _, n := range reasons[:min(len(reasons), listedNotApplicable)] {
		what := fmt.Sprintf("%d of profile %s", len(n.IDs), n.Profile)
		if len(n.IDs) == 1 {
			what = string(n.IDs[0])
		}
		fmt.Fprintf(w, "not applicable  %s: %s\n", what, oneLine(n.Why))
	}
	more := 0
	for _, n := range reasons[min(len(reasons), listedNotApplicable):] {
		more += len(n.IDs)
	}
	if more > 0 {
		fmt.Fprintf(w, "not applicable  %d requirements for other reasons: see %s\n", more, JSONFile)
	}
}
