package report

import (
	"fmt"
	"io"
	"slices"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Partial reports whether something that binds the candidate was left out or could not be judged, so that "conformant" would say too much. A report of before
// this was told is partial, for nobody knows.
func (r *Report) Partial() bool {
	return r.Selection != nil && r.Selection.Partial() || r.SchemaVersion < tellsNotJudged || r.mustsNotJudged() > 0
}

// Standing is the verdict as pages that compare reports show it. A report of before it was told what was not judged is at most conformant in part.
func (r *Report) Standing() check.Verdict {
	if r.Verdict == check.Conformant && r.SchemaVersion < tellsNotJudged {
		return InPart
	}
	return r.Verdict
}

// NotJudgedText is how many requirements bind the candidate and were not judged, or that the report does not tell.
func (r *Report) NotJudgedText() string {
	if r.SchemaVersion < tellsNotJudged {
		return "not told"
	}
	return fmt.Sprint(r.Summary.Requirements.NotJudged)
}

// mustsNotJudged counts the MUST requirements that bind the candidate and were not judged.
func (r *Report) mustsNotJudged() (n int) {
	for _, v := range r.Requirements {
		if v.Level == spec.Must && v.Verdict == check.NotJudged {
			n++
		}
	}
	return n
}

// unasked are the requirements that the selection left out, and that are about the version of the candidate.
func (r *Report) unasked(catalogue *spec.Catalogue) (ids []spec.ID) {
	if r.Selection == nil {
		return nil
	}
	for _, id := range r.Selection.Unasked {
		q := catalogue.Get(id)
		if q == nil || slices.ContainsFunc(r.Requirements, func(v RequirementVerdict) bool { return v.ID == id }) {
			continue
		}
		admits, err := spec.ParseVersions(q.Versions)
		if err == nil && admits(r.Candidate.Version) {
			ids = append(ids, id)
		}
	}
	return ids
}

// Unjudged is a requirement that binds the candidate and was not judged, with what would decide it.
type Unjudged struct {
	ID  spec.ID
	Why string
	By  string
}

// NotJudged are the requirements that bind the candidate and were not judged, by ID. Those that the selection left out are not among them.
func (r *Report) NotJudged() (all []Unjudged) {
	for _, v := range r.Requirements {
		if v.Verdict != check.NotJudged {
			continue
		}
		u := Unjudged{ID: v.ID}
		for i := range r.Checks {
			c := &r.Checks[i]
			if !slices.Contains(c.Requirements, v.ID) {
				continue
			}
			if c.Verdict == check.NotJudged {
				u.Why, u.By = c.Reason, c.JudgedBy
				break
			}
			if c.endedAtKnownDeviation() {
				u.Why = "its check ended before, at a known deviation: " + c.Check
			}
		}
		all = append(all, u)
	}
	return all
}

// Unjudging is a reason why requirements were not judged.
type Unjudging struct {
	Why string
	By  string
	IDs []spec.ID
}

// WhyNotJudged are the reasons why requirements were not judged, the one of most requirements first.
func (r *Report) WhyNotJudged() (all []Unjudging) {
	for _, u := range r.NotJudged() {
		at := slices.IndexFunc(all, func(x Unjudging) bool { return x.Why == u.Why && x.By == u.By })
		if at < 0 {
			at = len(all)
			all = append(all, Unjudging{Why: u.Why, By: u.By})
		}
		all[at].IDs = append(all[at].IDs, u.ID)
	}
	slices.SortStableFunc(all, func(a, b Unjudging) int { return len(b.IDs) - len(a.IDs) })
	return all
}

// judgedBy says what would decide the check, in brackets; it is empty where nothing is known that would.
func (c *CheckVerdict) judgedBy() string { return inBrackets(c.JudgedBy) }

func inBrackets(by string) string {
	if by == "" {
		return ""
	}
	return " (judged by: " + by + ")"
}

// listedUnjudged bounds the list of reasons at the end of a run.
const listedUnjudged = 8

// writeNotJudged writes why requirements were not judged, and what would decide them.
func (r *Report) writeNotJudged(w io.Writer) {
	if n := len(r.unasked(spec.Default())); n > 0 {
		fmt.Fprintf(w, "not judged  %d requirements: the selection left them out\n", n)
	}
	reasons := r.WhyNotJudged()
	for _, u := range reasons[:min(len(reasons), listedUnjudged)] {
		what := fmt.Sprintf("%d requirements", len(u.IDs))
		if len(u.IDs) == 1 {
			what = string(u.IDs[0])
		}
		fmt.Fprintf(w, "not judged  %s: %s%s\n", what, oneLine(u.Why), inBrackets(u.By))
	}
	more := 0
	for _, u := range reasons[min(len(reasons), listedUnjudged):] {
		more += len(u.IDs)
	}
	if more > 0 {
		fmt.Fprintf(w, "not judged  %d requirements for other reasons: see %s\n", more, JSONFile)
	}
}
