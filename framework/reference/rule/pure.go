package rule

import "reflect"

// Pure names kinds of rules that do the same whenever they are given the same. So a rule can be applied beside another one, to see
// whether they differ. A book that has such rules has a field of this type. Kinds are types of functions.
type Pure struct {
	// Answers are the kinds of rules that only answer.
	Answers []reflect.Type
	// Changes are the kinds of rules that change objects that they are given, and nothing else.
	Changes []reflect.Type
}

// Kinds returns the kinds of rules that the book names as pure. book is a pointer to a struct.
func Kinds(book any) (kinds Pure) {
	kindsIn(reflect.ValueOf(book).Elem(), &kinds)
	return kinds
}

func kindsIn(v reflect.Value, kinds *Pure) {
	if v.Type() == reflect.TypeFor[Pure]() {
		*kinds = settable(v).Interface().(Pure)
		return
	}
	for _, field := range v.Fields() {
		if field.Kind() == reflect.Struct && !isRule(field.Type()) {
			kindsIn(field, kinds)
		}
	}
}
