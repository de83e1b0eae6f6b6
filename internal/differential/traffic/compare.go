package traffic

import (
	"context"
	"fmt"
	"math"
	"sync/atomic"
	"time"

	"github.com/service-conformance/conformance/internal/differential/random"
)

// Difference is what one probe sees on the reference, and something else on the other side.
type Difference struct {
	// State is the number of the state, and Probe what was sent.
	State int
	Probe Probe
	// Reference and Real are what was seen.
	Reference, Real string
	// Tolerated names the tolerance that covers it; empty if none does.
	Tolerated string
}

func (d Difference) String() string {
	return fmt.Sprintf("state %d, %s\n  reference: %s\n  real:      %s", d.State, d.Probe, d.Reference, d.Real)
}

const (
	// shotsOfReference meet every endpoint that can be met: of eight the chance to miss one is below 1e-9.
	shotsOfReference = 200
	// shotsOfReal meet no endpoint that must not be met. How many are needed to meet each one is counted by enough.
	shotsOfReal = 10
	// falseAlarm bounds the chance that an endpoint is missed by chance.
	falseAlarm = 1e-9
)

// enough is how many shots miss none of n endpoints.
func enough(n int) int {
	if n < 2 {
		return shotsOfReal
	}
	return int(math.Ceil((math.Log(falseAlarm) - math.Log(float64(n))) / math.Log(1-1/float64(n))))
}

// Patience is how long the real side may take to follow a state.
const Patience = 12 * time.Second

// Pair is both sides.
type Pair struct {
	Reference, Real *Side
	// Patience is how long the real side may take to follow.
	Patience time.Duration
	// Probes counts those whose answers were compared.
	Probes atomic.Int64
}

// NewPair makes both sides. Silence of the real one lasts a second, and that of the reference nothing.
func NewPair(reference, other *Side, patience time.Duration) *Pair {
	reference.withoutAffinity = true
	return &Pair{Reference: reference, Real: other, Patience: patience}
}

// Slots is how many topologies there can be at a time. Those of other slots have other names and ports.
const Slots = 3000

// Compare has a topology on both sides, and returns what differs. An error is one of the environment.
func (c *Pair) Compare(ctx context.Context, slot int, t Topology) (differences []Difference, err error) {
	reference, other := c.Reference.place(slot), c.Real.place(slot)
	defer func() {
		ctx := context.WithoutCancel(ctx)
		for _, p := range []*placed{reference, other} {
			if removed := p.remove(ctx); removed != nil && err == nil {
				err = removed
			}
		}
	}()
	return random.InTurn(t.States, func(s *State, number int) ([]Difference, error) {
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
		if v := s.Services[i].ID; refused[v] != refusedThere[v] {
			return []Difference{{State: number, Probe: Probe{Service: v, From: "client", To: toAPI}, Reference: answerOf(refused[v]), Real: answerOf(refusedThere[v])}}, nil
		}
	}
	c.Probes.Add(int64(len(s.Probes)))
	want, err := reference.observe(ctx, s.Probes, shotsOfReference)
	if err != nil {
		return nil, err
	}
	left := make([]int, len(s.Probes))
	for i := range left {
		left[i] = i
	}
	last := make([]Seen, len(s.Probes))
	for began := time.Now(); len(left) > 0; {
		late := time.Since(began) >= c.Patience
		allTolerated := len(last[left[0]]) > 0
		if left, err = c.tryAgain(ctx, other, s, want, last, left); err != nil {
			return nil, err
		}
		for _, i := range left {
			allTolerated = allTolerated && toleranceOf(s, &s.Probes[i], want[i], last[i]) != nil
		}
		if late || allTolerated && time.Since(began) > c.Patience/4 {
			break
		}
		if len(left) > 0 {
			select {
			case <-ctx.Done():
				return nil, ctx.Err()
			case <-time.After(c.Patience / 60):
			}
		}
	}
	var differences []Difference
	for _, i := range left {
		d := Difference{State: number, Probe: s.Probes[i], Reference: want[i].String(), Real: last[i].String()}
		if t := toleranceOf(s, &s.Probes[i], want[i], last[i]); t != nil {
			d.Tolerated = t.Name
		}
		differences = append(differences, d)
	}
	return differences, nil
}

// toAPI is in the place of an address where the servers answer to a Service differently.
const toAPI To = "API"

func answerOf(code int32) string {
	if code == 0 {
		return "accepted"
	}
	return fmt.Sprintf("refused with %d", code)
}

// tryAgain sends the probes that are left, and returns those that still see something else. last is what each saw at last.
func (c *Pair) tryAgain(ctx context.Context, other *placed, s *State, want, last []Seen, left []int) (still []int, err error) {
	byShots := map[int][]int{}
	for _, i := range left {
		shots := shotsOfReal
		if want[i].answered() == 0 {
			shots = 2 // silence takes its time
		}
		byShots[shots] = append(byShots[shots], i)
	}
	affine := func(i int) bool { return s.service(s.Probes[i].Service).Affinity }
	var sparse []int // may have missed something by chance
	for shots, of := range byShots {
		seen, err := other.observe(ctx, choose(s.Probes, of), shots)
		if err != nil {
			return nil, err
		}
		for k, i := range of {
			last[i] = seen[k]
			switch {
			case !within(seen[k], want[i]) || affine(i) && len(seen[k]) > 1:
				still = append(still, i)
			case !affine(i) && len(seen[k]) < len(want[i]):
				sparse = append(sparse, i)
			}
		}
	}
	for _, i := range sparse {
		seen, err := other.observe(ctx, choose(s.Probes, []int{i}), enough(len(want[i])))
		if err != nil {
			return nil, err
		}
		if last[i] = seen[0]; !within(last[i], want[i]) || len(last[i]) < len(want[i]) {
			still = append(still, i)
		}
	}
	return still, nil
}

func choose(probes []Probe, of []int) (chosen []Probe) {
	for _, i := range of {
		chosen = append(chosen, probes[i])
	}
	return chosen
}

// within reports whether all that was seen may be seen.
func within(seen, want Seen) bool {
	for what := range seen {
		if !want[what] {
			return false
		}
	}
	return true
}

// Class says from where to where, and what was seen, without saying by which backends.
func (d Difference) Class() string {
	return string(d.Probe.From) + " to " + string(d.Probe.To) + ": " + kindOf(d.Reference) + " on the reference, " + kindOf(d.Real) + " on the real one"
}

// Tolerance implements random.Difference.
func (d Difference) Tolerance() string { return d.Tolerated }
