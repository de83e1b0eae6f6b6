package candidate

import (
	"context"
	"slices"
)

// Residue is what was looked for when a run had ended, and what of it was left.
type Residue struct {
	// Looked are the kinds of things that were looked for, such as "namespaces" or "processes".
	Looked []string `json:"looked"`
	// Left names each thing that is left, by its kind first.
	Left []string `json:"left,omitempty"`
}

// And is what both looked for and found.
func (r Residue) And(other Residue) Residue {
	return Residue{Looked: slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Looked, other.Looked)))), Left: slices.Concat(r.Left, other.Left)}
}

// Accountable is what a Candidate implements that can tell what a run has left, in it and on this machine.
type Accountable interface {
	// CloseAndAccount closes the candidate, and tells what is left of the run with this value of RunLabel. The first error is that of Close.
	CloseAndAccount(ctx context.Context, run string) (Residue, error)
}
