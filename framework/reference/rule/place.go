package rule

import (
	"reflect"
	"unsafe"
)

// Place is where a rule stands in a book. It is for those who look at a book from outside: tests, and the recording of which check reaches which fault.
type Place struct {
	// Name is that of the rule.
	Name string
	// List is the number of the list that the rule stands in; 0 if it stands alone.
	List int

	do reflect.Value
}

// Places returns the places of a book in the order of its fields. book is a pointer to a struct.
func Places(book any) []Place {
	w := walk{}
	w.through(reflect.ValueOf(book).Elem(), 0)
	return w.places
}

type walk struct {
	places []Place
	lists  int
}

func (w *walk) through(v reflect.Value, list int) {
	switch {
	case v.Kind() == reflect.Slice:
		w.lists++
		in := w.lists
		for i := range v.Len() {
			w.through(v.Index(i), in)
		}
	case v.Kind() != reflect.Struct || v.Type() == reflect.TypeFor[Pure]():
	case isRule(v.Type()):
		w.places = append(w.places, Place{v.Field(nameField).String(), list, settable(v.Field(doField))})
	default:
		for _, field := range v.Fields() {
			w.through(field, 0)
		}
	}
}

// The fields of a Rule, by number: books are walked through often.
const nameField, doField = 0, 2

// settable is a field that can be set although it, or the field that it stands in, is not exported.
func settable(v reflect.Value) reflect.Value {
	return reflect.NewAt(v.Type(), unsafe.Pointer(v.UnsafeAddr())).Elem()
}

// Kind is the type of the function that the rule is.
func (p *Place) Kind() reflect.Type { return p.do.Type() }

// Call applies the rule.
func (p *Place) Call(arguments []reflect.Value) []reflect.Value { return p.do.Call(arguments) }

// Identity tells functions apart: it is the same for the same function, with the same variables around it.
func (p *Place) Identity() uintptr { return *(*uintptr)(p.do.Addr().UnsafePointer()) }

// Watch lets do take the place of the rule. It is given what the rule did.
func (p *Place) Watch(do func(right func([]reflect.Value) []reflect.Value, arguments []reflect.Value) []reflect.Value) {
	right := reflect.ValueOf(p.do.Interface()).Call
	p.do.Set(reflect.MakeFunc(p.Kind(), func(arguments []reflect.Value) []reflect.Value { return do(right, arguments) }))
}

// Copy returns a book with lists of its own, so that an edit of it changes no other one.
func Copy[B any](book *B) *B {
	c := *book
	ownLists(reflect.ValueOf(&c).Elem())
	return &c
}

func ownLists(v reflect.Value) {
	switch {
	case v.Kind() == reflect.Slice:
		list := settable(v)
		own := reflect.MakeSlice(list.Type(), list.Len(), list.Len())
		reflect.Copy(own, list)
		list.Set(own)
	case v.Kind() == reflect.Struct && !isRule(v.Type()) && v.Type() != reflect.TypeFor[Pure]():
		for _, field := range v.Fields() {
			ownLists(field)
		}
	}
}
