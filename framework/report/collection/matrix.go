package collection

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// NotClaimed stands in a matrix where a report does not have the requirement.
const NotClaimed = "not claimed"

// Matrix is implementations by requirements.
type Matrix struct {
	// Reports are the columns.
	Reports []string `json:"reports"`
	// Requirements are the rows, in the order of their IDs.
	Requirements []Row `json:"requirements"`
	// Declarations are what the implementations say of themselves.
	Declarations []Declared `json:"declarations"`
}

// Row is a requirement with the verdict of each report, in words.
type Row struct {
	ID       spec.ID    `json:"id"`
	Level    spec.Level `json:"level"`
	Verdicts []string   `json:"verdicts"`
}

// Declared is a declaration with the value of each report; "" where it says nothing.
type Declared struct {
	Name   spec.Declarable `json:"name"`
	About  string          `json:"about"`
	Values []string        `json:"values"`
}

// Differs reports whether the reports that judged the requirement do not all find the same.
func (r Row) Differs() bool { return differ(r.Verdicts, NotClaimed, "not judged", "not applicable") }

// Differs reports whether the implementations that say something do not all say the same.
func (d Declared) Differs() bool { return differ(d.Values, "") }

// differ reports whether there are several values, those that say nothing left aside.
func differ(values []string, nothing ...string) bool {
	first := ""
	for _, v := range values {
		if slices.Contains(nothing, v) {
			continue
		}
		if first != "" && v != first {
			return true
		}
		first = v
	}
	return false
}

// Compare makes the matrix of reports.
func Compare(all []Entry) *Matrix {
	m := &Matrix{}
	rows, declared := map[spec.ID]*Row{}, map[spec.Declarable]*Declared{}
	for i := range all {
		m.Reports = append(m.Reports, all[i].Name())
		for _, v := range all[i].Report.Requirements {
			row := rows[v.ID]
			if row == nil {
				row = &Row{ID: v.ID, Level: v.Level, Verdicts: slices.Repeat([]string{NotClaimed}, len(all))}
				rows[v.ID] = row
			}
			row.Verdicts[i] = v.Words()
		}
		for name, value := range all[i].Report.Candidate.Declarations {
			d := declared[name]
			if d == nil {
				d = &Declared{Name: name, About: spec.About(name), Values: make([]string, len(all))}
				declared[name] = d
			}
			d.Values[i] = value
		}
	}
	for _, id := range slices.Sorted(maps.Keys(rows)) {
		m.Requirements = append(m.Requirements, *rows[id])
	}
	for _, name := range slices.Sorted(maps.Keys(declared)) {
		m.Declarations = append(m.Declarations, *declared[name])
	}
	return m
}

// signs are verdicts in one character.
var signs = map[string]string{"conformant": "+", "non-conformant": "X", "known deviation": "k", "blocked": "b", "unknown": "?", "not judged": "n", "not applicable": "-", NotClaimed: "."}

const legend = "+ conformant  X not met  k known deviation  b blocked  ? unknown  n not judged  - not applicable  . not claimed"

// WriteText writes the matrix for a terminal: a column for each report, and the rows on which they differ, or all.
func (m *Matrix) WriteText(w io.Writer, p report.Palette, all bool) {
	for i, name := range m.Reports {
		fmt.Fprintf(w, "%2d  %s\n", i+1, name)
	}
	colours := map[string]string{"X": p.Red, "b": p.Red, "?": p.Yellow, "k": p.Yellow, "+": p.Green}
	var head strings.Builder
	for i := range m.Reports {
		fmt.Fprintf(&head, "%3d", i+1)
	}
	fmt.Fprintf(w, "\n%s  requirement\n", head.String())
	shown := 0
	for _, row := range m.Requirements {
		if !all && !row.Differs() {
			continue
		}
		shown++
		for _, v := range row.Verdicts {
			sign := signs[v]
			fmt.Fprintf(w, "  %s%s%s", colours[sign], sign, p.Reset)
		}
		fmt.Fprintf(w, "  %s (%s)\n", row.ID, row.Level)
	}
	fmt.Fprintf(w, "%s\n%s\n", m.shownLine(shown), legend)
	for _, d := range m.Declarations {
		if !all && !d.Differs() {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", d.Name, d.About)
		for _, value := range d.values() {
			fmt.Fprintf(w, "    %s: %s\n", value, strings.Join(d.of(value, m.Reports), ", "))
		}
	}
}

// WriteMarkdown writes the matrix for a pull request or a step summary.
func (m *Matrix) WriteMarkdown(w io.Writer, all bool) {
	fmt.Fprintf(w, "| requirement | level | %s |\n|---|---|%s\n", strings.Join(m.Reports, " | "), strings.Repeat("---|", len(m.Reports)))
	shown := 0
	for _, row := range m.Requirements {
		if !all && !row.Differs() {
			continue
		}
		shown++
		fmt.Fprintf(w, "| `%s` | %s | %s |\n", row.ID, row.Level, strings.Join(row.Verdicts, " | "))
	}
	fmt.Fprintf(w, "\n%s.\n\n| declaration | value | implementations |\n|---|---|---|\n", m.shownLine(shown))
	for _, d := range m.Declarations {
		if !all && !d.Differs() {
			continue
		}
		for _, value := range d.values() {
			fmt.Fprintf(w, "| %s: %s | %s | %s |\n", d.Name, d.About, value, strings.Join(d.of(value, m.Reports), ", "))
		}
	}
}

func (m *Matrix) shownLine(shown int) string {
	if shown == len(m.Requirements) {
		return fmt.Sprintf("all %d requirements", shown)
	}
	return fmt.Sprintf("%d of %d requirements, on which the reports differ", shown, len(m.Requirements))
}

// values are the values that somebody declares.
func (d Declared) values() (all []string) {
	for _, v := range d.Values {
		if v != "" && !slices.Contains(all, v) {
			all = append(all, v)
		}
	}
	slices.Sort(all)
	return all
}

// of are the reports that declare the value.
func (d Declared) of(value string, reports []string) (names []string) {
	for i, v := range d.Values {
		if v == value {
			names = append(names, reports[i])
		}
	}
	return names
}
