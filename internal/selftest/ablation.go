package selftest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/spec"
)

// Ablation is what became of the suites on a reference that is without a feature.
type Ablation struct {
	// Without is what --without takes.
	Without string `json:"without"`
	// Unclaimed are the checks that were red or unknown although the feature was not claimed; there must be none.
	Unclaimed []string `json:"unclaimed,omitempty"`
	// NotApplicable is how many checks did not apply then.
	NotApplicable int `json:"notApplicable"`
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

// ablate judges the reference without one feature, which is not claimed, and then is.
func ablate(ctx context.Context, p program, without string) Ablation {
	a := Ablation{Without: without}
	feature := strings.TrimPrefix(without, "proxy:")
	unclaimed, err := p.judge(ctx, "without-"+without, "--without", without)
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	for _, c := range unclaimed.Checks {
		switch c.Verdict {
		case check.Conformant:
		case check.NotApplicable:
			a.NotApplicable++
		default:
			a.Unclaimed = append(a.Unclaimed, c.DisplayName())
		}
	}
	if !absent.Claimable(feature) {
		a.judge(false)
		return a
	}
	all := strings.Join(spec.Default().FeaturesWithout(), ",")
	claimed, err := p.judge(ctx, "claimed-"+without, "--without", without, "--feature", all)
	if err != nil {
		a.Problem = err.Error()
		return a
	}
	for _, c := range claimed.Checks {
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
	a.judge(true)
	return a
}

// judge says what is wrong with the checks, if anything.
func (a *Ablation) judge(claimed bool) {
	switch {
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
	return fmt.Sprintf("isolated      %-42s %d checks do not apply", a.Without, a.NotApplicable)
}
