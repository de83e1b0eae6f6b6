package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// failureText is everything that a person needs to understand and repeat a failure.
func failureText(c *CheckVerdict) string {
	var b strings.Builder
	b.WriteString(strings.TrimSpace(c.Failure.Message) + "\n")
	for _, id := range c.Requirements {
		if r := spec.Default().Get(id); r != nil && c.VerdictOn(id) == check.NonConformant {
			fmt.Fprintf(&b, "requirement %s (%s): %s\n", id, r.Level, r.Statement)
		}
	}
	if x := c.KnownDeviation; x != nil {
		fmt.Fprintf(&b, "known deviation: %s\n", x.Reason)
		if x.Source != "" {
			fmt.Fprintf(&b, "source: %s\n", x.Source)
		}
	}
	fmt.Fprintf(&b, "demanded at %s\n", c.Failure.Location)
	if len(c.Failure.Reproduce) > 0 {
		b.WriteString("last requests:\n")
		for _, command := range c.Failure.Reproduce {
			b.WriteString("  " + command + "\n")
		}
	}
	return b.String()
}

// Palette colours words on a terminal; the zero Palette leaves them plain.
type Palette struct{ Red, Yellow, Green, Dim, Reset string }

// Colours is the palette of a terminal.
var Colours = Palette{Red: "\x1b[31m", Yellow: "\x1b[33m", Green: "\x1b[32m", Dim: "\x1b[2m", Reset: "\x1b[0m"}

// listedEnded bounds the list of programs that ended by themselves.
const listedEnded = 5

// listedResidue bounds the list of what a run has left.
const listedResidue = 5

// shortList joins the first of the words, and says how many more there are.
func shortList(words []string, most int) string {
	text := strings.Join(words[:min(len(words), most)], ", ")
	if n := len(words) - most; n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// ResidueLine says in one line what is left of the run; empty where nobody looked.
func (r *Report) ResidueLine() string {
	switch {
	case r.Residue == nil:
		return ""
	case len(r.Residue.Left) == 0:
		return "none (" + strings.Join(r.Residue.Looked, ", ") + ")"
	}
	return shortList(r.Residue.Left, listedResidue)
}

// WriteSummary writes what a person wants to know at the end.
func (r *Report) WriteSummary(w io.Writer, p Palette) {
	row := func(what string, c Counts) {
		known := ""
		if c.KnownDeviations > 0 {
			known = fmt.Sprintf(" (%d known)", c.KnownDeviations)
		}
		if c.Blocked > 0 {
			known += fmt.Sprintf("  %3d blocked", c.Blocked)
		}
		fmt.Fprintf(w, "%-13s %5d conformant  %3d non-conformant%s  %3d unknown  %3d not judged  %3d not applicable\n", what, c.Conformant, c.NonConformant, known, c.Unknown, c.NotJudged, c.NotApplicable)
	}
	row("requirements", r.Summary.Requirements)
	row("checks", r.Summary.Checks)
	r.writeProfiles(w)
	r.writeNotJudged(w)
	r.writeNotApplicable(w)
	if t := r.TimeToConsistency; t != nil {
		fmt.Fprintf(w, "time to consistency of %d changes: p50 %.2f s, p99 %.2f s, max %.2f s\n", t.Changes, t.P50, t.P99, t.Max)
	}
	for _, x := range r.UnexpectedPasses {
		fmt.Fprintf(w, "%sexpected to fail, but passed%s  %s: %s\n", p.Red, p.Reset, x.Requirement, x.Reason)
	}
	for _, e := range r.Ended[:min(len(r.Ended), listedEnded)] {
		fmt.Fprintf(w, "%sended by itself%s  %s: %s\n    its log is kept beside the report: %s\n", p.Red, p.Reset, e.Program, e.How, e.Log)
	}
	if n := len(r.Ended) - listedEnded; n > 0 {
		fmt.Fprintf(w, "and %d more programs ended by themselves: see report.json\n", n)
	}
	if r.Residue != nil && len(r.Residue.Left) > 0 {
		fmt.Fprintf(w, "%sleft behind%s  %s\n", p.Yellow, p.Reset, r.ResidueLine())
	}
	if r.NotRun > 0 {
		fmt.Fprintf(w, "%d checks did not run\n", r.NotRun)
	}
	if line := r.RootsLine(); line != "" {
		fmt.Fprintln(w, line)
	}
	colour := map[int]string{ExitConformant: p.Green, ExitNonConformant: p.Red}[r.ExitCode()]
	if colour == "" {
		colour = p.Yellow
	}
	fmt.Fprintf(w, "verdict: %s%s%s   %.1f s, seed %d\n", colour, r.VerdictLine(), p.Reset, r.Seconds, r.Seed)
}
