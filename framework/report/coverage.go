package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
)

// Covered is a report, under the name that a table of coverage gives it, such as "kind".
type Covered struct {
	Name string
	*Report
}

// CoverageMarkdown is a table of all checks by report: judged, or why not. A check is judged where a run on one of its ranges decided it.
// Reasons are numbered, those of most checks first.
func CoverageMarkdown(reports []Covered) string {
	var names []string                                   // of checks, in order
	cells := map[string][]coverage{}                     // by check, one for each report
	reasons, count := map[string]int{}, map[string]int{} // number of a reason, and how many cells have it
	for i, r := range reports {
		for k := range r.Checks {
			c := &r.Checks[k]
			row, there := cells[c.Check]
			if !there {
				names = append(names, c.Check)
				row = make([]coverage, len(reports))
				cells[c.Check] = row
			}
			row[i].add(c)
		}
	}
	slices.Sort(names)
	for _, name := range names {
		for _, cell := range cells[name] {
			if cell.because != "" {
				count[cell.because]++
			}
		}
	}
	var texts []string
	for text := range count {
		texts = append(texts, text)
	}
	slices.SortFunc(texts, func(a, b string) int {
		if count[a] != count[b] {
			return count[b] - count[a]
		}
		return strings.Compare(a, b)
	})
	for i, text := range texts {
		reasons[text] = i + 1
	}

	var out strings.Builder
	head, line := "| |", "|---|"
	for _, r := range reports {
		head += " " + r.Name + " |"
		line += "---:|"
	}
	sum := func(title string, n func(r *Covered, i int) int) {
		fmt.Fprintf(&out, "| %s |", title)
		for i := range reports {
			fmt.Fprintf(&out, " %d |", n(&reports[i], i))
		}
		out.WriteString("\n")
	}
	of := func(state string) func(*Covered, int) int {
		return func(_ *Covered, i int) (n int) {
			for _, name := range names {
				if cells[name][i].is == state {
					n++
				}
			}
			return n
		}
	}
	fmt.Fprintf(&out, "%s\n%s\n", head, line)
	sum("checks that are judged", of(wasJudged))
	sum("checks that are not judged", of(wasNotJudged))
	sum("checks that do not apply", of(doesNotBind))
	sum("checks that the run left out", of(""))
	sum("requirements that are judged", func(r *Covered, _ int) int { return r.Summary.Requirements.Decided() })
	sum("requirements that bind", func(r *Covered, _ int) int { return r.Summary.Requirements.Binding() })

	out.WriteString("\n## Reasons\n\nThe run could not decide a check with an open number. A check with a number in brackets does not apply.\n\n")
	for i, text := range texts {
		fmt.Fprintf(&out, "%d. %s\n", i+1, text)
	}
	fmt.Fprintf(&out, "\n## Checks\n\n%s\n|---|%s\n", strings.Replace(head, "| |", "| check |", 1), strings.Repeat("---|", len(reports)))
	for _, name := range names {
		fmt.Fprintf(&out, "| %s |", strings.ReplaceAll(name, "|", "\\|"))
		for _, cell := range cells[name] {
			switch cell.is {
			case wasJudged:
				out.WriteString(" judged |")
			case wasNotJudged:
				fmt.Fprintf(&out, " %d |", reasons[cell.because])
			case doesNotBind:
				fmt.Fprintf(&out, " (%d) |", reasons[cell.because])
			default:
				out.WriteString(" – |")
			}
		}
		out.WriteString("\n")
	}
	return out.String()
}

// What became of a check in a report.
const (
	wasJudged    = "judged"
	wasNotJudged = "not judged"
	doesNotBind  = "not bound"
)

// coverage is what became of the runs of one check in one report.
type coverage struct{ is, because string }

// add counts a run of the check: what was decided counts most, and what does not apply least.
func (c *coverage) add(v *CheckVerdict) {
	state, why := wasJudged, ""
	switch v.Verdict {
	case check.NotJudged:
		state, why = wasNotJudged, oneLine(v.Reason)+v.judgedBy()
	case check.NotApplicable:
		state, why = doesNotBind, oneLine(v.Reason)
	}
	if order := []string{"", doesNotBind, wasNotJudged, wasJudged}; slices.Index(order, state) > slices.Index(order, c.is) {
		c.is, c.because = state, why
	}
}
