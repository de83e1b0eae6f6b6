package fault

// Edit is a fault and what it changes in a book of rules of type B.
type Edit[B any] struct {
	Fault *Fault
	Do    func(book *B)
}

// Apply makes the faults that are switched on part of a book, and returns the book. Several faults edit it in the order
// of the list: a later one wraps, or replaces, what an earlier one made of a rule. E is Edit[B], or a package's own
// type of it. vet lets a package write values of its own types without the names of their fields.
//
// Where the Set records reach, the book also tells what each of the other faults could change.
func Apply[B any, E ~struct {
	Fault *Fault
	Do    func(book *B)
}](book *B, edits []E, on Set) *B {
	var off []Edit[B]
	for _, e := range edits {
		if e := Edit[B](e); on.On(e.Fault) {
			e.Do(book)
		} else {
			off = append(off, e)
		}
	}
	if on.reach != nil {
		watch(on.reach, book, off)
	}
	return book
}
