package history

import (
	"fmt"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// search decides about one register.
type search struct {
	register, initially string
	bound               time.Duration
}

// step is an operation as porcupine sees it. One that was still under way at the end of what is looked at may have done nothing yet.
type step struct {
	effect  Effect
	pending bool
}

// decide looks for an order of operations on the register. Any of them may be pending.
func (s *search) decide(operations []Operation) porcupine.CheckResult {
	return s.until(operations, Never)
}

// until looks for an order of what began up to a moment.
func (s *search) until(operations []Operation, moment time.Duration) porcupine.CheckResult {
	var sought []porcupine.Operation
	for i := range operations {
		o := &operations[i]
		e := o.on(s.register)
		pending := o.End > moment
		if o.Begin > moment || pending && !e.changes() { // what only looks, and has not been answered, says nothing
			continue
		}
		end := o.End
		if pending {
			end = Never
		}
		sought = append(sought, porcupine.Operation{
			ClientId: o.Client, Input: step{*e, pending}, Call: int64(o.Begin), Return: int64(end),
		})
	}
	return porcupine.CheckOperationsTimeout(s.model(), sought, s.bound)
}

// model is a register with one value.
func (s *search) model() porcupine.Model {
	return porcupine.Model{
		Init: func() any { return s.initially },
		Step: func(state, input, _ any) (bool, any) {
			value, in := state.(string), input.(step)
			after, possible := in.effect.applied(value)
			switch {
			case possible:
				return true, after
			case in.pending: // it has not happened, for it stands last
				return true, value
			}
			return false, value
		},
	}
}

// shortest makes the history of a register that has no explanation as short as leaving out makes it.
func (s *search) shortest(operations []Operation) *Unexplained {
	// What is explained up to a moment is explained up to each earlier one.
	ends := make([]time.Duration, 0, len(operations))
	for i := range operations {
		ends = append(ends, operations[i].End)
	}
	slices.Sort(ends)
	ends = slices.Compact(ends)
	first, _ := slices.BinarySearchFunc(ends, true, func(end time.Duration, _ bool) int {
		if s.until(operations, end) == porcupine.Illegal {
			return 0
		}
		return -1
	})
	moment := ends[min(first, len(ends)-1)]
	operations = slices.DeleteFunc(slices.Clone(operations), func(o Operation) bool { return o.Begin > moment })
	last := slices.IndexFunc(operations, func(o Operation) bool { return o.End == moment })
	end := operations[last]
	for changed := true; changed; {
		changed = false
		for _, without := range s.parts(operations, &end) {
			if len(without) < len(operations) && s.until(without, moment) == porcupine.Illegal {
				operations, changed = without, true
				break
			}
		}
	}
	return &Unexplained{Register: s.register, Last: &end, Operations: operations, Why: s.why(&end)}
}

// parts are the histories that lack something without which an explained history stays explained. These are an operation
// that changes nothing, or all that one holder did, and the refusals that he may be the reason of.
func (s *search) parts(operations []Operation, last *Operation) (parts [][]Operation) {
	without := func(leave func(o *Operation, e *Effect) bool) {
		part := make([]Operation, 0, len(operations))
		for i := range operations {
			if o := &operations[i]; same(o, last) || !leave(o, o.on(s.register)) {
				part = append(part, *o)
			}
		}
		parts = append(parts, part)
	}
	of := last.on(s.register)
	guests := s.guests(operations)
	latest, left := "", time.Duration(-1) // who left last tells readers that nobody was there any more
	for _, holder := range guests {
		if _, to := s.tenureOf(operations, holder); to > left && to < last.Begin {
			latest, left = holder, to
		}
	}
	for _, holder := range guests {
		// Whom the last answer is about stays, and so does everybody where it is a refusal that he may explain.
		if holder == latest && of.Others || !of.Others && (of.From == holder || of.To == holder) {
			continue
		}
		from, to := s.tenureOf(operations, holder)
		if of.Others && from <= last.End && last.Begin <= to {
			continue
		}
		without(func(o *Operation, e *Effect) bool {
			return e.Others && from <= o.End && o.Begin <= to || !e.Others && (e.From == holder || e.To == holder)
		})
	}
	for i := range operations {
		if e := operations[i].on(s.register); !e.changes() {
			without(func(o *Operation, _ *Effect) bool { return same(o, &operations[i]) })
		}
	}
	return parts
}

// guests are the holders that found the register free and left it so, if they left.
func (s *search) guests(operations []Operation) (guests []string) {
	others := map[string]bool{Free: true, s.initially: true}
	for i := range operations {
		e := operations[i].on(s.register)
		switch {
		case !e.changes():
		case e.From == Free:
			guests = append(guests, e.To)
		case e.To != Free:
			others[e.From], others[e.To] = true, true
		}
	}
	slices.Sort(guests)
	return slices.DeleteFunc(slices.Compact(guests), func(g string) bool { return others[g] })
}

func same(a, b *Operation) bool { return a.Client == b.Client && a.Begin == b.Begin && a.End == b.End }

// tenureOf is the time in which a holder may have held the register.
func (s *search) tenureOf(operations []Operation, holder string) (from, to time.Duration) {
	from = Never
	for i := range operations {
		o := &operations[i]
		switch e := o.on(s.register); {
		case !e.changes():
		case e.To == holder:
			from, to = min(from, o.Begin), Never
		case e.From == holder:
			to = o.End
		}
	}
	return from, to
}

// why says what is wrong with an answer that no order explains.
func (s *search) why(last *Operation) string {
	e := last.on(s.register)
	switch {
	case e.Others:
		return fmt.Sprintf("%s was refused, and no order leaves it with somebody else", s.register)
	case e.From == Free && e.changes():
		return fmt.Sprintf("%s was given to %s, and no order leaves it free", s.register, e.To)
	case e.changes():
		return fmt.Sprintf("%s was changed from %q, and no order leaves it so", s.register, e.From)
	case e.From == Free:
		return fmt.Sprintf("%s was not there, and no order leaves it away", s.register)
	}
	return fmt.Sprintf("%s was seen with %s, and no order leaves it so", s.register, e.From)
}
