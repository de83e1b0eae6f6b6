package report

import (
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// largestMarkdown bounds report.md: comments of forges and step summaries take no more than 64 KiB.
const largestMarkdown = 63 << 10

// Markdown renders the report for a pull request or a step summary: what is not met first, then what is undecided, then known deviations.
func (r *Report) Markdown() ([]byte, error) {
	var b strings.Builder
	fmt.Fprintf(&b, "# %s: %s\n\n%s\n\n", MarkdownText(r.Title()), MarkdownText(string(r.Verdict)), MarkdownText(r.Sentence()))
	row := func(what string, c Counts) {
		fmt.Fprintf(&b, "| %s | %d | %d | %d | %d | %d | %d | %d |\n", what, c.Conformant, c.NonConformant-c.KnownDeviations, c.KnownDeviations, c.Blocked, c.Unknown, c.NotJudged, c.NotApplicable)
	}
	b.WriteString("| | conformant | not met | known deviations | blocked | unknown | not judged | not applicable |\n|---|--:|--:|--:|--:|--:|--:|--:|\n")
	row("requirements", r.Summary.Requirements)
	row("checks", r.Summary.Checks)
	fmt.Fprintf(&b, "\nSuite %s, tier %s, %.0f s, seed %d, started %s.", MarkdownText(r.SuiteVersion), MarkdownText(r.Candidate.Tier), r.Seconds, r.Seed, r.Started.Format("2006-01-02 15:04:05 MST"))
	if t := r.TimeToConsistency; t != nil {
		fmt.Fprintf(&b, " Time to consistency of %d changes: p50 %.2f s, p99 %.2f s, max %.2f s.", t.Changes, t.P50, t.P99, t.Max)
	}
	if line := r.ResidueLine(); line != "" {
		fmt.Fprintf(&b, " Residue: %s.", MarkdownText(line))
	}
	b.WriteString("\n")
	if line := r.RootsLine(); line != "" {
		fmt.Fprintf(&b, "\n%s\n", MarkdownText(line))
	}
	for _, e := range r.Ended {
		fmt.Fprintf(&b, "\n%s ended by itself: %s\n", MarkdownText(e.Program), MarkdownText(oneLine(e.How)))
	}
	for _, x := range r.UnexpectedPasses {
		fmt.Fprintf(&b, "\n%s was expected to fail, but passed: %s\n", MarkdownText(string(x.Requirement)), MarkdownText(oneLine(x.Reason)))
	}
	r.listMarkdown(&b, "Not met", func(v RequirementVerdict) bool { return v.Verdict == check.NonConformant && !v.KnownDeviation })
	r.listMarkdown(&b, "Unknown", func(v RequirementVerdict) bool { return v.Verdict == check.Unknown })
	r.listMarkdown(&b, "Blocked", func(v RequirementVerdict) bool { return v.Verdict == check.Blocked })
	r.listMarkdown(&b, "Known deviations", func(v RequirementVerdict) bool { return v.KnownDeviation })
	r.listMarkdown(&b, "Not judged", func(v RequirementVerdict) bool { return v.Verdict == check.NotJudged })
	if len(r.Profiles) > 0 && b.Len() < largestMarkdown-4<<10 {
		b.WriteString("\n## Profiles\n\n| profile | verdict | conformant | not met | known deviations | blocked | unknown | not judged | not applicable |\n|---|---|--:|--:|--:|--:|--:|--:|--:|\n")
		for _, p := range r.Profiles {
			n := p.Requirements
			fmt.Fprintf(&b, "| %s | %s | %d | %d | %d | %d | %d | %d | %d |\n",
				MarkdownText(string(p.Profile)), p.Verdict, n.Conformant, n.Unexcused(), n.KnownDeviations, n.Blocked, n.Unknown, n.NotJudged, r.NotApplicableOf(p.Profile))
		}
		r.notApplicableMarkdown(&b)
	}
	return []byte(b.String()), nil
}

// listMarkdown writes a table of requirements, as far as there is room.
func (r *Report) listMarkdown(b *strings.Builder, title string, of func(RequirementVerdict) bool) {
	var rows []string
	for _, v := range r.Requirements {
		if !of(v) {
			continue
		}
		statement := ""
		if known := spec.Default().Get(v.ID); known != nil {
			statement = known.Statement
		}
		rows = append(rows, fmt.Sprintf("| `%s` | %s | %s | %s |\n", v.ID, v.Level, MarkdownText(statement), MarkdownText(r.Why(v.ID, v.Verdict))))
	}
	if len(rows) == 0 {
		return
	}
	fmt.Fprintf(b, "\n## %s: %d\n\n", title, len(rows))
	written := 0
	for _, row := range rows {
		if b.Len()+len(row) > largestMarkdown-2<<10 {
			break
		}
		if written == 0 {
			b.WriteString("| requirement | level | statement | what was found |\n|---|---|---|---|\n")
		}
		b.WriteString(row)
		written++
	}
	if more := len(rows) - written; more > 0 {
		fmt.Fprintf(b, "\nAnd %d more: see %s.\n", more, JSONFile)
	}
}

// Why is what the first check says that gives the requirement its verdict.
func (r *Report) Why(id spec.ID, verdict check.Verdict) string {
	for i := range r.Checks {
		c := &r.Checks[i]
		// In reports of before, what a check did not come to is unknown whatever it ended at.
		gives := c.VerdictOn(id) == verdict || verdict == check.Unknown && c.found().VerdictOn(id) == verdict
		if !slices.Contains(c.Requirements, id) || !gives {
			continue
		}
		switch {
		case c.KnownDeviation != nil:
			return oneLine(c.KnownDeviation.Reason)
		case verdict == check.Blocked:
			return blockedText(c)
		}
		return c.Line()
	}
	if verdict == check.NotJudged {
		return "no check of it was run"
	}
	return ""
}

var markdownEscapes = strings.NewReplacer(
	"\\", "\\\\", "|", "\\|", "`", "\\`", "*", "\\*", "_", "\\_", "[", "\\[", "]", "\\]", "<", "&lt;", ">", "&gt;", "&", "&amp;", "#", "\\#", "~", "\\~", "@", "&#64;", "!", "\\!",
)

// MarkdownText is text without what Markdown, HTML or a terminal would take for an instruction, in one line.
func MarkdownText(text string) string {
	return markdownEscapes.Replace(visible(strings.Join(strings.Fields(text), " ")))
}

// notApplicableMarkdown lists why requirements of profiles that were judged do not bind the candidate, as far as there is room.
func (r *Report) notApplicableMarkdown(b *strings.Builder) {
	for i, n := range r.WhyNotApplicable() {
		line := fmt.Sprintf("- %s, %d not applicable: %s\n", MarkdownText(string(n.Profile)), len(n.IDs), MarkdownText(n.Why))
		if i == 0 {
			b.WriteString("\n")
		}
		if b.Len()+len(line) > largestMarkdown-1<<10 {
			fmt.Fprintf(b, "- And more: see %s.\n", JSONFile)
			return
		}
		b.WriteString(line)
	}
}
