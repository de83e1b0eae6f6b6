// Package fault is the registry of deliberate bugs that the reference can be started with. A fault
// proves that the checks of the requirements that it breaks can fail.
package fault

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/spec"
)

// Fault is one named, deliberate bug.
type Fault struct {
	// Name is what --fault takes, kebab-case, for example "lower-band-first".
	Name string `json:"name"`
	// Description says what goes wrong, in one sentence.
	Description string `json:"description"`
	// Breaks are the requirements that an implementation with this bug does not meet; never empty.
	Breaks []spec.ID `json:"breaks"`
	// Slow says that only slow checks can catch it.
	Slow bool `json:"slow,omitempty"`
}

var registry = map[string]*Fault{}

// New registers a fault. It panics on a name that is taken or a fault that breaks nothing: both are programming errors
// found at start-up. Faults are declared as package variables, one file per topic.
func New(name, description string, breaks ...spec.ID) *Fault {
	if _, ok := registry[name]; ok {
		panic("fault " + name + " is registered twice")
	}
	if len(breaks) == 0 {
		panic("fault " + name + " breaks no requirement")
	}
	f := &Fault{Name: name, Description: description, Breaks: breaks}
	registry[name] = f
	return f
}

// NewSlow registers a fault that only slow checks can catch.
func NewSlow(name, description string, breaks ...spec.ID) *Fault {
	f := New(name, description, breaks...)
	f.Slow = true
	return f
}

// All returns every fault, sorted by name.
func All() []*Fault {
	all := make([]*Fault, 0, len(registry))
	for _, f := range registry {
		all = append(all, f)
	}
	slices.SortFunc(all, func(a, b *Fault) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Set is the faults that are switched on in one reference. The zero Set has none on. It is immutable and safe for concurrent use.
type Set struct {
	on    map[*Fault]bool
	reach *Reach
}

// Of makes a Set of faults.
func Of(faults ...*Fault) Set { return Set{}.With(faults...) }

// With returns a Set that has further faults on.
func (s Set) With(faults ...*Fault) Set {
	on := maps.Clone(s.on)
	if on == nil {
		on = map[*Fault]bool{}
	}
	for _, f := range faults {
		on[f] = true
	}
	return Set{on, s.reach}
}

// Parse makes a Set from names.
func Parse(names ...string) (Set, error) {
	var faults []*Fault
	for _, n := range names {
		f, ok := registry[n]
		if !ok {
			return Set{}, fmt.Errorf("unknown fault %q%s; `conformance selftest --list` shows them all", n, suggest(n))
		}
		faults = append(faults, f)
	}
	return Of(faults...), nil
}

// On reports whether the fault is switched on.
func (s Set) On(f *Fault) bool { return s.on[f] }

// Names returns the names of the faults that are on, sorted.
func (s Set) Names() []string {
	names := []string{}
	for f := range s.on {
		names = append(names, f.Name)
	}
	slices.Sort(names)
	return names
}

func suggest(name string) string {
	for known := range registry {
		if strings.Contains(known, name) || strings.Contains(name, known) {
			return fmt.Sprintf(" (did you mean %q?)", known)
		}
	}
	return ""
}
