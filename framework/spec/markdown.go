package spec

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Markdown renders the catalogue for people: documents, an overview with counts, and every requirement by area and
// feature. checked returns the names of the checks of a requirement, in the order of the list. The result depends on
// nothing else, so that a generated file can be compared with it.
func (c *Catalogue) Markdown(checked func(ID) []string) string {
	var b strings.Builder
	b.WriteString(`<!-- Generated from fixtures/spec by "make generate". Do not edit. -->

# Specification

Every testable statement of the documents below, in our own words, as a requirement with a stable ID. MUST, SHOULD and
MAY are read from the wording of the document; INFO is background that no check decides. A requirement without a check
says why. A *deviation* is a place where a published implementation is documented or was observed to differ.

| document | title | basis | as of |
|---|---|---|---|
`)
	for _, d := range c.Documents {
		fmt.Fprintf(&b, "| `%s` | [%s](%s) | %s | %s |\n", d.ID, escape(d.Title), d.URL, d.Basis, d.AsOf)
	}
	c.writeBases(&b)
	sections := c.sections()
	writeOverview(&b, sections, checked)
	for _, s := range sections {
		fmt.Fprintf(&b, "\n## %s\n", s.title())
		for _, r := range s.requirements {
			c.writeRequirement(&b, r, checked(r.ID))
		}
	}
	return b.String()
}

// section is what stands under one heading: the requirements of an area that belong to a feature.
type section struct {
	area         Area
	feature      string
	requirements []*Requirement
}

func (s section) title() string { return fmt.Sprintf("%s: %s", s.area, s.feature) }

// anchor is the fragment that renderers of Markdown derive from the title.
func (s section) anchor() string {
	return strings.ToLower(strings.ReplaceAll(strings.ReplaceAll(s.title(), ":", ""), " ", "-"))
}

// sections groups the requirements, by area and feature, and keeps the order of the catalogue within a group.
func (c *Catalogue) sections() []section {
	var sections []section
	for i := range c.Requirements {
		r := &c.Requirements[i]
		at := slices.IndexFunc(sections, func(s section) bool { return s.area == r.Area && s.feature == r.Feature })
		if at < 0 {
			at = len(sections)
			sections = append(sections, section{area: r.Area, feature: r.Feature})
		}
		sections[at].requirements = append(sections[at].requirements, r)
	}
	slices.SortFunc(sections, func(a, b section) int { return strings.Compare(a.title(), b.title()) })
	return sections
}

// writeBases counts the requirements by what they rest on, and by profile.
func (c *Catalogue) writeBases(b *strings.Builder) {
	b.WriteString(`
A requirement rests on its strongest source: a *document* of the specification, a *convention*, or *upstream*, the source of Kubernetes alone.
A candidate claims *profiles*. Each requirement belongs to one, and each optional feature is one.

| profile | document | convention | upstream |
|---|--:|--:|--:|
`)
	for _, p := range c.Profiles() {
		counts := map[Basis]int{}
		for _, r := range c.Requirements {
			if r.Profile == p {
				counts[r.Basis]++
			}
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d |\n", p, counts[OnDocument], counts[OnConvention], counts[OnUpstream])
	}
}

func writeOverview(b *strings.Builder, sections []section, checked func(ID) []string) {
	b.WriteString("\n| requirements | MUST | SHOULD | MAY | INFO | with a check |\n|---|--:|--:|--:|--:|--:|\n")
	row := func(title string, requirements []*Requirement) {
		levels, withCheck := map[Level]int{}, 0
		for _, r := range requirements {
			levels[r.Level]++
			if len(checked(r.ID)) > 0 {
				withCheck++
			}
		}
		fmt.Fprintf(b, "| %s | %d | %d | %d | %d | %d of %d |\n",
			title, levels[Must], levels[Should], levels[May], levels[Info], withCheck, len(requirements))
	}
	var all []*Requirement
	for _, s := range sections {
		row(fmt.Sprintf("[%s](#%s)", s.title(), s.anchor()), s.requirements)
		all = append(all, s.requirements...)
	}
	row("all", all)
}

func (c *Catalogue) writeRequirement(b *strings.Builder, r *Requirement, checks []string) {
	fmt.Fprintf(b, "\n### %s\n\n**%s** %s\n\n", r.ID, r.Level, escape(r.Statement))
	item := func(label, text string) { fmt.Fprintf(b, "- **%s.** %s\n", label, text) }
	var sources []string
	for _, s := range r.Sources {
		sources = append(sources, c.sourceLink(s))
	}
	item("Source", strings.Join(sources, ", "))
	item("Basis", string(r.Basis))
	item("Profile", string(r.Profile))
	if r.Versions != "" {
		item("Kubernetes", "`"+r.Versions+"`")
	}
	if len(r.Needs) > 0 {
		var needs []string
		for _, n := range r.Needs {
			needs = append(needs, string(n))
		}
		item("Needs", strings.Join(needs, ", "))
	}
	for _, check := range checks {
		item("Check", "`"+check+"`")
	}
	for _, f := range r.BuildsOn {
		item("A check of this requirement builds on", fmt.Sprintf("[%s](#%s). %s", f.ID, f.ID, escape(f.Because)))
	}
	if r.Unchecked != "" {
		item("No check", escape(r.Unchecked))
	}
	if r.Notes != "" {
		item("Note", escape(r.Notes))
	}
	for _, d := range r.Deviations {
		who := d.Implementation
		if d.Versions != "" {
			who += " `" + d.Versions + "`"
		}
		item("Deviation of "+who, escape(d.Behavior))
		if d.Source != "" {
			item("Source of that deviation", escape(d.Source))
		}
		if d.WaitsFor != "" {
			item("That deviation waits for", fmt.Sprintf("%s (excused until %s)", escape(d.WaitsFor), d.Expires))
		}
	}
}

// anchored matches sections that are anchors of a page; other sections are field paths, files or KEPs.
var anchored = regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)

func (c *Catalogue) sourceLink(source string) string {
	id, place, _ := strings.Cut(source, "#")
	for _, d := range c.Documents {
		switch {
		case d.ID != id:
		case anchored.MatchString(place):
			return fmt.Sprintf("[%s](%s#%s)", source, d.URL, place)
		default:
			return strings.TrimSpace(fmt.Sprintf("[%s](%s) %s", id, d.URL, escape(place)))
		}
	}
	return escape(source)
}

// escape keeps text from being read as Markdown, except for code spans, and on one line.
func escape(text string) string {
	parts := strings.Split(strings.Join(strings.Fields(text), " "), "`")
	for i := range parts {
		if i%2 == 0 || i == len(parts)-1 {
			parts[i] = markup.Replace(parts[i])
		}
	}
	return strings.Join(parts, "`")
}

var markup = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `_`, `\_`, `<`, `\<`, `[`, `\[`, `|`, `\|`)
