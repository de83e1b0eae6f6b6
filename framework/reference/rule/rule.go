// Package rule says what the reference is made of. A rule is a named value that cites its requirements and does one thing.
//
// A package of the reference holds its rules in a book. A fault is an edit of the book before it is used. It replaces a
// rule, wraps it, switches it off, or adds one to a list. So a rule reads as the specification does, and no rule knows
// a fault.
package rule

import (
	"reflect"
	"slices"

	"github.com/service-conformance/conformance/framework/spec"
)

// Rule is one rule of the specification. F is the type of the function that applies it. A Rule is edited before its book is
// used, and is read only afterwards: it is then safe for concurrent use.
type Rule[F any] struct {
	// Name says what the rule does, in kebab-case, such as "port-names-unique". It is unique in its book.
	Name string
	// Cites are the requirements that the rule follows; never empty.
	Cites []spec.ID
	// Do applies the rule.
	Do F
}

// New makes a rule.
func New[F any](name string, do F, cites ...spec.ID) Rule[F] {
	return Rule[F]{Name: name, Cites: cites, Do: do}
}

// Replace makes the rule do something else.
func (r *Rule[F]) Replace(do F) { r.Do = do }

// Wrap makes the rule do what around makes of it.
func (r *Rule[F]) Wrap(around func(right F) F) { r.Do = around(r.Do) }

// Off makes the rule do nothing. What it returns is then the zero value: no error, no address, false.
func (r *Rule[F]) Off() {
	t := reflect.TypeFor[F]()
	nothing := make([]reflect.Value, t.NumOut())
	for i := range nothing {
		nothing[i] = reflect.Zero(t.Out(i))
	}
	r.Do = reflect.MakeFunc(t, func([]reflect.Value) []reflect.Value { return nothing }).Interface().(F)
}

// Before returns list with another rule before the one of that name. It panics where there is none.
func Before[F any](list []Rule[F], name string, other Rule[F]) []Rule[F] {
	return slices.Insert(slices.Clone(list), index(list, name), other)
}

// After returns list with another rule after the one of that name. It panics where there is none.
func After[F any](list []Rule[F], name string, other Rule[F]) []Rule[F] {
	return slices.Insert(slices.Clone(list), index(list, name)+1, other)
}

// Find returns the rule of that name, to be edited. It panics where there is none: a fault that edits nothing is a programming error.
func Find[F any](list []Rule[F], name string) *Rule[F] { return &list[index(list, name)] }

func index[F any](list []Rule[F], name string) int {
	i := slices.IndexFunc(list, func(r Rule[F]) bool { return r.Name == name })
	if i < 0 {
		panic("there is no rule " + name)
	}
	return i
}

// Entry is what a book tells of a rule, for people.
type Entry struct {
	// Name of the rule.
	Name string
	// Cites are the requirements that it follows.
	Cites []spec.ID
}
