package spec

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/service-conformance/conformance/fixtures"
)

const documentsFile = "documents:\n- {id: page, title: A page, url: 'https://example.com/', basis: document, asOf: v1.37}\n"

func load(files map[string]string) (*Catalogue, error) {
	fsys := fstest.MapFS{}
	for name, text := range files {
		fsys["spec/"+name] = &fstest.MapFile{Data: []byte(text)}
	}
	return Load(fsys, "spec")
}

func mustLoad(t *testing.T, files map[string]string) *Catalogue {
	t.Helper()
	c, err := load(files)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// requirement writes a file with one valid requirement of the area allocation, with fields replaced or removed ("").
func requirement(fields map[string]string) string {
	all := map[string]string{"id": "alloc-one", "statement": "It holds.", "level": "MUST", "sources": "[page#part]", "feature": "F"}
	maps.Copy(all, fields)
	area := "allocation"
	if a, ok := all["area"]; ok {
		area = a
		delete(all, "area")
	}
	text := "area: " + area + "\nrequirements:\n- {"
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if all[name] != "" {
			text += name + ": " + all[name] + ", "
		}
	}
	return text + "}\n"
}

func TestLoad(t *testing.T) {
	c := mustLoad(t, map[string]string{
		"documents.yaml": documentsFile,
		"b.yaml":         requirement(map[string]string{"id": "alloc-b", "needs": "[ipvs, data-plane]", "versions": "'>=1.33'"}),
		"a.yaml":         requirement(map[string]string{"id": "proxy-a", "area": "proxy", "level": "INFO", "unchecked": "cannot be seen"}),
		"notes.txt":      "not read",
	})
	var ids []ID
	for _, r := range c.Requirements {
		ids = append(ids, r.ID)
	}
	if want := []ID{"proxy-a", "alloc-b"}; !slices.Equal(ids, want) {
		t.Errorf("requirements %q, want %q, in the order of the files", ids, want)
	}
	b := c.Get("alloc-b")
	if b == nil || b.Area != Allocation || b.Versions != ">=1.33" || !slices.Equal(b.Needs, []Capability{IPVS, DataPlane}) {
		t.Errorf("alloc-b was read as %+v", b)
	}
	if b != &c.Requirements[1] {
		t.Error("Get returns a copy")
	}
	if a := c.Get("proxy-a"); a.Unchecked != "cannot be seen" || a.Level != Info {
		t.Errorf("proxy-a was read as %+v", a)
	}
	if c.Get("alloc-c") != nil {
		t.Error("Get finds an unknown ID")
	}
}

func TestLoadRefuses(t *testing.T) {
	one := func(fields map[string]string) map[string]string {
		return map[string]string{"documents.yaml": documentsFile, "x.yaml": requirement(fields)}
	}
	for name, test := range map[string]struct {
		files map[string]string
		want  string // a part of the error that tells what is wrong
	}{
		"basis given":              {one(map[string]string{"basis": "upstream"}), "basis and profile follow from sources and feature"},
		"document without basis":   {map[string]string{"documents.yaml": "documents:\n- {id: page, title: A page, url: 'https://example.com/', asOf: v1.37}\n", "x.yaml": requirement(nil)}, "document page needs a basis"},
		"bad YAML":                 {map[string]string{"documents.yaml": documentsFile, "x.yaml": "area: [allocation\n"}, "x.yaml: "},
		"unknown field":            {one(map[string]string{"severity": "high"}), `unknown field "severity"`},
		"field given twice":        {map[string]string{"documents.yaml": documentsFile, "x.yaml": "area: allocation\narea: proxy\n"}, "already set"},
		"wrong type":               {one(map[string]string{"needs": "ipvs"}), "x.yaml: "},
		"unknown area":             {one(map[string]string{"area": "storage"}), `unknown area "storage"`},
		"no area":                  {one(map[string]string{"area": `""`}), `unknown area ""`},
		"prefix of another area":   {one(map[string]string{"area": "proxy"}), "must begin with proxy-"},
		"upper case in ID":         {one(map[string]string{"id": "alloc-Upper"}), "the ID must match"},
		"ID of the prefix alone":   {one(map[string]string{"id": "alloc"}), "the ID must match"},
		"double dash in ID":        {one(map[string]string{"id": "alloc--x"}), "the ID must match"},
		"no ID":                    {one(map[string]string{"id": ""}), "the ID must match"},
		"no statement":             {one(map[string]string{"statement": ""}), "statement and feature are required"},
		"no feature":               {one(map[string]string{"feature": ""}), "statement and feature are required"},
		"unknown level":            {one(map[string]string{"level": "must"}), `unknown level "must"`},
		"no level":                 {one(map[string]string{"level": ""}), `unknown level ""`},
		"no source":                {one(map[string]string{"sources": ""}), "at least one source"},
		"unknown document":         {one(map[string]string{"sources": "[page#a, book#b]"}), `unknown document "book" in source "book#b"`},
		"unknown capability":       {one(map[string]string{"needs": "[ipvs, telepathy]"}), `unknown capability "telepathy"`},
		"bad versions":             {one(map[string]string{"versions": "'1.33 or so'"}), `versions "1.33 or so"`},
		"bad versions, deviation":  {one(map[string]string{"deviations": "[{implementation: x, behavior: y, versions: '>>1.33'}]"}), `versions ">>1.33"`},
		"document without a file":  {map[string]string{"x.yaml": requirement(nil)}, `unknown document "page"`},
		"duplicate in one file":    {map[string]string{"documents.yaml": documentsFile, "x.yaml": requirement(nil) + strings.SplitAfter(requirement(nil), "requirements:\n")[1]}, "spec/x.yaml: requirement alloc-one stands in spec/x.yaml already"},
		"duplicate in other file":  {map[string]string{"documents.yaml": documentsFile, "x.yaml": requirement(nil), "y.yaml": requirement(nil)}, "spec/y.yaml: requirement alloc-one stands in spec/x.yaml already"},
		"requirement is named":     {one(map[string]string{"level": "MIGHT"}), "spec/x.yaml: alloc-one: "},
		"all problems are told":    {one(map[string]string{"level": "MIGHT", "needs": "[telepathy]"}), `unknown capability "telepathy"`},
		"first of several problem": {one(map[string]string{"level": "MIGHT", "needs": "[telepathy]"}), `unknown level "MIGHT"`},
	} {
		t.Run(name, func(t *testing.T) {
			c, err := load(test.files)
			if err == nil || c != nil {
				t.Fatalf("accepted: %+v", c)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("the error does not say %q:\n%v", test.want, err)
			}
		})
	}
}

func TestEmbeddedCatalogue(t *testing.T) {
	c, err := Load(fixtures.Spec, "spec")
	if err != nil {
		t.Fatal(err)
	}
	perArea := map[Area]int{}
	cited := map[string]bool{}
	for _, r := range c.Requirements {
		perArea[r.Area]++
		for _, s := range r.Sources {
			document, _, _ := strings.Cut(s, "#")
			cited[document] = true
		}
		if r.Level == Info && r.Unchecked == "" {
			t.Errorf("%s is of level INFO, which no check decides, and does not say why it is not checked", r.ID)
		}
		for _, d := range r.Deviations {
			if d.Implementation == "" || d.Behavior == "" || d.Source == "" {
				t.Errorf("%s: a deviation needs implementation, behavior and source: %+v", r.ID, d)
			}
		}
	}
	for _, a := range []Area{Allocation, APISchema, Proxy} {
		if perArea[a] == 0 {
			t.Errorf("no requirement in area %s", a)
		}
	}
	for _, d := range c.Documents {
		if !cited[d.ID] {
			t.Errorf("no requirement cites document %s", d.ID)
		}
	}
}
