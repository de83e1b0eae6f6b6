package spec

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/service-conformance/conformance/fixtures"
)

func TestTranslationsAreOfTheStatementsOfToday(t *testing.T) {
	all, err := LoadTranslations(fixtures.Spec, "spec", Default())
	if err != nil {
		t.Error(err)
	}
	for language, of := range all {
		for id, statement := range of {
			if isASCII(statement) {
				t.Errorf("%s: the statement of %s is in no other language: %s", language, id, statement)
			}
		}
	}
}

func isASCII(s string) bool { return !strings.ContainsFunc(s, func(r rune) bool { return r > 127 }) }

func TestTranslationsThatAreStaleOrOfNothingAreFound(t *testing.T) {
	c := &Catalogue{Requirements: []Requirement{{ID: "a", Statement: "One."}, {ID: "b", Statement: "Two."}}}
	c.byID = map[ID]*Requirement{"a": &c.Requirements[0], "b": &c.Requirements[1]}
	entry := func(id, of, statement string) string {
		return "- {id: " + id + ", of: \"" + of + "\", statement: \"" + statement + "\"}\n"
	}
	a, b := entry("a", Fingerprint("One."), "一"), entry("b", Fingerprint("Two."), "二")
	for name, x := range map[string]struct {
		files map[string]string
		says  string
	}{
		"complete":   {map[string]string{"x.ja.yaml": a + b, "x.zh.yaml": a, "y.zh.yaml": b}, ""},
		"missing":    {map[string]string{"x.ja.yaml": a + b, "x.zh.yaml": a}, ""},
		"stale":      {map[string]string{"x.ja.yaml": a + entry("b", Fingerprint("2."), "二"), "x.zh.yaml": a + b}, "x.ja.yaml: b is a translation of an older sentence"},
		"of nothing": {map[string]string{"x.ja.yaml": a + b + entry("c", "1", "三"), "x.zh.yaml": a + b}, "there is no requirement c"},
		"empty":      {map[string]string{"x.ja.yaml": a + entry("b", Fingerprint("Two."), " "), "x.zh.yaml": a + b}, "b has no statement"},
		"twice":      {map[string]string{"x.ja.yaml": a + b + b, "x.zh.yaml": a + b}, "b stands there twice"},
		"a language": {map[string]string{"x.ja.yaml": a + b, "x.zh.yaml": a + b, "x.xx.yaml": a}, `"xx" is none of the languages`},
		"no YAML":    {map[string]string{"x.ja.yaml": a + b + "{", "x.zh.yaml": a + b}, "x.ja.yaml"},
	} {
		files := fstest.MapFS{"spec/x.yaml": {Data: []byte("not read")}}
		for path, text := range x.files {
			files["spec/"+path] = &fstest.MapFile{Data: []byte("statements:\n" + text)}
		}
		_, err := LoadTranslations(files, "spec", c)
		if x.says == "" && err != nil || x.says != "" && (err == nil || !strings.Contains(err.Error(), x.says)) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
