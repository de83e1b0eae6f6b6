// Package history decides whether any order of requests that clients sent at the same time explains every answer.
//
// What requests are about are registers: an address or a node port, whose value is its holder, and a Service, whose
// value is the state that it was left in. A history is explained if there is an order in which each answer follows from
// those before it, and a request that was answered before another one began stands before that (linearizability). The
// order may be sought for each register alone (Herlihy and Wing), which porcupine does.
package history

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/anishathalye/porcupine"
)

// Free is the value of a register that nobody holds, and of a Service that does not exist.
const Free = ""

// Never is the end of a request that got no answer: it may take effect at any time after its begin.
const Never = math.MaxInt64

// Effect is what an answer says of one register: its value before the request, and after it.
type Effect struct {
	Register string
	From, To string
	// Others is set of a refusal: the register has neither the value From nor is it free, and it stays as it is.
	Others bool
}

// Take is that a free register was given to a holder.
func Take(register, holder string) Effect { return Effect{Register: register, From: Free, To: holder} }

// Give is that a holder gave a register back.
func Give(register, holder string) Effect { return Effect{Register: register, From: holder, To: Free} }

// See is that a register was read, and had a value.
func See(register, value string) Effect { return Effect{Register: register, From: value, To: value} }

// Turn is that the value of a register was changed.
func Turn(register, from, to string) Effect { return Effect{Register: register, From: from, To: to} }

// Refuse is that a register was denied to somebody because another one holds it.
func Refuse(register, to string) Effect { return Effect{Register: register, From: to, Others: true} }

// changes reports whether the effect leaves another value than it finds.
func (e *Effect) changes() bool { return !e.Others && e.From != e.To }

// applied returns the value after the effect, and whether the effect is possible.
func (e *Effect) applied(value string) (string, bool) {
	if e.Others {
		return value, value != Free && value != e.From
	}
	return e.To, value == e.From
}

// Operation is one request with its begin, its end and what its answer says.
type Operation struct {
	Client int
	// Begin and End are moments on one clock. End is Never for a request without an answer.
	Begin, End time.Duration
	Effects    []Effect
	// Held are registers of which the answer says that all of them were held.
	Held []string
	// Command is how a person sends the request, and Answer what came back. They are for readers.
	Command, Answer string
}

// on returns the effect on a register.
func (o *Operation) on(register string) *Effect {
	for i := range o.Effects {
		if o.Effects[i].Register == register {
			return &o.Effects[i]
		}
	}
	return nil
}

// Cloud is a register that may be held from a moment on, by a request of which nobody knows what became.
type Cloud struct {
	Register string
	From     time.Duration
}

// History is what clients did, in any order.
type History struct {
	// Initially are the values of registers that are not free at the beginning.
	Initially  map[string]string
	Operations []Operation
	Clouds     []Cloud
	// Lag is for how long a register that was given back may still count as held where an answer says that all of several are.
	Lag time.Duration
}

// Unexplained is the shortest part of a history that was found which has no explanation.
type Unexplained struct {
	// Register is what it is about, and Last the operation whose answer cannot be. Its place in Operations is that of its begin.
	Register   string
	Last       *Operation
	Operations []Operation
	// Why says what is wrong with the last answer.
	Why string
}

// Decide returns a part of the history that no order of its operations explains, nil if there is an order. The
// registers that took longer than the bound to decide are returned as well.
func (h *History) Decide(bound time.Duration) (u *Unexplained, undecided []string) {
	byRegister := h.registers()
	names := make([]string, 0, len(byRegister))
	for name := range byRegister {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		s := &search{register: name, initially: h.Initially[name], bound: bound}
		switch s.decide(byRegister[name]) {
		case porcupine.Illegal:
			return s.shortest(byRegister[name]), undecided
		case porcupine.Unknown:
			undecided = append(undecided, name)
		}
	}
	return h.notHeld(), undecided
}

// registers are the operations on each register, by their begin. A refusal that a cloud explains is left out.
func (h *History) registers() map[string][]Operation {
	clouds := map[string]time.Duration{}
	for _, c := range h.Clouds {
		if from, known := clouds[c.Register]; !known || c.From < from {
			clouds[c.Register] = c.From
		}
	}
	all := map[string][]Operation{}
	for i := range h.Operations {
		o := &h.Operations[i]
		for _, e := range o.Effects {
			if from, clouded := clouds[e.Register]; clouded && e.Others && o.End >= from {
				continue
			}
			all[e.Register] = append(all[e.Register], *o)
		}
	}
	for _, operations := range all {
		slices.SortStableFunc(operations, byBegin)
	}
	return all
}

func byBegin(a, b Operation) int { return cmp.Compare(a.Begin, b.Begin) }

// tenure is the time in which a register may have been held.
type tenure struct {
	from, to   time.Duration
	taken, end *Operation // nil of one that was there before, or has not ended
}

// tenures are those of each register. A holder takes and gives in turn.
func (h *History) tenures() map[string][]tenure {
	all := map[string][]tenure{}
	for register, operations := range h.registers() {
		open := map[string][]int{}
		begin := func(holder string, t tenure) {
			open[holder] = append(open[holder], len(all[register]))
			all[register] = append(all[register], t)
		}
		if holder := h.Initially[register]; holder != Free {
			begin(holder, tenure{to: Never})
		}
		for i := range operations {
			o := &operations[i]
			switch e := o.on(register); {
			case !e.changes():
			case e.From == Free:
				begin(e.To, tenure{from: o.Begin, to: Never, taken: o})
			case len(open[e.From]) > 0:
				t := &all[register][open[e.From][0]]
				t.to, t.end = o.End, o
				open[e.From] = open[e.From][1:]
			}
		}
	}
	for register, holder := range h.Initially {
		if len(all[register]) == 0 && holder != Free {
			all[register] = []tenure{{to: Never}}
		}
	}
	for _, c := range h.Clouds {
		all[c.Register] = append(all[c.Register], tenure{from: c.From, to: Never})
	}
	return all
}

// notHeld finds an operation whose answer says that a register was held, which nobody can have held at the time.
func (h *History) notHeld() *Unexplained {
	tenures := h.tenures()
	for i := range h.Operations {
		o := &h.Operations[i]
		for _, register := range o.Held {
			var last *tenure
			held := false
			for k := range tenures[register] {
				t := &tenures[register][k]
				if t.from <= o.End && t.to >= o.Begin-h.Lag {
					held = true
					break
				}
				if t.from < o.Begin && (last == nil || t.to > last.to) {
					last = t
				}
			}
			if held {
				continue
			}
			u := &Unexplained{Register: register, Last: o, Why: register + " was free all the time, and the answer presupposes that it was held"}
			if last != nil && last.taken != nil {
				u.Operations = append(u.Operations, *last.taken)
			}
			if last != nil && last.end != nil {
				u.Operations = append(u.Operations, *last.end)
			}
			u.Operations = append(u.Operations, *o)
			return u
		}
	}
	return nil
}
