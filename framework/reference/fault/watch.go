package fault

import (
	"reflect"
	"slices"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime"

	"github.com/service-conformance/conformance/framework/reference/rule"
)

// change is what a fault makes of one place in a book.
type change struct {
	fault *Fault
	at    int        // the place in the right book
	wrong rule.Place // what stands there instead or, if added, beside
	how   how
	seen  atomic.Bool
}

// how a place is changed.
type how int

const (
	replaced how = iota
	before       // a rule is added before it
	after        // a rule is added after it, which is the last one of its list
	moved        // or removed
)

// watch lets the rules of a book tell which faults could change what they do.
func watch[B any](r *Reach, book *B, edits []Edit[B]) {
	right := rule.Places(book)
	answers, changing := pure(book)
	changes := make([][]*change, len(right))
	for _, e := range edits {
		if at, known := r.usesOf(e.Fault); known {
			for _, i := range at {
				changes[i] = append(changes[i], &change{fault: e.Fault, at: i, how: moved})
			}
			continue
		}
		wrong := rule.Copy(book)
		e.Do(wrong)
		of, everywhere := compare(e.Fault, right, rule.Places(wrong))
		if everywhere {
			r.everywhere(e.Fault)
		}
		comparable := false
		var rules []string
		for _, c := range of {
			changes[c.at] = append(changes[c.at], c)
			kind := right[c.at].Kind()
			comparable = comparable || answers[kind] || changing[kind]
			rules = append(rules, right[c.at].Name)
		}
		r.edited(e.Fault, rules)
		if !comparable {
			r.onlyUses(e.Fault, of)
		}
	}
	for i, of := range changes {
		if len(of) == 0 {
			continue
		}
		switch kind := right[i].Kind(); {
		case answers[kind]:
			right[i].Watch(func(right call, arguments []reflect.Value) []reflect.Value {
				results := right(arguments)
				r.compareAnswers(of, arguments, results)
				return results
			})
		case changing[kind]:
			right[i].Watch(func(right call, arguments []reflect.Value) []reflect.Value {
				return r.compareChanges(of, right, arguments)
			})
		default:
			right[i].Watch(func(right call, arguments []reflect.Value) []reflect.Value {
				for _, c := range of {
					r.see(c, true)
				}
				return right(arguments)
			})
		}
	}
}

type call = func([]reflect.Value) []reflect.Value

// pure are the kinds of rules of a book that are pure (rule.Pure).
func pure(book any) (answers, changing map[reflect.Type]bool) {
	answers, changing = map[reflect.Type]bool{}, map[reflect.Type]bool{}
	kinds := rule.Kinds(book)
	for _, t := range kinds.Answers {
		answers[t] = true
	}
	for _, t := range kinds.Changes {
		changing[t] = true
	}
	return answers, changing
}

// compare returns what a fault changes. It can change everything if it adds a rule to an empty list, for there is none whose use could be seen.
func compare(f *Fault, right, wrong []rule.Place) (changes []*change, everywhere bool) {
	at := map[string]int{}
	for i := range right {
		at[right[i].Name] = i
	}
	known := func(p *rule.Place) bool { _, ok := at[p.Name]; return ok }
	seen, last := make([]bool, len(right)), -1
	for i := range wrong {
		p := &wrong[i]
		if !known(p) {
			beside := func(q rule.Place) bool { return q.List == p.List && known(&q) }
			if j := slices.IndexFunc(wrong[i:], beside); j >= 0 && p.List > 0 {
				changes = append(changes, &change{fault: f, at: at[wrong[i+j].Name], wrong: *p, how: before})
			} else if j := slices.IndexFunc(wrong, beside); j >= 0 && p.List > 0 {
				for j+1 < i && beside(wrong[j+1]) {
					j++
				}
				changes = append(changes, &change{fault: f, at: at[wrong[j].Name], wrong: *p, how: after})
			} else {
				everywhere = true
			}
			continue
		}
		j := at[p.Name]
		seen[j] = true
		switch {
		case j < last:
			changes = append(changes, &change{fault: f, at: j, how: moved}, &change{fault: f, at: last, how: moved})
		case p.Identity() != right[j].Identity():
			changes = append(changes, &change{fault: f, at: j, wrong: *p, how: replaced})
		}
		last = max(last, j)
	}
	for j, ok := range seen {
		if !ok {
			changes = append(changes, &change{fault: f, at: j, how: moved})
		}
	}
	return changes, everywhere
}

// see notes that a change matters to the check that runs. What was seen once in a book need not be looked for again:
// checks do not share it.
func (r *Reach) see(c *change, matters bool) {
	if matters && !c.seen.Swap(true) {
		r.reach(c.fault)
	}
}

// compareAnswers notes the changes with which the answer would be another one.
func (r *Reach) compareAnswers(of []*change, arguments, results []reflect.Value) {
	var own []reflect.Value
	for _, c := range of {
		if c.seen.Load() {
			continue
		}
		if own == nil {
			own = copied(arguments)
		}
		r.see(c, c.how == moved || func() (differs bool) {
			defer func() { differs = differs || recover() != nil }()
			got := c.wrong.Call(own)
			if !equal(own, arguments) {
				own = nil
				return true
			}
			if c.how == replaced {
				return !equal(got, results)
			}
			return !zero(got)
		}())
	}
}

// compareChanges applies the rule, and notes the changes with which the objects would be others.
func (r *Reach) compareChanges(of []*change, right call, arguments []reflect.Value) []reflect.Value {
	given := map[*change][]reflect.Value{}
	for _, c := range of {
		if !c.seen.Load() && c.how != after {
			given[c] = copied(arguments)
		}
	}
	untouched := copied(arguments)
	results := right(arguments)
	for _, c := range of {
		if c.seen.Load() {
			continue
		}
		r.see(c, c.how == moved || func() (differs bool) {
			defer func() { differs = differs || recover() != nil }()
			switch c.how {
			case replaced:
				got := c.wrong.Call(given[c])
				return !equal(got, results) || !equal(given[c], arguments)
			case before:
				got := c.wrong.Call(given[c])
				return !zero(got) || !equal(given[c], untouched)
			default:
				later := copied(arguments)
				got := c.wrong.Call(later)
				return !zero(got) || !equal(later, arguments)
			}
		}())
	}
	return results
}

// copied returns arguments whose objects are copies.
func copied(arguments []reflect.Value) []reflect.Value {
	out := slices.Clone(arguments)
	for i, v := range out {
		if o, ok := reflect.TypeAssert[runtime.Object](v); ok && !reflect.ValueOf(o).IsNil() {
			out[i] = reflect.ValueOf(o.DeepCopyObject())
		}
	}
	return out
}

func equal(a, b []reflect.Value) bool {
	for i := range a {
		if !reflect.DeepEqual(a[i].Interface(), b[i].Interface()) {
			return false
		}
	}
	return true
}

func zero(vs []reflect.Value) bool {
	for _, v := range vs {
		if !v.IsZero() && !(v.Kind() == reflect.Slice && v.Len() == 0) {
			return false
		}
	}
	return true
}
