package check

import (
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/candidate"
)

func podNamed(name string) candidate.Pod {
	return candidate.Pod{PodName: candidate.PodName{Namespace: "ns", Name: name}}
}

// podsNamed returns n pods: p0, p1 …
func podsNamed(n int) []candidate.Pod {
	var pods []candidate.Pod
	for i := range n {
		pods = append(pods, podNamed(fmt.Sprintf("p%d", i)))
	}
	return pods
}

// by is an answer of the pod on port 8080, which saw the client as 10.0.0.1.
func by(name string) candidate.Outcome {
	return candidate.Outcome{Result: candidate.Answered, Pod: podNamed(name).PodName, PodPort: 8080, Source: netip.MustParseAddrPort("10.0.0.1:40000")}
}

func met(r candidate.Result) candidate.Outcome { return candidate.Outcome{Result: r} }

func httpCode(code int) candidate.Outcome {
	return candidate.Outcome{Result: candidate.Answered, HTTP: &candidate.HTTPAnswer{Code: code}}
}

// drawn are answers of pods, each chosen with a probability in proportion to its weight.
func drawn(r *rand.Rand, shots int, pods []candidate.Pod, weight func(i int) float64) []candidate.Outcome {
	var total float64
	for i := range pods {
		total += weight(i)
	}
	os := make([]candidate.Outcome, shots)
	for k := range os {
		x, i := r.Float64()*total, 0
		for x >= weight(i) && i < len(pods)-1 {
			x -= weight(i)
			i++
		}
		os[k] = by(pods[i].Name)
	}
	return os
}

func fair(int) float64 { return 1 }

func TestEachWantTellsMetFromUnmet(t *testing.T) {
	type outcomes = []candidate.Outcome
	a, b, c := podNamed("a"), podNamed("b"), podNamed("c")
	stranger := by("a")
	stranger.Pod.Namespace = "other"
	mapped, onOther := by("a"), by("a")
	mapped.Source = netip.MustParseAddrPort("[::ffff:10.0.0.1]:40000")
	onOther.PodPort = 9090
	one, two := netip.MustParseAddr("10.0.0.1"), netip.MustParseAddr("10.0.0.2")
	refused, unreachable, dropped, reset := met(candidate.Refused), met(candidate.Unreachable), met(candidate.Dropped), met(candidate.Reset)
	for _, w := range []struct {
		want       Want
		text       string
		silent     bool
		met, unmet []outcomes
	}{
		{
			AnsweredBy(a, b), "answered by a, b", false,
			[]outcomes{{by("a")}, {by("a"), by("b")}},
			[]outcomes{{by("a"), by("c")}, {by("a"), dropped}, {stranger}, {refused}, {reset}},
		}, {
			AnsweredByEach(a, b), "answered by each of a, b", false,
			[]outcomes{{by("a"), by("b")}, {by("b"), by("b"), by("a")}},
			[]outcomes{{by("a"), by("a")}, {by("a"), by("b"), by("c")}, {by("a"), by("c")}, {by("a"), by("b"), dropped}, {by("a"), stranger}},
		}, {
			AnsweredByEach(a), "answered by each of a", false, []outcomes{{by("a")}}, []outcomes{{by("b")}, {dropped}},
		}, {
			Evenly(a, b), "answered evenly by a, b (share 0.50 ± ", false,
			[]outcomes{{by("a"), by("b")}},
			[]outcomes{{by("a"), by("a")}, {by("a"), by("a"), by("a"), by("a"), by("b")}, {by("a"), by("b"), by("c")}, {by("a"), by("b"), dropped}},
		}, {
			AlwaysBySame(a, b), "always answered by the same of a, b", false,
			[]outcomes{{by("a"), by("a")}, {by("b"), by("b")}},
			[]outcomes{{by("a"), by("b")}, {by("c"), by("c")}, {by("a"), dropped}, {by("a"), stranger}},
		}, {
			ConnectionRefused(), "refused", true,
			[]outcomes{{refused}, {refused, unreachable}},
			[]outcomes{{dropped}, {refused, dropped}, {by("a")}, {reset}},
		}, {
			Dropped(), "dropped", true, []outcomes{{dropped}, {dropped, dropped}}, []outcomes{{refused}, {unreachable}, {dropped, by("a")}, {reset}},
		}, {
			Unanswered(), "not answered", true,
			[]outcomes{{dropped}, {refused, dropped, unreachable, reset}},
			[]outcomes{{by("a")}, {dropped, by("a")}, {httpCode(503)}},
		}, {
			NotBy(a, b), "not answered by a, b", true,
			[]outcomes{{dropped}, {refused, by("c")}, {stranger}},
			[]outcomes{{by("a")}, {dropped, by("b")}},
		}, {
			SeenFrom(two, one), "answered, seen from 10.0.0.2 or 10.0.0.1", false,
			[]outcomes{{by("a"), by("b")}, {mapped}},
			[]outcomes{{dropped}, {by("a"), refused}, {httpCode(200)}},
		}, {
			SeenFrom(two), "answered, seen from 10.0.0.2", false, nil, []outcomes{{by("a")}, {mapped}},
		}, {
			NotSeenFrom(two), "answered, not seen from 10.0.0.2", false,
			[]outcomes{{by("a")}, {mapped, by("b")}},
			[]outcomes{{dropped}, {by("a"), refused}},
		}, {
			NotSeenFrom(two, one), "answered, not seen from 10.0.0.2 or 10.0.0.1", false, nil, []outcomes{{by("a")}, {mapped}},
		}, {
			OnPort(8080), "answered on port 8080", false,
			[]outcomes{{by("a"), by("c")}},
			[]outcomes{{by("a"), onOther}, {by("a"), dropped}, {{Result: candidate.Reset, PodPort: 8080}}},
		}, {
			HTTPStatus(503), "HTTP 503", false, []outcomes{{httpCode(503)}}, []outcomes{{httpCode(200)}, {by("a")}, {httpCode(503), dropped}},
		}, {
			AllOf(AnsweredBy(a, b, c), NotSeenFrom(two), OnPort(8080)), "answered by a, b, c; answered, not seen from 10.0.0.2; answered on port 8080", false,
			[]outcomes{{by("a"), by("c")}},
			[]outcomes{{onOther}, {by("d")}, {dropped}},
		},
	} {
		t.Run(w.text, func(t *testing.T) {
			if !strings.HasPrefix(w.want.Text, w.text) || w.want.Silent != w.silent || w.want.Shots < 1 {
				t.Errorf("text %q, silent %v, %d shots", w.want.Text, w.want.Silent, w.want.Shots)
			}
			for _, os := range w.met {
				if !w.want.Met(os) {
					t.Errorf("unmet by %s", describe(os))
				}
			}
			// No shot proves nothing, whatever is demanded.
			for _, os := range append(w.unmet, outcomes{}) {
				if w.want.Met(os) {
					t.Errorf("met by %s", describe(os))
				}
			}
			// A prober that reaches nothing must not meet a demand that has no controls.
			if nothing := (outcomes{dropped, dropped}); w.want.Met(nothing) && !w.want.Silent {
				t.Error("met by silence, and not marked as silent")
			}
		})
	}
}

func TestNoEndpointsFollowsTheDeclaration(t *testing.T) {
	var n Network
	for declared, want := range map[string]string{"reject": "refused", "drop": "dropped", "": "not answered"} {
		if w := n.NoEndpoints(declared); w.Text != want || !w.Silent {
			t.Errorf("declared %q: demands %q, silent %v", declared, w.Text, w.Silent)
		}
	}
}

// missed is the probability that one of n pods, each chosen with the same probability, does not answer any of the shots.
func missed(n, shots int) float64 {
	var sum, choose float64 = 0, 1
	for k := 1; k < n; k++ { // inclusion and exclusion of the pods that are missed
		choose *= float64(n-k+1) / float64(k)
		term := choose * math.Pow(1-float64(k)/float64(n), float64(shots))
		if k%2 == 0 {
			term = -term
		}
		sum += term
	}
	return sum
}

func TestShotsOfAnsweredByEachFollowFromTheBound(t *testing.T) {
	if p := missed(2, 3); p != 0.25 { // both of two in three shots fail with 2·(1/2)³
		t.Fatalf("the probability to miss one of two pods in three shots is computed as %g", p)
	}
	for n := 2; n <= 32; n++ {
		shots := AnsweredByEach(podsNamed(n)...).Shots
		if p := missed(n, shots); p > FalseAlarm {
			t.Errorf("%d pods: one is missed in %d shots with probability %g", n, shots, p)
		}
		if p := missed(n, shots-2); p < FalseAlarm {
			t.Errorf("%d pods: %d shots are more than it takes", n, shots)
		}
	}
}

func TestShotsOfAlwaysBySameFollowFromTheBound(t *testing.T) {
	for n := 2; n <= 32; n++ {
		w := AlwaysBySame(podsNamed(n)...)
		if p := math.Pow(1/float64(n), float64(w.Shots-1)); p > FalseAlarm*(1+1e-12) { // 10 pods meet the bound exactly
			t.Errorf("%d pods: without affinity all of %d shots meet the same with probability %g", n, w.Shots, p)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	pods := podsNamed(2)
	w := AlwaysBySame(pods...)
	for range 1000 {
		if w.Met(drawn(r, w.Shots, pods, fair)) {
			t.Fatal("met without affinity")
		}
	}
}

const draws = 200

func TestEvenlyAcceptsAFairDraw(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		pods := podsNamed(n)
		w := Evenly(pods...)
		r := rand.New(rand.NewPCG(uint64(n), 1))
		for range draws {
			if os := drawn(r, w.Shots, pods, fair); !w.Met(os) {
				t.Fatalf("%d pods, %d shots: unmet by %s", n, w.Shots, describe(os))
			}
		}
	}
}

// refusals is how many of the draws Evenly refuses when the first of n pods has a share times the even one. The others
// share the rest.
func refusals(n int, times float64) int {
	pods := podsNamed(n)
	w := Evenly(pods...)
	r := rand.New(rand.NewPCG(uint64(n), math.Float64bits(times)))
	refused := 0
	for range draws {
		if !w.Met(drawn(r, w.Shots, pods, func(i int) float64 {
			if i == 0 {
				return times / float64(n)
			}
			return (1 - times/float64(n)) / float64(n-1)
		})) {
			refused++
		}
	}
	return refused
}

func TestEvenlyRefusesAShareOfDouble(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		if k := refusals(n, 2); k != draws {
			t.Errorf("one of %d pods has twice its share: refused in %d of %d draws", n, k, draws)
		}
	}
}

func TestEvenlyRefusesAPodWithoutAShare(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		if k := refusals(n, 0); k != draws {
			t.Errorf("one of %d pods has no share: refused in %d of %d draws", n, k, draws)
		}
	}
}

func TestEvenlyRefusesAShareOfATenth(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		if k := refusals(n, 0.1); k != draws {
			t.Errorf("one of %d pods has a tenth of its share: refused in %d of %d draws", n, k, draws)
		}
	}
}

func TestSecondLookIsSound(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	pods := podsNamed(5)
	unordered := Want{Text: "by chance", Shots: 60, Met: func(os []candidate.Outcome) bool {
		return !slices.IsSortedFunc(os, func(a, b candidate.Outcome) int { return strings.Compare(a.Pod.Name, b.Pod.Name) })
	}}
	for name, w := range map[string]struct {
		want  Want
		right []candidate.Pod // who answers, each with the same probability, where the demand is met
		wrong []candidate.Outcome
	}{
		"each":          {AnsweredByEach(pods...), pods, []candidate.Outcome{by("p0"), by("other")}},
		"evenly":        {Evenly(pods...), pods, []candidate.Outcome{by("p0"), met(candidate.Dropped)}},
		"same":          {AlwaysBySame(pods...), pods[:1], []candidate.Outcome{by("p0"), by("p1")}},
		"by":            {AnsweredBy(pods...), pods, []candidate.Outcome{by("other")}},
		"each on port":  {AllOf(AnsweredByEach(pods...), OnPort(8080)), pods, []candidate.Outcome{by("other")}},
		"each and even": {AllOf(AnsweredByEach(pods...), Evenly(pods...)), pods, []candidate.Outcome{met(candidate.Refused)}},
	} {
		t.Run(name, func(t *testing.T) {
			still, ok := w.want.again()
			if !ok {
				t.Fatal("is looked at again with as many shots")
			}
			for range 1000 {
				if os := drawn(r, shotsAgain, w.right, fair); !still.Met(os) {
					t.Fatalf("few shots make a false alarm: %s", describe(os))
				}
			}
			if still.Met(w.wrong) {
				t.Errorf("the second look is met by %s", describe(w.wrong))
			}
		})
	}
	for name, w := range map[string]Want{
		"by chance": unordered, "and another": AllOf(Evenly(pods...), unordered), "without shots of its own": {Met: unordered.Met},
	} {
		if _, ok := w.again(); ok {
			t.Errorf("%s: few shots do not decide what takes many", name)
		}
	}
	few := Want{Shots: shotsAgain, Met: unordered.Met}
	if _, ok := few.again(); !ok {
		t.Error("a demand that takes few shots is not looked at again")
	}
}

func TestBothCombines(t *testing.T) {
	pods := podsNamed(3)
	each, silent := AnsweredByEach(pods...), NotBy(podNamed("other"))
	both := AllOf(OnPort(8080), each, silent)
	if both.Shots != each.Shots {
		t.Errorf("%d shots, and one of the demands takes %d", both.Shots, each.Shots)
	}
	if !both.Silent || AllOf(OnPort(8080), each).Silent || !AllOf(silent, ConnectionRefused()).Silent {
		t.Error("demands are silent with one that is, and only then")
	}
	if both.Text != "answered on port 8080; answered by each of p0, p1, p2; not answered by other" {
		t.Errorf("text %q", both.Text)
	}
	if both.Still == nil || !both.Still.Met([]candidate.Outcome{by("p0"), by("p0")}) {
		t.Error("the second look demands what takes many shots")
	}
	elsewhere := by("p0")
	elsewhere.PodPort = 9090
	if both.Still != nil && (both.Still.Met([]candidate.Outcome{elsewhere}) || both.Still.Met([]candidate.Outcome{by("other")})) {
		t.Error("the second look leaves a demand out")
	}
}

// Such a proxy offers a connection to each endpoint in turn with the same probability, and gives the rest to the last.
// It shows at three endpoints.
func TestEquallyRefusesTheRestForTheLast(t *testing.T) {
	pods := podsNamed(3)
	w := Equally(pods...)
	r := rand.New(rand.NewPCG(3, 9))
	refused := 0
	for range draws {
		if !w.Met(drawn(r, w.Shots, pods, func(i int) float64 { return []float64{3.0 / 9, 2.0 / 9, 4.0 / 9}[i] })) {
			refused++
		}
		if os := drawn(r, w.Shots, pods, func(int) float64 { return 1.0 / 3 }); !w.Met(os) {
			t.Fatalf("equal shares are refused: %s", describe(os))
		}
	}
	if refused*1000 < draws*999 {
		t.Errorf("the last of three pods has 4 of 9: refused in %d of %d draws", refused, draws)
	}
}
