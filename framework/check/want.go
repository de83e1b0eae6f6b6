package check

import (
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Want is a demand on the outcomes of the shots of one case.
type Want struct {
	// Text says what is demanded, for the matrix of a failure.
	Text string
	// Shots is how many shots it takes to decide.
	Shots int
	// Met reports whether the outcomes, none of which is Broken, meet the demand.
	Met func([]candidate.Outcome) bool
	// Still, if set, is what is demanded when it is looked at again, with few shots: that everybody answers need not be seen twice. It is
	// about each shot: one that is not as demanded decides.
	Still *Want
	// Silent demands are met by a prober that reaches nothing; they count only beside controls.
	Silent bool
	// ConnectionRefused demands are met by Unreachable too, unless that is what the network says of an address that nobody has.
	ConnectionRefused bool
}

// shotsAgain bounds the shots of a second look that needs few.
const shotsAgain = 4

// again is what is demanded at a second look with few shots; ok is false where that takes as many as the first.
func (w *Want) again() (still Want, ok bool) {
	switch {
	case w.Still != nil:
		return *w.Still, true
	case w.Shots > 0 && w.Shots <= shotsAgain:
		return *w, true
	}
	return Want{}, false
}

// AnsweredBy demands that each shot is answered by one of the pods.
func AnsweredBy(pods ...candidate.Pod) Want {
	return Want{Text: "answered by " + names(pods), Shots: 3, Met: func(os []candidate.Outcome) bool { return every(os, answeredBy(pods)) }}
}

// stillItself marks a demand that fewer shots can look at too.
func stillItself(w Want) Want {
	still := w
	w.Still = &still
	return w
}

// AnsweredByEach demands that each shot is answered by one of the pods, and each pod answers at least once. With backends chosen at
// random, each with the same probability, a right implementation fails it with a probability below FalseAlarm.
func AnsweredByEach(pods ...candidate.Pod) Want {
	shots := len(pods)
	if shots > 1 {
		// A pod is missed with probability (1-1/n)^shots; there are n pods (union bound).
		p := 1 - 1/float64(len(pods))
		shots = int(math.Ceil((math.Log(FalseAlarm) - math.Log(float64(len(pods)))) / math.Log(p)))
	}
	still := AnsweredBy(pods...)
	return Want{Text: "answered by each of " + names(pods), Shots: max(3, shots), Still: &still, Met: func(os []candidate.Outcome) bool {
		seen := map[candidate.PodName]bool{}
		for _, o := range os {
			seen[o.Pod] = true
		}
		return every(os, answeredBy(pods)) && len(seen) == len(pods)
	}}
}

// Evenly demands that the shots are answered by the pods, each with the same probability at random. Shares may differ from
// even by half of an even share; it takes so many shots that FalseAlarm allows no more. A pod with twice its share or with none is always found.
func Evenly(pods ...candidate.Pod) Want { return shared(pods, 1.0/2) }

// Equally demands the same, with shares that differ from even by a quarter of an even share at most. It takes some four
// times as many shots.
func Equally(pods ...candidate.Pod) Want { return shared(pods, 1.0/4) }

func shared(pods []candidate.Pod, within float64) Want {
	if len(pods) < 2 {
		return AnsweredBy(pods...)
	}
	n := float64(len(pods))
	t := within / n
	shots := TrialsWithin(1/n, t, 2*len(pods))
	still := AnsweredBy(pods...)
	return Want{Still: &still, Text: fmt.Sprintf("answered evenly by %s (share %.2f ± %.2f)", names(pods), 1/n, t), Shots: shots, Met: func(os []candidate.Outcome) bool {
		count := map[candidate.PodName]int{}
		for _, o := range os {
			count[o.Pod]++
		}
		return every(os, answeredBy(pods)) && !slices.ContainsFunc(pods, func(p candidate.Pod) bool {
			return math.Abs(float64(count[p.PodName])/float64(len(os))-1/n) > t
		})
	}}
}

// AlwaysBySame demands that all shots are answered by one and the same of the pods. Without affinity this would happen
// by chance with a probability below FalseAlarm.
func AlwaysBySame(pods ...candidate.Pod) Want {
	return stillItself(Want{
		Text: "always answered by the same of " + names(pods), Shots: 1 + TrialsUntil(1-1/float64(max(2, len(pods)))),
		Met: func(os []candidate.Outcome) bool {
			return every(os, answeredBy(pods)) && every(os, func(o candidate.Outcome) bool { return o.Pod == os[0].Pod })
		},
	})
}

// ConnectionRefused demands that each shot is refused (TCP reset or ICMP error). Silence does not meet it, nor does a
// network that knows no way to the address.
func ConnectionRefused() Want {
	return Want{Text: "refused", Shots: 2, Silent: true, ConnectionRefused: true, Met: func(os []candidate.Outcome) bool {
		return every(os, func(o candidate.Outcome) bool {
			return o.Result == candidate.Refused || o.Result == candidate.Unreachable
		})
	}}
}

// Dropped demands that each shot is left without an answer.
func Dropped() Want {
	return Want{Text: "dropped", Shots: 1, Silent: true, Met: func(os []candidate.Outcome) bool {
		return every(os, func(o candidate.Outcome) bool { return o.Result == candidate.Dropped })
	}}
}

// Unanswered demands that no shot is answered, however that shows.
func Unanswered() Want {
	return Want{Text: "not answered", Shots: 2, Silent: true, Met: func(os []candidate.Outcome) bool {
		return every(os, func(o candidate.Outcome) bool { return o.Result != candidate.Answered })
	}}
}

// NotBy demands that no shot is answered by one of the pods; that it is not answered at all is as good.
func NotBy(pods ...candidate.Pod) Want {
	return Want{Text: "not answered by " + names(pods), Shots: 2, Silent: true, Met: func(os []candidate.Outcome) bool {
		by := answeredBy(pods)
		return every(os, func(o candidate.Outcome) bool { return !by(o) })
	}}
}

// SeenFrom demands that each shot is answered, by a backend that saw one of the source addresses.
func SeenFrom(addresses ...netip.Addr) Want {
	return Want{Text: fmt.Sprintf("answered, seen from %s", joined(addresses)), Shots: 3, Met: func(os []candidate.Outcome) bool {
		return every(os, func(o candidate.Outcome) bool {
			return o.Result == candidate.Answered && slices.Contains(addresses, o.Source.Addr().Unmap())
		})
	}}
}

// NotSeenFrom demands that each shot is answered, by a backend that saw none of the source addresses.
func NotSeenFrom(addresses ...netip.Addr) Want {
	return Want{Text: fmt.Sprintf("answered, not seen from %s", joined(addresses)), Shots: 3, Met: func(os []candidate.Outcome) bool {
		return every(os, func(o candidate.Outcome) bool {
			return o.Result == candidate.Answered && !slices.Contains(addresses, o.Source.Addr().Unmap())
		})
	}}
}

// OnPort demands that each shot is answered by a backend on this port of its own.
func OnPort(port int) Want {
	return Want{Text: fmt.Sprintf("answered on port %d", port), Shots: 3, Met: func(os []candidate.Outcome) bool {
		return every(os, func(o candidate.Outcome) bool { return o.Result == candidate.Answered && o.PodPort == port })
	}}
}

// Carrying demands that the content of each shot arrives there and back as it was sent.
func Carrying(payload int) Want {
	return Want{Text: fmt.Sprintf("carrying %d bytes each way", payload), Shots: 1, Met: func(os []candidate.Outcome) bool {
		return every(os, func(o candidate.Outcome) bool { return o.Result == candidate.Answered && o.Payload == payload })
	}}
}

// HTTPStatus demands that each shot, an HTTP GET, is answered with the code.
func HTTPStatus(code int) Want {
	return Want{Text: fmt.Sprintf("HTTP %d", code), Shots: 1, Met: func(os []candidate.Outcome) bool {
		return every(os, func(o candidate.Outcome) bool { return o.HTTP != nil && o.HTTP.Code == code })
	}}
}

// AllOf demands all of them of the same shots.
func AllOf(wants ...Want) Want {
	all := Want{Met: func(os []candidate.Outcome) bool {
		return !slices.ContainsFunc(wants, func(w Want) bool { return !w.Met(os) })
	}}
	stills := make([]Want, len(wants))
	for i, w := range wants {
		still, ok := w.again()
		if !ok {
			stills = nil
			break
		}
		stills[i] = still
	}
	if stills != nil {
		all.Still = &Want{Met: func(os []candidate.Outcome) bool {
			return !slices.ContainsFunc(stills, func(w Want) bool { return !w.Met(os) })
		}}
	}
	var texts []string
	for _, w := range wants {
		texts = append(texts, w.Text)
		all.Shots = max(all.Shots, w.Shots)
		all.Silent = all.Silent || w.Silent
		all.ConnectionRefused = all.ConnectionRefused || w.ConnectionRefused
	}
	all.Text = strings.Join(texts, "; ")
	return all
}

// NoEndpoints demands what the implementation declares for something that leads to no endpoint: silence, a refusal, or,
// where it declares nothing, either.
func (n *Network) NoEndpoints(declared string) Want {
	switch declared {
	case "reject":
		return ConnectionRefused()
	case "drop":
		return Dropped()
	}
	return Unanswered()
}

func every(os []candidate.Outcome, demand func(candidate.Outcome) bool) bool {
	return len(os) > 0 && !slices.ContainsFunc(os, func(o candidate.Outcome) bool { return !demand(o) })
}

func answeredBy(pods []candidate.Pod) func(candidate.Outcome) bool {
	return func(o candidate.Outcome) bool {
		return o.Result == candidate.Answered && slices.ContainsFunc(pods, func(p candidate.Pod) bool { return p.PodName == o.Pod })
	}
}

func names(pods []candidate.Pod) string {
	var ns []string
	for _, p := range pods {
		ns = append(ns, p.Name)
	}
	return strings.Join(ns, ", ")
}

func joined(addresses []netip.Addr) string {
	var ns []string
	for _, a := range addresses {
		ns = append(ns, a.String())
	}
	return strings.Join(ns, " or ")
}
