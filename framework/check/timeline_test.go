package check

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// shotsLike are shots a millisecond apart, each of which says what it met. A lower letter is a pod that answers, an
// upper one is not, and "|" is a mark.
func shotsLike(text string) (shots []shotSeen) {
	mark := 0
	for i, r := range text {
		if r == '|' {
			mark++
			continue
		}
		at := time.Duration(i) * time.Millisecond
		shots = append(shots, shotSeen{start: at, end: at + time.Millisecond, mark: mark, met: encounter{text: string(r), answered: r >= 'a'}})
	}
	return shots
}

// told are segments in short: "0:a4 1:a2,b2,X1".
func told(segments []Segment) string {
	var texts []string
	for _, s := range segments {
		var counts []string
		for _, kind := range []map[string]int{s.Answered, s.Otherwise} {
			for name, n := range kind {
				counts = append(counts, fmt.Sprint(name, n))
			}
		}
		slices.Sort(counts)
		texts = append(texts, fmt.Sprintf("%d:%s", s.After, strings.Join(counts, ",")))
	}
	return strings.Join(texts, " ")
}

func TestSegmentsJoinWhatClientsMetInARow(t *testing.T) {
	mixed := strings.Repeat("acb", 12)
	for name, c := range map[string]struct{ shots, want string }{
		"a client that stays":                         {"aaaa|aaaa", "0:a4 1:a4"},
		"a client that moves":                         {"aaaabbb", "0:a4 0:b3"},
		"one shot that went elsewhere":                {"aaaaXaaaa", "0:a4 0:X1 0:a4"},
		"one shot that another backend answered":      {"aaaabaaaa", "0:a4 0:b1 0:a4"},
		"backends in turn":                            {mixed, "0:a12,b12,c12"},
		"a backend that is no longer there":           {mixed + strings.Repeat("ab", 12), "0:a12,b11,c12 0:a12,b13"},
		"a stretch that may look so by chance":        {mixed + "abab", "0:a14,b14,c12"},
		"nobody answers for a while":                  {mixed + "RRRR" + mixed, "0:a12,b12,c12 0:R4 0:a12,b12,c12"},
		"every other shot is lost, for long":          {strings.Repeat("aX", 30), "0:X30,a30"},
		"silence becomes a refusal":                   {"DDDRRR", "0:D3 0:R3"},
		"an endpoint comes and another one goes":      {strings.Repeat("ab", 10) + "|" + strings.Repeat("bc", 10), "0:a10,b10 1:b10,c10"},
		"nothing was sent":                            {"", ""},
		"the next mark begins with what was before":   {"aaaa|abbbbbbbb", "0:a4 1:a1 1:b8"},
		"few shots in turn look like one after other": {"aab", "0:a2 0:b1"},
	} {
		if got := told(segmentsOf(shotsLike(c.shots))); got != c.want {
			t.Errorf("%s: %s\ngot  %s\nwant %s", name, c.shots, got, c.want)
		}
	}
}

// Whatever is recorded, no shot is lost or told twice, segments are in order, none spans a mark, and their number is bounded.
func TestSegmentsTellEveryShotOnce(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		var text strings.Builder
		kinds := "abcdXY|"[:1+random.IntN(7)]
		for range random.IntN(300) {
			text.WriteByte(kinds[random.IntN(len(kinds))])
		}
		shots := shotsLike(text.String())
		rand.Shuffle(len(shots), func(i, j int) { shots[i], shots[j] = shots[j], shots[i] })
		segments := segmentsOf(shots)
		marks := 1 + strings.Count(text.String(), "|")
		total := 0
		for i := range segments {
			total += segments[i].Shots()
		}
		timeline := Timeline{Marks: make([]Mark, marks), Lanes: []Lane{{Segments: segments}}}
		if err := timeline.Sound(); err != nil && marks <= believedMarks && len(segments) <= believedSegments {
			t.Fatalf("%s: %v in %+v", text.String(), err, segments)
		}
		if total != len(shots) || len(segments) > marks*(mostRuns+1) {
			t.Fatalf("%s: %d shots of %d in %d segments", text.String(), total, len(shots), len(segments))
		}
	}
}

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// answer is an outcome at a time after noon.
func answer(pod string, after time.Duration) candidate.Outcome {
	o := by(pod)
	o.Start, o.Duration = noon.Add(after), time.Millisecond
	return o
}

func probeOf(client candidate.Client) candidate.Probe {
	return candidate.Probe{From: client, To: vip, Protocol: corev1.ProtocolTCP}
}

func TestATimelineStaysWithinItsBounds(t *testing.T) {
	r := newRecorder(true)
	r.expecting("the Service is created", []Case{{}})
	clients := 3 * mostLanes
	for i := range clients {
		record := r.sending()
		outcomes := []candidate.Outcome{answer("a", 0)}
		if i == clients-1 {
			outcomes = append(outcomes, answer("b", time.Second)) // the last one moves
		}
		record([]candidate.Probe{probeOf(candidate.Client{Gateway: "node-1", Address: i})}, [][]candidate.Outcome{outcomes})
	}
	for i := range 2 * mostMarks {
		r.expecting(fmt.Sprint("change ", i), []Case{{}})
		r.sending()([]candidate.Probe{probeOf(candidate.Client{Gateway: "node-1"})}, [][]candidate.Outcome{{answer("a", time.Minute)}})
	}
	timeline, shots := r.timeline()
	if err := timeline.Sound(); err != nil {
		t.Fatal(err)
	}
	if len(timeline.Lanes) != mostLanes || timeline.LanesLeftOut != clients-mostLanes || len(timeline.Marks) != mostMarks || timeline.MarksLeftOut != 1+2*mostMarks-mostMarks {
		t.Errorf("%d lanes and %d left out, %d marks and %d left out", len(timeline.Lanes), timeline.LanesLeftOut, len(timeline.Marks), timeline.MarksLeftOut)
	}
	if last := timeline.Lanes[mostLanes-1]; last.Client != fmt.Sprintf("outside by node-1 (address %d)", clients) || told(last.Segments) != "0:a1 0:b1" {
		t.Errorf("the client that moves is not the last one: %+v", last)
	}
	if want := 1 + clients + 2*mostMarks; shots != want {
		t.Errorf("%d shots, want %d", shots, want)
	}
}

// A change is marked when it begins, and named when the check says what is demanded after it.
func TestMarksStandWhereChangesBegin(t *testing.T) {
	client := Host("node-0")
	send := func(r *recorder, outcomes ...candidate.Outcome) {
		r.sending()([]candidate.Probe{probeOf(client)}, [][]candidate.Outcome{outcomes})
	}
	r := newRecorder(true)
	r.changing() // before anything was sent: the mark that follows says it
	r.expecting("the Service is created", []Case{{}})
	send(r, answer("a", 0))
	r.expecting("another Service is created", []Case{{To: netip.MustParseAddrPort("10.96.0.9:80"), Aside: true}})
	r.sending()([]candidate.Probe{{From: client, To: netip.MustParseAddrPort("10.96.0.9:80")}}, [][]candidate.Outcome{{answer("marker", 0)}})
	r.passed(time.Second, false) // between two looks
	r.changing()
	send(r, answer("a", time.Second))
	r.changing()
	send(r, answer("b", time.Second))
	r.passed(time.Hour, true) // part of what is named next
	r.expecting("a pod is replaced", []Case{{}})
	send(r, answer("b", time.Hour+time.Second))
	r.passed(3*time.Hour, true)
	r.expecting("clients come back", []Case{{}})
	send(r, answer("c", 4*time.Hour+time.Second))
	r.changing()
	send(r, answer("c", 4*time.Hour+2*time.Second)) // the check ends without a name for the change
	timeline, _ := r.timeline()
	want := []Mark{{0, "the Service is created"}, {1.001, "a pod is replaced"}, {4*3600 + 1.001, "3h0m0s pass; clients come back"}}
	if !slices.Equal(timeline.Marks, want) {
		t.Errorf("marks %v, want %v", timeline.Marks, want)
	}
	if len(timeline.Lanes) != 1 || told(timeline.Lanes[0].Segments) != "0:a1 1:a1 1:b2 2:c2" {
		t.Errorf("lanes %+v", timeline.Lanes)
	}
}

// On a real clock a shot belongs to the mark that its own time follows, whenever its outcome comes. Only the durations
// of a prober whose clock is wrong are used.
func TestShotsOfARealClock(t *testing.T) {
	r := newRecorder(false)
	r.expecting("the Service is created", []Case{{}})
	record := r.sending()
	began := time.Now()
	early := by("a")
	early.Start = began
	r.sending()([]candidate.Probe{probeOf(Host("node-1"))}, [][]candidate.Outcome{{early}})
	for !time.Now().After(began) { // the mark is to be later than the shot
	}
	r.changing()
	late := by("b")
	late.Start = time.Now()
	r.expecting("a pod is replaced", []Case{{}})
	record([]candidate.Probe{probeOf(Host("node-0"))}, [][]candidate.Outcome{{early, late}})
	wrong := by("c")
	wrong.Start = time.Now().Add(-time.Hour)
	r.sending()([]candidate.Probe{probeOf(Host("node-2"))}, [][]candidate.Outcome{{wrong}})
	timeline, _ := r.timeline()
	for i, want := range []string{"0:a1", "0:a1 1:b1", "1:c1"} {
		if got := told(timeline.Lanes[i].Segments); got != want {
			t.Errorf("%s: got %s, want %s", timeline.Lanes[i].Client, got, want)
		}
	}
}

func TestAShotThatWasDroppedAtFirstIsToldSo(t *testing.T) {
	r := newRecorder(true)
	p, o := probeOf(Host("node-0")), []candidate.Outcome{answer("a", 0), answer("a", time.Second)}
	r.sending()([]candidate.Probe{p}, [][]candidate.Outcome{o})
	r.lost(&p, &o[1])
	if timeline, _ := r.timeline(); told(timeline.Lanes[0].Segments) != "0:a1 0:dropped1" || timeline.Marks[0].What != "the first shots are sent" {
		t.Errorf("%+v", timeline)
	}
}

func TestUnsoundTimelinesAreFound(t *testing.T) {
	sound := func() *Timeline {
		s := []Segment{{From: 1, To: 2, Answered: map[string]int{"a": 1}}, {After: 1, From: 2, To: 3, Otherwise: map[string]int{"dropped": 2}}}
		return &Timeline{Marks: []Mark{{0, "x"}, {2, "y"}}, Lanes: []Lane{{Client: "c", To: "t", Segments: s}}}
	}
	if err := sound().Sound(); err != nil {
		t.Fatal(err)
	}
	for want, spoil := range map[string]func(*Timeline){
		"more than there can be":       func(x *Timeline) { x.Lanes = make([]Lane, believedLanes+1) },
		"follows mark 6 of 2":          func(x *Timeline) { x.Lanes[0].Segments[1].After = 5 },
		"follows mark 1 of 2":          func(x *Timeline) { slices.Reverse(x.Lanes[0].Segments) },
		"segments of its timeline are": func(x *Timeline) { x.Lanes[0].Segments[0].To = 0 },
		"has no shots":                 func(x *Timeline) { x.Lanes[0].Segments[0].Answered["a"] = -1 },
		"marks of its timeline":        func(x *Timeline) { x.Marks[0].At = 9 },
		"less than nothing":            func(x *Timeline) { x.LanesLeftOut = -1 },
	} {
		x := sound()
		spoil(x)
		if err := x.Sound(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
}

var _ = ginkgo.Describe("a check with a timeline", func() {
	const id = "proxy-clusterip-reachable"
	text := "keeps who answered whom, and not what its controls met"
	judgements[id+": "+text] = judged{verdict: NonConformant, message: []string{"after this: the pod is replaced"}, look: func(t *testing.T, f finding) {
		i := slices.IndexFunc(f.Evidence, func(e Evidence) bool { return e.Timeline != nil })
		if i < 0 {
			t.Fatalf("no timeline among %+v", f.Evidence)
		}
		timeline := f.Evidence[i].Timeline
		if err := timeline.Sound(); err != nil {
			t.Error(err)
		}
		if len(timeline.Lanes) != 1 || timeline.Lanes[0].To != "10.96.0.7:80/TCP" || len(timeline.Marks) != 2 {
			data, _ := json.Marshal(timeline)
			t.Errorf("%s", data)
		}
	}}
	It(id, text, KeepsTimeline(), func(ctx context.Context, net *Network) {
		pod := net.Backends(ctx, "app", "node-0")[0]
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			o := script.honest(p)
			if p.To == vip {
				o = candidate.Outcome{Result: candidate.Answered, Pod: pod.PodName}
			}
			o.Start = noon.Add(script.spent)
			return o
		}
		net.Expect(ctx, "the Service is created", Case{From: Host("node-0"), To: vip, Want: AnsweredBy(pod)})
		net.Expect(ctx, "the pod is replaced", Case{From: Host("node-0"), To: vip, Want: Dropped()})
	})
})
