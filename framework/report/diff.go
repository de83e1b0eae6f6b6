package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/framework/words"
)

// Kind says what a change of a verdict means.
type Kind string

// The kinds. Regressions come first.
const (
	Regression Kind = "regression" // it was better, or excused
	Fix        Kind = "fix"        // it is better
	New        Kind = "new"        // it was not judged
	Gone       Kind = "gone"       // it is not judged any more
)

// absent stands for the verdict on a requirement that a report does not have.
const absent = "not in the report"

// Change is a requirement on which two reports have different verdicts.
type Change struct {
	Requirement spec.ID    `json:"requirement"`
	Level       spec.Level `json:"level"`
	Kind        Kind       `json:"kind"`
	// Old and New are the verdicts in words: "known deviation" where a list excuses what is not met.
	Old string `json:"old"`
	New string `json:"new"`
	// Why is what the new report says of it.
	Why string `json:"why,omitempty"`
}

// Changes are the requirements whose verdicts differ, regressions first, by ID.
func Changes(old, now *Report) (all []Change) {
	was, is := old.ByID(), now.ByID()
	for id, o := range was {
		n, there := is[id]
		if !there {
			all = append(all, Change{Requirement: id, Level: o.Level, Kind: Gone, Old: o.Words(), New: absent})
			continue
		}
		if o.Words() == n.Words() {
			continue
		}
		c := Change{Requirement: id, Level: n.Level, Kind: Fix, Old: o.Words(), New: n.Words(), Why: now.Why(id, n.Verdict)}
		switch {
		case o.unjudged():
			c.Kind = New
		case n.unjudged():
			c.Kind = Gone
		case n.rank() > o.rank():
			c.Kind = Regression
		}
		all = append(all, c)
	}
	for id, n := range is {
		if _, there := was[id]; !there {
			all = append(all, Change{Requirement: id, Level: n.Level, Kind: New, Old: absent, New: n.Words(), Why: now.Why(id, n.Verdict)})
		}
	}
	order := []Kind{Regression, Fix, New, Gone}
	slices.SortFunc(all, func(a, b Change) int {
		return cmp.Or(cmp.Compare(slices.Index(order, a.Kind), slices.Index(order, b.Kind)), cmp.Compare(a.Requirement, b.Requirement))
	})
	return all
}

// ByID are the verdicts by requirement.
func (r *Report) ByID() map[spec.ID]RequirementVerdict {
	all := map[spec.ID]RequirementVerdict{}
	for _, v := range r.Requirements {
		all[v.ID] = v
	}
	return all
}

// Words are the verdict in words: "known deviation" where a list excuses what is not met.
func (v RequirementVerdict) Words() string {
	_, named := classOf(v.Verdict, v.KnownDeviation)
	return named
}

// Class is the style class of the verdict in pages.
func (v RequirementVerdict) Class() string {
	class, _ := classOf(v.Verdict, v.KnownDeviation)
	return class
}

// unjudged reports whether the report says nothing of the requirement.
func (v RequirementVerdict) unjudged() bool {
	return v.Verdict == check.NotApplicable || v.Verdict == check.NotJudged
}

// rank orders verdicts, the best first.
func (v RequirementVerdict) rank() int {
	switch {
	case v.KnownDeviation:
		return 1
	case v.Verdict == check.Unknown:
		return 2
	case v.Verdict == check.Blocked:
		return 3
	case v.Verdict == check.NonConformant:
		return 4
	}
	return 0
}

// Regressed reports whether the new report is worse: a requirement is, or a MUST that is new is not met.
func Regressed(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool {
		return c.Kind == Regression || c.Kind == New && c.Level == spec.Must && c.New == string(check.NonConformant)
	})
}

// WriteChanges writes the changes for a terminal.
func WriteChanges(w io.Writer, p Palette, changes []Change) {
	colours := map[Kind]string{Regression: p.Red, Fix: p.Green, New: p.Yellow, Gone: p.Yellow}
	for _, c := range changes {
		fmt.Fprintf(w, "%s%-10s%s  %s (%s): %s, was %s\n", colours[c.Kind], c.Kind, p.Reset, c.Requirement, c.Level, c.New, c.Old)
		if c.Why != "" && c.Kind != Fix {
			fmt.Fprintf(w, "            %s\n", visible(c.Why))
		}
	}
	fmt.Fprintln(w, CountChanges(changes))
}

// CountChanges says how many changes there are of each kind.
func CountChanges(changes []Change) string {
	if len(changes) == 0 {
		return "no requirement has another verdict"
	}
	n := map[Kind]int{}
	for _, c := range changes {
		n[c.Kind]++
	}
	fixes := fmt.Sprintf("%d fixes", n[Fix])
	if n[Fix] == 1 {
		fixes = "1 fix"
	}
	return fmt.Sprintf("%s, %s, %d new, %d gone", counted(n[Regression], "regression"), fixes, n[New], n[Gone])
}

// CountedPhrase is CountChanges for pages in every language.
func CountedPhrase(changes []Change) words.Phrase {
	if len(changes) == 0 {
		return words.Say("no-changes")
	}
	n := map[Kind]int{}
	for _, c := range changes {
		n[c.Kind]++
	}
	return words.Say("changes-counted", n[Regression], n[Fix], n[New], n[Gone])
}

// ChangesMarkdown renders changes for a pull request.
func ChangesMarkdown(old, now *Report, changes []Change) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s, compared with %s\n\n%s. Verdict: %s, was %s.\n", MarkdownText(now.Title()), MarkdownText(old.Title()), CountChanges(changes), now.Verdict, old.Verdict)
	if len(changes) > 0 {
		b.WriteString("\n| change | requirement | level | was | is | what was found |\n|---|---|---|---|---|---|\n")
	}
	for i, c := range changes {
		row := fmt.Sprintf("| %s | `%s` | %s | %s | %s | %s |\n", c.Kind, c.Requirement, c.Level, c.Old, c.New, MarkdownText(c.Why))
		if b.Len()+len(row) > largestMarkdown-1<<10 {
			fmt.Fprintf(&b, "\nAnd %d more.\n", len(changes)-i)
			break
		}
		b.WriteString(row)
	}
	return b.String()
}
