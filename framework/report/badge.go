package report

import (
	"fmt"
	"html"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/words"
)

// badgeColours are dark enough for white letters: a contrast of 4.5 at least.
var badgeColours = map[check.Verdict]string{check.Conformant: "#116329", check.NonConformant: "#a40e26", check.Unknown: "#6639ba"}

// Shortly is the verdict in a few words, for a badge or the cell of a table.
func (r *Report) Shortly() string { return r.ShortPhrase().String() }

// ShortPhrase is Shortly in every language.
func (r *Report) ShortPhrase() words.Phrase {
	n := r.Summary.Requirements
	switch {
	case r.Standing() == InPart && n.NotJudged > 0:
		return words.Count("short-not-judged", n.NotJudged)
	case r.Standing() == InPart:
		return words.Named(string(InPart))
	case r.Verdict == check.Conformant && n.KnownDeviations > 0:
		return words.Count("short-known", n.KnownDeviations)
	case r.Verdict == check.NonConformant:
		return words.Count("short-not-met", n.Unexcused())
	case r.Verdict == check.Unknown:
		return words.Count("short-unknown", n.Unknown)
	}
	return words.Named(string(r.Verdict))
}

// Badge renders the verdict as a picture (SVG) for a README. It asks for no font, and gives the length of its texts, so that it looks the same everywhere.
func (r *Report) Badge() []byte {
	const label, letter, margin, height = "Kubernetes Services", 7, 8, 20
	text := r.Shortly()
	colour, known := badgeColours[r.Standing()]
	if !known {
		colour = "#57606a"
	}
	left, right := len(label)*letter, len(text)*letter
	split, width := left+2*margin, left+right+4*margin
	said := html.EscapeString(label + ": " + text)
	return fmt.Appendf(nil, `<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" role="img" aria-label="%s"><title>%s</title>`+
		`<path fill="#32383f" d="M0 0h%dv%dH0z"/><path fill="%s" d="M%d 0h%dv%dH%dz"/><g fill="#fff" font-family="Verdana,DejaVu Sans,sans-serif" font-size="11">`+
		`<text x="%d" y="14" textLength="%d">%s</text><text x="%d" y="14" textLength="%d">%s</text></g></svg>`+"\n",
		width, height, said, said, split, height, colour, split, width-split, height, split,
		margin, left, label, split+margin, right, html.EscapeString(text))
}
