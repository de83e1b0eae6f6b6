package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
)

// Bounds of the list of failures: who wants more looks into the reports.
const (
	listedFailures = 20
	failureWidth   = 160
)

// WriteFailures lists what is non-conformant and no known deviation, one line for each check, and then the command that runs these checks again. again makes it
// of requirement IDs.
func (r *Report) WriteFailures(w io.Writer, p Palette, again func(ids []string) string) {
	var ids []string
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
		ids = addViolated(ids, c)
	}
	if n > listedFailures {
		fmt.Fprintf(w, "  and %d more: see the reports\n", n-listedFailures)
	}
	if len(ids) > 0 {
		fmt.Fprintf(w, "again: %s\n", again(ids))
	}
}

// addViolated adds the requirements that a check has found violated.
func addViolated(ids []string, c *CheckVerdict) []string {
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	for _, id := range c.Requirements {
		if c.VerdictOn(id) == check.NonConformant && !seen[string(id)] {
			ids = append(ids, string(id))
		}
	}
	return ids
}

// Line is what was expected and observed, in one line, and where it was demanded.
func (c *CheckVerdict) Line() string {
	if c.Failure == nil {
		return c.Reason
	}
	line := strings.Join(strings.Fields(matrixLine(c.Failure.Message)), " ")
	if runes := []rune(line); len(runes) > failureWidth {
		line = string(runes[:failureWidth]) + " …"
	}
	return line + " (" + c.Failure.Location + ")"
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
