package report

import (
	"fmt"
	"strings"
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
	musts, unmet, blocked, undecided := 0, 0, 0, 0
	for _, v := range r.Requirements {
		if v.Level != "MUST" || v.Verdict == "not applicable" {
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
	known := ""
	if n := r.Summary.Requirements.KnownDeviations; n == 1 {
		known = " One requirement is a known deviation, listed with its reason."
	} else if n > 1 {
		known = fmt.Sprintf(" %d requirements are known deviations, listed with their reasons.", n)
	}
	name := r.Title()
	switch r.Verdict {
	case "conformant":
		return fmt.Sprintf("%s does what the documentation of Kubernetes demands of Services: %d mandatory requirements were judged.%s", name, musts, known)
	case InPart:
		return fmt.Sprintf("What was judged of %s is as documented. This is a part of what it claims: %s.%s", name, r.judged(), known)
	case AsExpected:
		return fmt.Sprintf("%s does not do all that the documentation of Kubernetes demands. A list of its own, which nobody has published, expects the failures.", name)
	case Unlisted:
		return fmt.Sprintf("%s does what a list of known deviations says that it does not. The list must be corrected.", name)
	case "non-conformant":
		more := ""
		if blocked > 0 {
			more = fmt.Sprintf(", and %d cannot be judged before they are", blocked)
		}
		return fmt.Sprintf("%s does not do what the documentation of Kubernetes demands of Services: %d of %d mandatory requirements are not met%s.%s", name, unmet, musts, more, known)
	}
	if r.Interrupted {
		return fmt.Sprintf("Nothing can be said of %s: the run was interrupted, and %d checks were not judged.", name, r.NotJudged())
	}
	if musts == 0 {
		return fmt.Sprintf("Nothing can be said of %s: no mandatory requirement was judged.", name)
	}
	return fmt.Sprintf("Nothing can be said of %s as a whole: %d of %d mandatory requirements could not be decided.", name, undecided, musts)
}
