package rule

import (
	"cmp"
	"reflect"
	"slices"
	"sync"

	"github.com/service-conformance/conformance/framework/spec"
)

// Entries returns what is told of the rules of a book, sorted by name. A book is a struct, or a pointer to one. Its rules are
// the fields that are rules or lists of rules.
func Entries(book any) []Entry {
	entries := entriesIn(reflect.Indirect(reflect.ValueOf(book)))
	slices.SortStableFunc(entries, func(a, b Entry) int { return cmp.Compare(a.Name, b.Name) })
	return entries
}

// entriesIn reads the fields, as the fields of a book are not exported.
func entriesIn(v reflect.Value) (entries []Entry) {
	switch {
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			entries = append(entries, entriesIn(v.Index(i))...)
		}
	case v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[Pure]():
	case isRule(v.Type()):
		entry := Entry{Name: v.FieldByName("Name").String()}
		for i, cites := 0, v.FieldByName("Cites"); i < cites.Len(); i++ {
			entry.Cites = append(entry.Cites, spec.ID(cites.Index(i).String()))
		}
		return []Entry{entry}
	default:
		for _, field := range v.Fields() {
			entries = append(entries, entriesIn(field)...)
		}
	}
	return entries
}

// isRule reports whether a type is Rule[F] for some F.
func isRule(t reflect.Type) bool {
	is, known := ruleTypes.Load(t)
	if !known {
		_, do := t.FieldByName("Do")
		is = do && t.PkgPath() == reflect.TypeFor[Entry]().PkgPath()
		ruleTypes.Store(t, is)
	}
	return is.(bool)
}

// ruleTypes remembers of types whether they are rules: books are walked through often.
var ruleTypes sync.Map
