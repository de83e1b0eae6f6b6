package report

import (
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/words"
)

// Names of the faces in a report folder.
const (
	YAMLFile     = "report.yaml"
	MarkdownFile = "report.md"
	HTMLFile     = "report.html"
)

// Face is a form that a report can be rendered in.
type Face struct {
	// Name is that of --format.
	Name   string
	File   string
	Render func(*Report) ([]byte, error)
}

// Faces are all of them. Each is rendered from report.json alone and the catalogue of this program.
var Faces = []Face{
	{"html", HTMLFile, (*Report).HTML},
	{"md", MarkdownFile, (*Report).Markdown},
	{"yaml", YAMLFile, (*Report).YAML},
	{"junit", JUnitFile, (*Report).JUnit},
}

// MetricsAs is a face that is written where somebody asks for it: OpenMetrics text, in a file of that name.
func MetricsAs(file string) Face { return Face{"metrics", file, (*Report).Metrics} }

// Title names what was judged.
func (r *Report) Title() string {
	c := &r.Candidate
	if c.Implementation == "" {
		return "nothing"
	}
	title := c.Implementation
	if c.Version != "" {
		title += " " + c.Version
	}
	if c.DataPlane.Name != "" && c.DataPlane.Name != c.Implementation {
		title += " with " + c.DataPlane.String()
	}
	if c.ProxyMode != "" {
		title += " in mode " + c.ProxyMode
	}
	if len(c.Faults) > 0 {
		title += " with fault " + strings.Join(c.Faults, ", ")
	}
	return title
}

// Sentence is the verdict for somebody who knows none of the terms.
func (r *Report) Sentence() string {
	var texts []string
	for _, p := range r.sentences() {
		texts = append(texts, p.String())
	}
	return strings.Join(texts, " ")
}

// sentences are Sentence in every language.
func (r *Report) sentences() []words.Phrase {
	musts, unmet, blocked, undecided := 0, 0, 0, 0
	for _, v := range r.Requirements {
		if v.Level != "MUST" || v.Verdict == check.NotApplicable || v.Verdict == check.NotJudged {
			continue
		}
		musts++
		switch {
		case v.KnownDeviation, v.Verdict == "conformant":
		case v.Verdict == "unknown":
			undecided++
		case v.Verdict == "blocked":
			blocked++
		default:
			unmet++
		}
	}
	var known []words.Phrase
	if n := r.Summary.Requirements.KnownDeviations; n > 0 {
		known = append(known, words.Count("are-known", n))
	}
	said := func(key string, args ...any) []words.Phrase { return []words.Phrase{words.Say(key, args...)} }
	name := r.Title()
	switch {
	case r.Verdict == check.Conformant:
		return append(said("does", name, musts), known...)
	case r.Verdict == InPart:
		return append(said("does-in-part", name, r.judgedPhrase()), known...)
	case r.Verdict == AsExpected:
		return said("does-not-as-expected", name)
	case r.Verdict == Unlisted:
		return said("does-unexpectedly", name)
	case r.Verdict == check.NonConformant && blocked > 0:
		return append(said("does-not-and-blocks", name, unmet, musts, blocked), known...)
	case r.Verdict == check.NonConformant:
		return append(said("does-not", name, unmet, musts), known...)
	case r.Interrupted:
		return said("nothing-interrupted", name, r.CutOff())
	case musts == 0:
		return said("nothing-judged", name)
	}
	return said("nothing-as-a-whole", name, undecided, musts)
}
