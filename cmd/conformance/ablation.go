package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/spec"
)

// ablation is what became of the suites on a reference that is without a feature.
type ablation struct {
	// Without is what --without takes.
	Without string `json:"without"`
	// Unclaimed are the checks that were red or unknown although the feature was not claimed; there must be none.
	Unclaimed []string `json:"unclaimed,omitempty"`
	// NotApplicable is how many checks did not apply then.
	NotApplicable int `json:"notApplicable"`
	// Own is how many checks of the feature were red, unknown or blocked where it was claimed all the same; there must be some. Others are the checks of other features
	// that were red or unknown then, that the report does not lead back to another requirement, and that did not use the feature; there must be none. UsedBy are those that
	// used it: a requirement that the feature itself builds on is named as the root of what is missing then. Features of the environment cannot be claimed without being
	// there.
	Own     int      `json:"own"`
	Others  []string `json:"others,omitempty"`
	UsedBy  []string `json:"usedBy,omitempty"`
	Problem string   `json:"problem,omitempty"`
}

// ablations starts the reference without each optional feature.
func (f *selftestFlags) ablations(ctx context.Context, work string, out io.Writer) []ablation {
	names := f.without
	if len(names) == 0 && len(f.faults) == 0 {
		names = absent.Names()
	}
	found := make([]ablation, len(names))
	f.atATime(len(names), func(i int) {
		found[i] = ablate(ctx, work, names[i])
		if ctx.Err() == nil {
			found[i].print(out)
		}
	})
	return found
}

// ablate judges the reference without one feature, which is not claimed, and then is.
func ablate(ctx context.Context, work, without string) ablation {
	a := ablation{Without: without}
	feature := strings.TrimPrefix(without, "proxy:")
	unclaimed, err := runReference(ctx, work, "without-"+without, "--without", without)
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
	claimed, err := runReference(ctx, work, "claimed-"+without, "--without", without, "--feature", all)
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
func (a *ablation) judge(claimed bool) {
	switch {
	case len(a.Unclaimed) > 0:
		a.Problem = "not claimed, and red or unknown: " + strings.Join(a.Unclaimed, "; ")
	case claimed && a.Own == 0:
		a.Problem = "claimed, and no check of it is red, unknown or blocked"
	case len(a.Others) > 0:
		a.Problem = "claimed, and other features are red or unknown: " + strings.Join(a.Others, "; ")
	}
}

func (a *ablation) print(out io.Writer) {
	if a.Problem != "" {
		fmt.Fprintf(out, "NOT ISOLATED  %-42s %s\n", a.Without, a.Problem)
		return
	}
	fmt.Fprintf(out, "isolated      %-42s %d checks do not apply\n", a.Without, a.NotApplicable)
}
