package rule

import (
	"slices"
	"testing"

	"github.com/service-conformance/conformance/framework/spec"
)

type adding = func(int) int

func plus(name string, n int) Rule[adding] {
	return New(name, func(i int) int { return i + n }, spec.APIPortsList)
}

func sum(list []Rule[adding]) (total int) {
	for _, r := range list {
		total = r.Do(total)
	}
	return total
}

func TestEdits(t *testing.T) {
	right := []Rule[adding]{plus("one", 1), plus("ten", 10)}
	list := slices.Clone(right)
	Find(list, "ten").Wrap(func(right adding) adding { return func(i int) int { return 2 * right(i) } })
	if got := sum(list); got != 22 {
		t.Errorf("wrapped: %d", got)
	}
	Find(list, "ten").Replace(func(i int) int { return i })
	if got := sum(list); got != 1 {
		t.Errorf("replaced: %d", got)
	}
	more := Before(After(right, "one", plus("two", 2)), "one", plus("zero", 0))
	if names := []string{more[0].Name, more[1].Name, more[2].Name, more[3].Name}; !slices.Equal(names, []string{"zero", "one", "two", "ten"}) {
		t.Errorf("added: %v", names)
	}
	if got := sum(right); got != 11 {
		t.Errorf("the right list is %d now", got)
	}
}

func TestOffReturnsZeroValues(t *testing.T) {
	r := New("decides", func(string) (int, error) { return 1, nil }, spec.APIPortsList)
	r.Off()
	if n, err := r.Do("x"); n != 0 || err != nil {
		t.Error(n, err)
	}
}

func TestEntries(t *testing.T) {
	book := struct {
		list   []Rule[adding]
		single Rule[func()]
		others int
	}{[]Rule[adding]{plus("b", 1), plus("c", 1)}, New("a", func() {}, spec.APIPortsNeeded, spec.APIPortsList), 3}
	entries := Entries(&book)
	if len(entries) != 3 || entries[0].Name != "a" || entries[2].Name != "c" {
		t.Fatal(entries)
	}
	if !slices.Equal(entries[0].Cites, []spec.ID{spec.APIPortsNeeded, spec.APIPortsList}) {
		t.Error(entries[0].Cites)
	}
}
