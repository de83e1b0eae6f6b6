package report

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
)

// Log writes verdicts as they come: the first failures in full, the others in two lines, and a reason that many checks have only once. What is blocked is left to
// WriteReasons: which requirement is at the root is known at the end. For use by one goroutine.
type Log struct {
	Palette  Palette
	failures int
	told     map[string]bool // by reason
}

// failuresInFull is how many failures a run tells in full while it goes on. A developer who changes one thing at a time
// reads the first.
const failuresInFull = 10

// Write writes what there is to say of a check that is not conformant: nothing for a reason that was told before.
func (l *Log) Write(w io.Writer, c *CheckVerdict) {
	p := l.Palette
	switch {
	case c.Verdict == check.NonConformant && c.KnownDeviation != nil:
		fmt.Fprintf(w, "%sknown deviation%s  %s\n", p.Yellow, p.Reset, c.DisplayName())
		fmt.Fprint(w, indented(c.KnownDeviation.Reason))
	case c.Verdict == check.NonConformant:
		fmt.Fprintf(w, "%snon-conformant%s  %s\n", p.Red, p.Reset, c.DisplayName())
		if l.failures++; l.failures > failuresInFull {
			fmt.Fprint(w, indented(c.Line()))
			return
		}
		fmt.Fprint(w, indented(failureText(c)))
	case c.Verdict == check.Unknown && !l.told[kindOf(c.Reason)]:
		if l.told == nil {
			l.told = map[string]bool{}
		}
		l.told[kindOf(c.Reason)] = true
		fmt.Fprintf(w, "%sunknown%s  %s\n%s", p.Yellow, p.Reset, c.DisplayName(), indented(c.Reason))
	}
}

// Postpone writes that a check is unknown so far, for this reason. It runs once more at the end of the run.
func (l *Log) Postpone(w io.Writer, name, reason string) {
	fmt.Fprintf(w, "%spostponed%s  %s\n%s", l.Palette.Yellow, l.Palette.Reset, name, indented(oneLine("unknown so far: "+reason)))
}

// kindOf is what reasons have in common that differ by numbers and by names of pods only.
func kindOf(reason string) string { return digits.ReplaceAllString(reason, "0") }

var digits = regexp.MustCompile(`[0-9]+`)

// listedReasons is how many reasons a summary lists.
const listedReasons = 10

// WriteReasons writes why checks are unknown and what blocks others, with the number of checks, the most frequent reason first.
func (r *Report) WriteReasons(w io.Writer, p Palette) {
	for _, verdict := range []check.Verdict{check.Unknown, check.Blocked} {
		var groups []group
		for i := range r.Checks {
			c := &r.Checks[i]
			if c.Verdict != verdict {
				continue
			}
			reason := c.Reason
			if verdict == check.Blocked {
				reason = blockedText(c)
			}
			if k := slices.IndexFunc(groups, func(g group) bool { return kindOf(g.reason) == kindOf(reason) }); k >= 0 {
				groups[k].checks++
			} else {
				groups = append(groups, group{reason, 1})
			}
		}
		slices.SortStableFunc(groups, func(a, b group) int { return b.checks - a.checks })
		for i, g := range groups {
			if i == listedReasons {
				fmt.Fprintf(w, "%s%s%s  for %d more reasons: see the reports\n", p.Yellow, verdict, p.Reset, len(groups)-i)
				break
			}
			fmt.Fprintf(w, "%s%s%s  %s: %s\n", p.Yellow, verdict, p.Reset, counted(g.checks, "check"), strings.TrimPrefix(oneLine(g.reason), "blocked "))
		}
	}
}

// group is the checks that have one reason.
type group struct {
	reason string
	checks int
}

// counted is a number of things: "1 check", "2 checks".
func counted(n int, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%d %ss", n, thing)
}

// indented puts a text below a heading.
func indented(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n    ") + "\n"
}
