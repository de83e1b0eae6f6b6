package dns

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"sync/atomic"
	"time"

	"github.com/service-conformance/conformance/internal/differential/random"
)

// Difference is what one question is answered on the reference, and something else on the other side.
type Difference struct {
	// State is the number of the state, and Question what was asked.
	State    int
	Question Question
	// Kind is that of the Service; empty if there is none of that name.
	Kind Kind
	// Refused says that the servers answer differently to the Service itself.
	Refused bool
	// Reference and Real are the answers.
	Reference, Real string
	// Tolerated names the tolerance that covers it; empty if none does.
	Tolerated string
}

func (d Difference) String() string {
	what := d.Question.String()
	if d.Refused {
		what = fmt.Sprintf("a write of Service %d", d.Question.Service)
	}
	return fmt.Sprintf("state %d, %s\n  reference: %s\n  real:      %s", d.State, what, d.Reference, d.Real)
}

var numbers = regexp.MustCompile(`[0-9a-f.:-]*\d[0-9a-f.:-]*`)

// Class says what is asked of which kind of Service, and how it is answered, without numbers.
func (d Difference) Class() string {
	kind := string(d.Kind)
	if kind == "" {
		kind = "no Service"
	}
	what := string(d.Question.Type)
	if d.Refused {
		what = "a write"
	} else if d.Question.Below != "" {
		what += " below the name"
	}
	return fmt.Sprintf("%s, %s: %s on the reference, %s on the real one", kind, what, numbers.ReplaceAllString(d.Reference, "#"), numbers.ReplaceAllString(d.Real, "#"))
}

// Tolerance implements random.Difference.
func (d Difference) Tolerance() string { return d.Tolerated }

// Patience is how long the real side may take to follow a state.
const Patience = 5 * time.Second

// Pair is both sides.
type Pair struct {
	Reference, Real *Side
	// Patience is how long the real side may take to follow.
	Patience time.Duration
	// Questions counts those whose answers were compared.
	Questions atomic.Int64
}

// Slots is how many zones there can be at a time: each has addresses of its own.
const Slots = 3000

// Compare has a zone on both sides, and returns what differs. An error is one of the environment.
func (c *Pair) Compare(ctx context.Context, slot int, z Zone) (differences []Difference, err error) {
	reference, other := c.Reference.place(slot), c.Real.place(slot)
	defer func() {
		ctx := context.WithoutCancel(ctx)
		for _, p := range []*placed{reference, other} {
			if removed := p.remove(ctx); removed != nil && err == nil {
				err = removed
			}
		}
	}()
	return random.InTurn(z.States, func(s *State, number int) ([]Difference, error) {
		return c.compareState(ctx, reference, other, s, number)
	})
}

func (c *Pair) compareState(ctx context.Context, reference, other *placed, s *State, number int) ([]Difference, error) {
	refused, err := reference.apply(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	refusedThere, err := other.apply(ctx, s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", other.side.Name, err)
	}
	for i := range s.Services {
		if v := &s.Services[i]; refused[v.ID] != refusedThere[v.ID] {
			answer := func(code int32) string { return fmt.Sprintf("HTTP %d", max(code, 200)) }
			return []Difference{{State: number, Kind: v.Kind, Refused: true, Question: Question{Service: v.ID}, Reference: answer(refused[v.ID]), Real: answer(refusedThere[v.ID])}}, nil
		}
	}
	c.Questions.Add(int64(len(s.Questions)))
	want, err := reference.ask(ctx, s.Questions)
	if err != nil {
		return nil, err
	}
	for began := time.Now(); ; {
		late := time.Since(began) >= c.Patience
		said, err := other.ask(ctx, s.Questions)
		if err != nil {
			return nil, err
		}
		differences := reference.differences(s, number, want, said)
		if late || !slices.ContainsFunc(differences, func(d Difference) bool { return d.Tolerated == "" }) {
			return differences, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(c.Patience / 100):
		}
	}
}

func (p *placed) differences(s *State, number int, want, said []string) (all []Difference) {
	for i, q := range s.Questions {
		if want[i] == said[i] {
			continue
		}
		d := Difference{State: number, Question: q, Reference: want[i], Real: said[i]}
		if p.services[q.Service] != nil {
			d.Kind = p.kinds[q.Service].Kind // that which is stored: a change of it may be refused
		}
		if t := toleranceOf(&d); t != nil {
			d.Tolerated = t.Name
		}
		all = append(all, d)
	}
	return all
}
