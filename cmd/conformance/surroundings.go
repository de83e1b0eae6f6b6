package main

import (
	"context"
	"fmt"
	"io"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
)

// surrounded is a candidate of which it is known what the network around it does with addresses that nobody has.
type surrounded struct {
	candidate.Candidate
	surroundings []candidate.Surrounding
}

// Describe implements candidate.Candidate.
func (s surrounded) Describe() candidate.Description {
	what := s.Candidate.Describe()
	what.Surroundings = s.surroundings
	return what
}

// askSurroundings finds out what the network around a cluster does with addresses that nobody has, and says it. Some networks answer for every address: where a verdict
// would hang on that, the check is unknown.
func askSurroundings(ctx context.Context, out io.Writer, c candidate.Candidate) candidate.Candidate {
	found, err := check.FindSurroundings(ctx, c)
	switch {
	case candidate.IsUnavailable(err):
		return c
	case err != nil:
		fmt.Fprintf(out, "what the network does with addresses that nobody has could not be found out: %v\n", err)
		return c
	}
	fmt.Fprintf(out, "addresses that nobody has: %s\n", candidate.SurroundingsText(found))
	return surrounded{c, found}
}
