package spec

import (
	"slices"
	"strings"
	"testing"
)

var markdownFiles = map[string]string{
	"documents.yaml": "documents:\n- {id: page, title: A page, url: 'https://example.com/page/', basis: document, asOf: v1.37}\n- {id: fields, title: Fields, url: 'https://example.com/fields/', basis: upstream, asOf: '2026'}\n",
	"alloc.yaml": `
area: allocation
requirements:
- id: alloc-second
  statement: Names with a_b and *, but not in ` + "`c_d`" + `.
  level: SHOULD
  sources: [fields#spec.clusterIP]
  feature: Zeta
  unchecked: nobody can see it
- id: alloc-first
  statement: The first thing holds.
  level: MUST
  sources: [page#the-part, fields]
  feature: Alpha
  versions: ">=1.31 <1.36"
  needs: [data-plane, ipvs]
  notes: read so
  deviations:
  - implementation: someone
    versions: ">=1.33"
    behavior: does not
    source: file.go line 7
`,
}

func TestMarkdownRequirement(t *testing.T) {
	c := mustLoad(t, markdownFiles)
	got := c.Markdown(func(id ID) []string {
		if id == "alloc-first" {
			return []string{"sees it", "sees it twice"}
		}
		return nil
	})
	want := `
## allocation: Alpha

### alloc-first

**MUST** The first thing holds.

- **Source.** [page#the-part](https://example.com/page/#the-part), [fields](https://example.com/fields/)
- **Basis.** document
- **Profile.** core
- **Kubernetes.** ` + "`>=1.31 <1.36`" + `
- **Needs.** data-plane, ipvs
- **Check.** ` + "`sees it`" + `
- **Check.** ` + "`sees it twice`" + `
- **Note.** read so
- **Deviation of someone ` + "`>=1.33`" + `.** does not
- **Source of that deviation.** file.go line 7

## allocation: Zeta

### alloc-second

**SHOULD** Names with a\_b and \*, but not in ` + "`c_d`" + `.

- **Source.** [fields](https://example.com/fields/) spec.clusterIP
- **Basis.** upstream
- **Profile.** kubernetes-api
- **No check.** nobody can see it
`
	if !strings.HasSuffix(got, want) {
		t.Errorf("the requirements are rendered as\n%s\nwant the end\n%s", got, want)
	}
	for _, row := range []string{
		"| `page` | [A page](https://example.com/page/) | document | v1.37 |\n",
		"| [allocation: Alpha](#allocation-alpha) | 1 | 0 | 0 | 0 | 1 of 1 |\n",
		"| [allocation: Zeta](#allocation-zeta) | 0 | 1 | 0 | 0 | 0 of 1 |\n",
		"| all | 1 | 1 | 0 | 0 | 1 of 2 |\n",
	} {
		if !strings.Contains(got, row) {
			t.Errorf("row missing in the tables: %s", row)
		}
	}
}

// The document has each requirement once, however the map of checks is iterated.
func TestMarkdownOfEmbeddedCatalogue(t *testing.T) {
	c := Default()
	none := func(ID) []string { return nil }
	text := c.Markdown(none)
	if text != c.Markdown(none) {
		t.Error("two renderings differ")
	}
	var headings []string
	for line := range strings.Lines(text) {
		if id, ok := strings.CutPrefix(strings.TrimSpace(line), "### "); ok {
			headings = append(headings, id)
		}
	}
	var ids []string
	for _, r := range c.Requirements {
		ids = append(ids, string(r.ID))
	}
	slices.Sort(ids)
	slices.Sort(headings)
	if !slices.Equal(ids, headings) {
		t.Errorf("%d headings for %d requirements", len(headings), len(ids))
	}
}

func TestEscape(t *testing.T) {
	for in, want := range map[string]string{
		"plain - text":          "plain - text",
		"a\n  b":                "a b",
		"`x_y` z_w":             "`x_y` z\\_w",
		"lone ` then_this":      "lone ` then\\_this",
		"[a](b) | <c>":          "\\[a](b) \\| \\<c>",
		"`a_b` and `c*d` and *": "`a_b` and `c*d` and \\*",
	} {
		if got := escape(in); got != want {
			t.Errorf("escape(%q) = %q, want %q", in, got, want)
		}
	}
}
