package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Covered is a report, under the name that a table of coverage gives it, such as "kind".
type Covered struct {
	Name string
	*Report
}

// CoverageMarkdown is a table of all checks by report: judged, or why not. A check is judged where a run on one of its ranges decided it.
// Reasons are numbered, those of most checks first. Reports of one name are one column, such as those of several suites.
func CoverageMarkdown(reports []Covered) string {
	var columns []string
	for _, r := range reports {
		if !slices.Contains(columns, r.Name) {
			columns = append(columns, r.Name)
		}
	}
	var names []string                                   // of checks, in order
	cells := map[string][]coverage{}                     // by check, one for each report
	reasons, count := map[string]int{}, map[string]int{} // number of a reason, and how many cells have it
	for _, r := range reports {
		i := slices.Index(columns, r.Name)
		for k := range r.Checks {
			c := &r.Checks[k]
			row, there := cells[c.Check]
			if !there {
				names = append(names, c.Check)
				row = make([]coverage, len(columns))
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
	for _, name := range columns {
		head += " " + name + " |"
		line += "---:|"
	}
	fmt.Fprintf(&out, "%s\n%s\n", head, line)
	for _, state := range []struct{ is, title string }{
		{wasJudged, "checks that are judged"}, {wasNotJudged, "checks that are not judged"}, {doesNotBind, "checks that do not apply"}, {"", "checks that the run left out"},
	} {
		fmt.Fprintf(&out, "| %s |", state.title)
		for i := range columns {
			n := 0
			for _, name := range names {
				if cells[name][i].is == state.is {
					n++
				}
			}
			fmt.Fprintf(&out, " %d |", n)
		}
		out.WriteString("\n")
	}
	out.WriteString("| requirements that are judged |")
	for _, name := range columns {
		decided := map[spec.ID]bool{}
		for _, r := range reports {
			for _, v := range r.Requirements {
				if r.Name == name && (v.Verdict == check.Conformant || v.Verdict == check.NonConformant) {
					decided[v.ID] = true
				}
			}
		}
		fmt.Fprintf(&out, " %d |", len(decided))
	}
	out.WriteString("\n")

	out.WriteString("\n## Reasons\n\nThe run could not decide a check with an open number. A check with a number in brackets does not apply.\n\n")
	for i, text := range texts {
		fmt.Fprintf(&out, "%d. %s\n", i+1, text)
	}
	fmt.Fprintf(&out, "\n## Checks\n\n%s\n|---|%s\n", strings.Replace(head, "| |", "| check |", 1), strings.Repeat("---|", len(columns)))
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
