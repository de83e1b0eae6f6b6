// Package ruletest tests the books of the reference, and the faults that edit them.
package ruletest

import (
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Book tests the book of the package whose test calls it, and the edits that the faults of that package are.
func Book[B any, E ~struct {
	Fault *fault.Fault
	Do    func(book *B)
}](t *testing.T, newBook func() *B, edits []E) {
	t.Run("every rule has a name of its own and cites requirements", func(t *testing.T) { Entries(t, rule.Entries(newBook())) })
	t.Run("rule files know no fault", ruleFilesKnowNoFault)
	t.Run("every fault edits the book", func(t *testing.T) {
		right := fingerprint(newBook())
		seen := map[*fault.Fault]bool{}
		for _, e := range edits {
			f := fault.Edit[B](e).Fault
			if slices.Equal(fingerprint(fault.Apply(newBook(), []E{e}, fault.Of(f))), right) {
				t.Errorf("fault %s changes no rule", f.Name)
			}
			if seen[f] {
				t.Errorf("fault %s is there twice", f.Name)
			}
			seen[f] = true
		}
		if !slices.Equal(fingerprint(newBook()), right) {
			t.Error("a fault of one book has changed another one")
		}
	})
	t.Run("faults can be combined", func(*testing.T) {
		var all []*fault.Fault
		for _, e := range edits {
			all = append(all, fault.Edit[B](e).Fault)
		}
		fault.Apply(newBook(), edits, fault.Of(all...)) // panics where one removes what another one looks for
	})
}

// Entries tests the names and the requirements of rules, which are sorted by name.
func Entries(t *testing.T, entries []rule.Entry) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	for i, e := range entries {
		if !kebab.MatchString(e.Name) {
			t.Errorf("rule %q: the name is not kebab-case", e.Name)
		}
		if i > 0 && entries[i-1].Name == e.Name {
			t.Errorf("two rules have the name %s", e.Name)
		}
		if len(e.Cites) == 0 {
			t.Errorf("rule %s cites no requirement", e.Name)
		}
		for _, id := range e.Cites {
			if spec.Default().Get(id) == nil {
				t.Errorf("rule %s cites %s, which is not in the catalogue", e.Name, id)
			}
		}
	}
}

// A reader of a rule is to see the rule only.
func ruleFilesKnowNoFault(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") || strings.HasPrefix(name, "faults") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		if err != nil {
			t.Fatal(err)
		}
		for _, i := range file.Imports {
			if path, _ := strconv.Unquote(i.Path.Value); path == reflect.TypeFor[fault.Fault]().PkgPath() {
				t.Errorf("%s imports %s: what a fault changes stands in a file faults*.go", name, path)
			}
		}
	}
}

// fingerprint tells books apart: it names each rule with the function that it has.
func fingerprint[B any](b *B) (prints []string) {
	for _, p := range rule.Places(b) {
		prints = append(prints, fmt.Sprint(p.Name, p.Identity()))
	}
	return prints
}
