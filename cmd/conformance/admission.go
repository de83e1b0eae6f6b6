package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
)

// admitted is a candidate of which it is known what its admission does to Services.
type admitted struct {
	candidate.Candidate
	admission *candidate.Admission
}

// Describe implements candidate.Candidate.
func (a admitted) Describe() candidate.Description {
	what := a.Candidate.Describe()
	what.Admission = a.admission
	return what
}

// askAdmission finds out what the admission of a candidate does to Services, where somebody may have configured it, and says it. Where that cannot be found out, checks
// meet it by themselves.
//
// A feature that is not claimed, and that the API server takes all the same, is told as a remark: nothing of it is judged.
func askAdmission(ctx context.Context, out io.Writer, c candidate.Candidate, claims func(feature string) bool) candidate.Candidate {
	what := c.Describe()
	if what.Admission == nil {
		return c
	}
	found, accepted, err := check.FindAdmission(ctx, c, !slices.ContainsFunc(check.Declarations(), func(d check.Declaration) bool { return d.Runs > 0 && !d.Traffic }))
	if err != nil {
		fmt.Fprintf(out, "what admission does to Services could not be found out: %v\n", err)
	}
	for _, line := range found.Lines() {
		fmt.Fprintln(out, line)
	}
	for _, feature := range accepted {
		if !claims(feature) {
			fmt.Fprintf(out, "remark: the API server accepts Services with the feature %s, which is not claimed\n", feature)
		}
	}
	return admitted{c, found}
}
