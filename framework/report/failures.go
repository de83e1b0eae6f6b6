package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Bounds of the list of failures. The reports have more.
const (
	listedFailures = 20
	failureWidth   = 160
)

// WriteFailures lists what is non-conformant and no known deviation, one line for each check. The command that runs
// these checks again follows. again makes it of requirement IDs; nil leaves that line out.
func (r *Report) WriteFailures(w io.Writer, p Palette, again func(ids []string) string) {
	n := 0
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Verdict != check.NonConformant || c.KnownDeviation != nil {
			continue
		}
		if n++; n == 1 {
			fmt.Fprintf(w, "%snon-conformant:%s\n", p.Red, p.Reset)
		}
		if n <= listedFailures {
			fmt.Fprintf(w, "  %s\n      %s\n", c.DisplayName(), c.Line())
		}
	}
	if n > listedFailures {
		fmt.Fprintf(w, "  and %d more: see the reports\n", n-listedFailures)
	}
	if again != nil {
		r.WriteAgain(w, again)
	}
}

// WriteAgain writes the command that judges again what is not met and no known deviation, if there is something.
func (r *Report) WriteAgain(w io.Writer, again func(ids []string) string) {
	var ids []string
	for _, v := range r.Requirements {
		if v.Verdict == check.NonConformant && !v.KnownDeviation {
			ids = append(ids, string(v.ID))
		}
	}
	if len(ids) > 0 {
		fmt.Fprintf(w, "again: %s\n", again(ids))
	}
}

// BreaksMust reports whether the check found a MUST not met that is no known deviation: then the run cannot end well.
func (c *CheckVerdict) BreaksMust() bool {
	return c.KnownDeviation == nil && slices.ContainsFunc(c.Requirements, func(id spec.ID) bool {
		r := spec.Default().Get(id)
		return r != nil && r.Level == spec.Must && c.VerdictOn(id) == check.NonConformant
	})
}

// Line is what was expected and observed, in one line, and where it was demanded.
func (c *CheckVerdict) Line() string {
	if c.Failure == nil {
		return c.Reason + c.judgedBy()
	}
	return oneLine(matrixLine(c.Failure.Message)) + " (" + c.Failure.Location + ")"
}

// oneLine is a text in one line, cut where it is long.
func oneLine(text string) string {
	line := strings.Join(strings.Fields(text), " ")
	if runes := []rune(line); len(runes) > failureWidth {
		line = string(runes[:failureWidth]) + " …"
	}
	return line
}

// matrixLine leaves of a message with a matrix of cases the first that is not met.
func matrixLine(message string) string {
	lines := strings.Split(message, "\n")
	for i, l := range lines {
		if cells, unmet := strings.CutPrefix(strings.TrimSpace(l), "✗"); unmet {
			return strings.TrimSpace(lines[0]) + ": " + cells
		}
		if i > 0 && strings.TrimSpace(l) == "" {
			break
		}
	}
	return message
}
