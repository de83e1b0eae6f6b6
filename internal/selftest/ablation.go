package selftest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// Ablation is what became of the suites on a reference that is without a feature.
type Ablation struct {
	// Without is what --without takes.
	Without string `json:"without"`
	// Unclaimed are the checks that were red or unknown although the feature was not claimed; there must be none.
	Unclaimed []string `json:"unclaimed,omitempty"`
	// NotApplicable is how many checks did not apply then, and NotJudged how many could not be decided.
	NotApplicable int `json:"notApplicable"`
	NotJudged     int `json:"notJudged"`
	// Own is how many checks of the feature were red, unknown or blocked where it was claimed all the same; there must
	// be some. Others are the checks of other features that were red or unknown then. The report does not lead them
	// back to another requirement, and they did not use the feature. There must be none. UsedBy are those that used it:
	// a requirement that the feature itself builds on is named as the root of what is missing then. Features of the
	// environment cannot be claimed without being there.
	Own     int      `json:"own"`
	Others  []string `json:"others,omitempty"`
	UsedBy  []string `json:"usedBy,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// ablationJobs judge the reference without one feature, which is not claimed and, where it can be, is claimed all the same.
func (s *session) ablationJobs(card *Card, without string) []*weighed {
	a := Ablation{Without: without}
	feature := strings.TrimPrefix(without, "proxy:")
	left := 1
	ended := func(look func(*report.Report)) func(*finding) {
		return func(f *finding) {
			if f.problem != "" {
				a.Problem = f.problem
			} else {
				look(f.report())
			}
			if left--; left == 0 {
				a.judge(absent.Claimable(feature))
				card.Ablations = append(card.Ablations, a)
				fmt.Fprintln(s.Out, a.line())
			}
		}
	}
	jobs := []*weighed{{
		job:   job{Label: "without " + without, Without: []string{without}, Features: spec.Default().FeaturesWithout(feature)},
		ended: ended(a.unclaimed),
	}}
	if absent.Claimable(feature) {
		left++
		jobs = append(jobs, &weighed{job: job{Label: "without " + without + ", which is claimed", Without: []string{without}}, ended: ended(func(r *report.Report) { a.claimed(r, feature) })})
	}
	for _, j := range jobs {
		s.weigh(j)
	}
	return jobs
}

// unclaimed enters what was found where the feature was not claimed.
func (a *Ablation) unclaimed(r *report.Report) {
	for _, c := range r.Checks {
		switch c.Verdict {
		case check.Conformant:
		case check.NotApplicable:
			a.NotApplicable++
		case check.NotJudged:
			a.NotJudged++
		default:
			a.Unclaimed = append(a.Unclaimed, c.DisplayName())
		}
	}
}

// claimed enters what was found where the feature was claimed.
func (a *Ablation) claimed(r *report.Report, feature string) {
	for _, c := range r.Checks {
		own := slices.ContainsFunc(c.Requirements, func(id spec.ID) bool { return spec.Default().Get(id).Feature == feature })
		switch bad := c.Verdict == check.NonConformant || c.Verdict == check.Unknown; {
		case (bad || c.Verdict == check.Blocked) && own:
			a.Own++
		case bad && !own && len(c.BlockedBy) == 0 && slices.Contains(c.Uses, feature):
			a.UsedBy = append(a.UsedBy, c.DisplayName())
		case bad && !own && len(c.BlockedBy) == 0:
			a.Others = append(a.Others, c.DisplayName())
		}
	}
}

// judge says what is wrong with the checks, if anything.
func (a *Ablation) judge(claimed bool) {
	switch {
	case a.Problem != "":
	case len(a.Unclaimed) > 0:
		a.Problem = "not claimed, and red or unknown: " + strings.Join(a.Unclaimed, "; ")
	case claimed && a.Own == 0:
		a.Problem = "claimed, and no check of it is red, unknown or blocked"
	case len(a.Others) > 0:
		a.Problem = "claimed, and other features are red or unknown: " + strings.Join(a.Others, "; ")
	}
}

// line says what became of the feature.
func (a *Ablation) line() string {
	if a.Problem != "" {
		return fmt.Sprintf("NOT ISOLATED  %-42s %s", a.Without, a.Problem)
	}
	return fmt.Sprintf("isolated      %-42s %d checks do not apply, %d are not judged", a.Without, a.NotApplicable, a.NotJudged)
}
