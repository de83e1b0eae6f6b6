package service

import (
	"fmt"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unsafe"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/spec"
)

func TestEveryRuleHasANameOfItsOwnAndCitesRequirements(t *testing.T) {
	kebab := regexp.MustCompile(`^[a-z0-9]+(-[a-z0-9]+)*$`)
	entries := Book()
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
func TestRuleFilesKnowNoFault(t *testing.T) {
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

func TestEveryFaultEditsTheBook(t *testing.T) {
	right := fingerprint(newBook())
	for i, w := range wrongs() {
		b := newBook()
		b.edit(Faults{w.fault: true})
		if slices.Equal(fingerprint(b), right) {
			t.Errorf("fault %s changes no rule", w.fault.Name)
		}
		if slices.ContainsFunc(wrongs()[:i], func(earlier wrong) bool { return earlier.fault == w.fault }) {
			t.Errorf("fault %s is there twice", w.fault.Name)
		}
	}
	if !slices.Equal(fingerprint(newBook()), right) {
		t.Error("a fault of one book has changed another one")
	}
}

func TestFaultsCanBeCombined(t *testing.T) {
	on := Faults{}
	for _, w := range wrongs() {
		on[w.fault] = true
	}
	newBook().edit(on) // panics where one removes what another one looks for
}

// The file lists faults by name. A fault that is moved to another package is taken off it.
func TestNoFaultIsLost(t *testing.T) {
	list, err := os.ReadFile("testdata/faults.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range strings.Fields(string(list)) {
		if !slices.ContainsFunc(wrongs(), func(w wrong) bool { return w.fault.Name == name }) {
			t.Errorf("fault %s edits no rule of this package any more", name)
		}
	}
}

// fingerprint tells books apart: it names each rule with the function that it has.
func fingerprint(b *book) (prints []string) {
	var walk func(v reflect.Value)
	walk = func(v reflect.Value) {
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				walk(v.Index(i))
			}
			return
		}
		do := v.FieldByName("Do")
		prints = append(prints, fmt.Sprint(v.FieldByName("Name").String(), *(*uintptr)(unsafe.Pointer(do.UnsafeAddr()))))
	}
	v := reflect.ValueOf(b).Elem()
	for i := range v.NumField() {
		walk(v.Field(i))
	}
	return prints
}
