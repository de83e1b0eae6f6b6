package history_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/internal/history"
)

// bound is never reached by what is decided here.
const bound = time.Minute

const ip = "10.96.0.5"

// does makes an operation of a client.
func does(client int, begin, end time.Duration, effects ...history.Effect) history.Operation {
	var said []string
	for _, e := range effects {
		said = append(said, fmt.Sprintf("%+v", e))
	}
	return history.Operation{Client: client, Begin: begin, End: end, Effects: effects, Answer: strings.Join(said, ", ")}
}

func TestDecide(t *testing.T) {
	for _, c := range []struct {
		name       string
		operations []history.Operation
		clouds     []history.Cloud
		lag        time.Duration
		shortest   int // operations without an explanation, 0 if there is one
	}{
		{name: "nothing"},
		{name: "one after the other", operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(0, 2, 3, history.Give(ip, "a")), does(1, 4, 5, history.Take(ip, "b")),
		}},
		{name: "the one freed while the other took", operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(0, 2, 9, history.Give(ip, "a")), does(1, 3, 4, history.Take(ip, "b")), does(2, 5, 6, history.See(ip, "b")),
		}},
		{name: "given to two", shortest: 2, operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(1, 0, 1, history.Take(ip, "b")), does(2, 3, 4, history.Refuse(ip, "c")),
			does(0, 5, 6, history.Give(ip, "a")), does(1, 5, 6, history.Give(ip, "b")),
		}},
		{name: "seen after it was freed and taken", shortest: 4, operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(0, 2, 9, history.Give(ip, "a")), does(1, 3, 4, history.Take(ip, "b")), does(2, 5, 6, history.See(ip, "a")),
		}},
		{name: "a conflict with whom freed it meanwhile", operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(0, 2, 5, history.Give(ip, "a")), does(1, 4, 6, history.Refuse(ip, "b")),
		}},
		{name: "a conflict with nobody", shortest: 1, operations: []history.Operation{
			does(0, 0, 1, history.Take("10.96.0.6", "a")), does(1, 4, 6, history.Refuse(ip, "b")),
		}},
		{name: "a conflict after it was freed", shortest: 3, operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(0, 2, 3, history.Give(ip, "a")), does(1, 4, 6, history.Refuse(ip, "b")),
		}},
		{name: "a conflict under a cloud", clouds: []history.Cloud{{Register: ip, From: 3}}, operations: []history.Operation{
			does(1, 4, 6, history.Refuse(ip, "b")),
		}},
		{name: "a conflict before the cloud", shortest: 1, clouds: []history.Cloud{{Register: ip, From: 7}}, operations: []history.Operation{
			does(1, 4, 6, history.Refuse(ip, "b")),
		}},
		{name: "freed by a request without an answer", operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(0, 2, history.Never, history.Give(ip, "a")), does(1, 7, 8, history.Take(ip, "b")),
		}},
		{name: "lost", shortest: 2, operations: []history.Operation{
			does(0, 0, 1, history.Turn("service a", history.Free, ip)), does(1, 2, 3, history.See("service a", history.Free)),
		}},
		{name: "changed and read", operations: []history.Operation{
			does(0, 0, 1, history.Turn("service a", history.Free, ip)), does(0, 2, 3, history.Turn("service a", ip, "alias")), does(1, 2, 3, history.See("service a", ip)),
		}},
		{name: "full, and one was free", shortest: 1, operations: []history.Operation{
			{Client: 0, Begin: 0, End: 1, Held: []string{ip}},
		}},
		{name: "full, and one was free again", shortest: 3, operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(0, 2, 3, history.Give(ip, "a")), {Client: 0, Begin: 5, End: 6, Held: []string{ip}},
		}},
		{name: "full, and one was free for less than the lag", lag: 2, operations: []history.Operation{
			does(0, 0, 1, history.Take(ip, "a")), does(0, 2, 3, history.Give(ip, "a")), {Client: 0, Begin: 5, End: 6, Held: []string{ip}},
		}},
		{name: "full", operations: []history.Operation{
			does(0, 0, 9, history.Take(ip, "a")), {Client: 1, Begin: 5, End: 6, Held: []string{ip, "10.96.0.1"}},
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := history.History{Initially: map[string]string{"10.96.0.1": "kubernetes"}, Operations: c.operations, Clouds: c.clouds, Lag: c.lag}
			u, undecided := h.Decide(bound)
			if len(undecided) > 0 {
				t.Fatalf("undecided: %v", undecided)
			}
			switch {
			case u == nil && c.shortest > 0:
				t.Fatalf("it has an explanation, and should have none")
			case u != nil && len(u.Operations) != c.shortest:
				t.Fatalf("%s: %d operations without an explanation, not %d: %v", u.Why, len(u.Operations), c.shortest, u.Operations)
			case u != nil && u.Why == "":
				t.Fatal("it does not say why")
			}
		})
	}
}

// recorded is a history of clients of a correct record. Each request takes effect at some moment between begin and end.
func recorded(random *rand.Rand, clients, requests int) history.History {
	const registers = 4
	h := history.History{Initially: map[string]string{"r0": "kubernetes"}}
	values := map[string]string{"r0": "kubernetes"}
	busy := make([]time.Duration, clients) // the end of the last request
	had := make([]string, clients)
	for i := range requests {
		at := time.Duration(10 * (i + 1)) // requests take effect in this order
		client := random.IntN(clients)
		if busy[client] >= at {
			continue
		}
		holder, register := fmt.Sprintf("s%d", client), fmt.Sprintf("r%d", random.IntN(registers))
		var e history.Effect
		switch {
		case random.IntN(4) == 0:
			e = history.See(register, values[register])
		case had[client] != "":
			e = history.Give(had[client], holder)
			values[had[client]], had[client] = history.Free, ""
		case values[register] == history.Free:
			e = history.Take(register, holder)
			values[register], had[client] = holder, register
		default:
			e = history.Refuse(register, holder)
		}
		begin := max(busy[client]+1, at-time.Duration(random.IntN(60)))
		end := at + time.Duration(random.IntN(60))
		busy[client] = end
		h.Operations = append(h.Operations, does(client, begin, end, e))
	}
	return h
}

// What a correct record answers has an explanation, whatever the order in which clients learn of it.
func TestCorrectRecordIsExplained(t *testing.T) {
	for seed := range uint64(200) {
		h := recorded(rand.New(rand.NewPCG(seed, 0)), 6, 300)
		if u, _ := h.Decide(bound); u != nil {
			t.Fatalf("seed %d: %s: %v", seed, u.Why, u.Operations)
		}
	}
}

// An answer that says something else of a register than it can have been has no explanation.
func TestFalsifiedAnswerIsUnexplained(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		h := recorded(random, 6, 300)
		i := random.IntN(len(h.Operations))
		for e := h.Operations[i].Effects[0]; !e.Others && e.From != e.To; e = h.Operations[i].Effects[0] { // one that changes nothing
			i = random.IntN(len(h.Operations))
		}
		e := &h.Operations[i].Effects[0]
		*e = history.See(e.Register, "somebody that never was")
		u, _ := h.Decide(bound)
		if u == nil {
			t.Fatalf("seed %d: the falsified answer %+v is explained", seed, *e)
		}
		if !slices.ContainsFunc(u.Operations, func(o history.Operation) bool { return o.Effects[0] == *e }) {
			t.Fatalf("seed %d: the falsified answer is not in what has no explanation: %v", seed, u.Operations)
		}
	}
}

// A register that is given to a second holder in the middle of a tenure has no explanation, and three requests at most show it.
func TestSecondHolderIsUnexplained(t *testing.T) {
	for seed := range uint64(200) {
		h := recorded(rand.New(rand.NewPCG(seed, 2)), 6, 300)
		for _, o := range h.Operations {
			e := o.Effects[0]
			if e.From != history.Free || e.Others || e.To == history.Free {
				continue
			}
			h.Operations = append(h.Operations, does(7, o.End+1, o.End+2, history.See(e.Register, e.To)), does(8, o.End+1, o.End+2, history.Take(e.Register, "thief")))
			break
		}
		u, _ := h.Decide(bound)
		if u == nil {
			t.Fatalf("seed %d: a register with two holders is explained", seed)
		}
	}
}

func BenchmarkDecide(b *testing.B) {
	h := recorded(rand.New(rand.NewPCG(1, 1)), 8, 4000)
	for b.Loop() {
		h.Decide(bound)
	}
	b.ReportMetric(float64(len(h.Operations))*float64(b.N)/b.Elapsed().Seconds(), "operations/s")
}
