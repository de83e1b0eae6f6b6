package check

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// recorder keeps the shots of a check for its timeline. A nil one keeps nothing. It is safe for concurrent use.
type recorder struct {
	virtual bool

	mu    sync.Mutex
	clock time.Time // of a candidate with a virtual clock, as far as its shots and the time that passed tell; zero before the first shot
	base  time.Time // of the first mark or shot
	marks []markSeen
	left  int // marks that are left out
	lanes []*laneSeen
	apart map[netip.AddrPort]bool
}

// markSeen is a mark. It has no text as long as the check has begun to change something and has not said what.
type markSeen struct {
	at   time.Time
	what string
	used bool // a shot has followed it
}

type laneSeen struct {
	from       candidate.Client
	to         netip.AddrPort
	protocol   corev1.Protocol
	connection string
	path       string
	shots      []shotSeen
}

func newRecorder(virtual bool) *recorder {
	return &recorder{virtual: virtual, apart: map[netip.AddrPort]bool{}}
}

// clockSlack is how far the clock of a prober may be off before its shots are moved to when they were asked for.
const clockSlack = 50 * time.Millisecond

func (r *recorder) now() time.Time {
	if r.virtual {
		return r.clock
	}
	return time.Now()
}

// changing says that the check begins to change something, which it names later.
func (r *recorder) changing() {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if n := len(r.marks); n > 0 && r.marks[n-1].used && r.marks[n-1].what != "" {
		r.addMark("")
	}
}

// expecting names what the check has changed, of which cases it now demands something. Those aside are left out; a demand of nothing else is none.
func (r *recorder) expecting(what string, cases []Case) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	aside := 0
	for _, c := range cases {
		if c.Aside {
			aside++
			r.apart[c.To] = true
		}
	}
	if aside < len(cases) {
		r.name(what)
	}
}

// passed says that time has passed, which is a mark if the check itself let it pass.
func (r *recorder) passed(d time.Duration, mark bool) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.clock.IsZero() {
		r.clock = r.clock.Add(d)
	}
	if n := len(r.marks); mark && (n == 0 || r.marks[n-1].what != "") { // else the wait is a part of what the check is about to name
		r.name(d.String() + " pass")
	}
}

// name names the mark that has no name yet; else it adds one, or joins the last one if no shot has followed that.
func (r *recorder) name(what string) {
	n := len(r.marks)
	switch {
	case n > 0 && r.marks[n-1].what == "":
		r.marks[n-1].what = what
	case n == 0 || r.marks[n-1].used:
		r.addMark(what)
	case r.marks[n-1].what != what:
		r.marks[n-1].what += "; " + what
	}
}

func (r *recorder) addMark(what string) {
	if len(r.marks) == mostMarks {
		if what != "" {
			r.left++
		}
		return
	}
	r.marks = append(r.marks, markSeen{at: r.now(), what: what})
}

// sending is called before probes are sent. What it returns records their outcomes.
func (r *recorder) sending() func(probes []candidate.Probe, outcomes [][]candidate.Outcome) {
	if r == nil {
		return func([]candidate.Probe, [][]candidate.Outcome) {}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	asked, mark := r.now(), max(0, len(r.marks)-1)
	return func(probes []candidate.Probe, outcomes [][]candidate.Outcome) {
		r.mu.Lock()
		defer r.mu.Unlock()
		for i := range probes {
			if !r.apart[probes[i].To] && len(outcomes[i]) > 0 {
				r.add(&probes[i], outcomes[i], asked, mark)
			}
		}
	}
}

// add records the outcomes of a probe that was asked for at a time, after a mark. Where the clock is real, they belong to the mark that their own time follows.
func (r *recorder) add(p *candidate.Probe, outcomes []candidate.Outcome, asked time.Time, mark int) {
	if len(r.marks) == 0 {
		r.marks = []markSeen{{at: asked, what: "the first shots are sent"}}
	}
	start, last := outcomes[0].Start, outcomes[len(outcomes)-1]
	end := last.Start.Add(last.Duration)
	var shift time.Duration
	if r.virtual {
		if r.clock.IsZero() {
			for i := range r.marks {
				r.marks[i].at = start
			}
		}
		if end.After(r.clock) {
			r.clock = end
		}
	} else if start.Before(asked.Add(-clockSlack)) || end.After(time.Now().Add(clockSlack)) { // the clock of another machine
		shift = asked.Sub(start)
	}
	if r.base.IsZero() {
		r.base = r.marks[0].at
	}
	lane := r.lane(p)
	for _, o := range outcomes {
		at := o.Start.Add(shift)
		k := mark
		if !r.virtual {
			k = max(0, r.marked(at))
		}
		r.marks[k].used = true
		lane.shots = append(lane.shots, shotSeen{
			start: max(0, at.Sub(r.base)), end: max(0, at.Add(o.Duration).Sub(r.base)), sent: o.Start.UnixNano(), mark: k, met: metBy(&o),
		})
	}
}

// marked is the index of the last mark that is not after the time.
func (r *recorder) marked(at time.Time) int {
	k := len(r.marks) - 1
	for k > 0 && r.marks[k].at.After(at) {
		k--
	}
	return k
}

func (r *recorder) lane(p *candidate.Probe) *laneSeen {
	l := laneSeen{from: p.From, to: p.To, protocol: p.Protocol, connection: p.Connection, path: p.Path}
	i := slices.IndexFunc(r.lanes, func(o *laneSeen) bool {
		return o.from == l.from && o.to == l.to && o.protocol == l.protocol && o.connection == l.connection && o.path == l.path
	})
	if i >= 0 {
		return r.lanes[i]
	}
	r.lanes = append(r.lanes, &l)
	return &l
}

// lost says of a shot that was recorded as answered that its first packet was dropped, and that this counts.
func (r *recorder) lost(p *candidate.Probe, o *candidate.Outcome) {
	if r == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.apart[p.To] {
		return
	}
	shots := r.lane(p).shots
	if i := slices.IndexFunc(shots, func(s shotSeen) bool { return s.sent == o.Start.UnixNano() }); i >= 0 {
		shots[i].met = metBy(&candidate.Outcome{Result: candidate.Dropped})
	}
}

func metBy(o *candidate.Outcome) encounter {
	switch {
	case o.Result == candidate.Answered && o.Pod.Name != "":
		return encounter{text: o.Pod.Name, answered: true}
	case o.HTTP != nil:
		return encounter{text: fmt.Sprintf("HTTP %d", o.HTTP.Code)}
	case byStranger(*o):
		return encounter{text: "a stranger"}
	}
	return encounter{text: string(o.Result)}
}

// timeline is what was recorded, within bounds; nil if nothing was. shots counts all, also those of lanes that are left out.
func (r *recorder) timeline() (t *Timeline, shots int) {
	if r == nil {
		return nil, 0
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.lanes) == 0 {
		return nil, 0
	}
	t = &Timeline{MarksLeftOut: r.left}
	place := make([]int, len(r.marks)) // in the timeline: a mark that the check never named is none
	for i, m := range r.marks {
		if m.what != "" && (m.used || i == 0) {
			t.Marks = append(t.Marks, Mark{At: seconds(max(0, m.at.Sub(r.base))), What: m.what})
		}
		place[i] = max(0, len(t.Marks)-1)
	}
	for _, l := range r.byClient() {
		shots += len(l.shots)
		for i := range l.shots {
			l.shots[i].mark = place[l.shots[i].mark]
		}
		t.Lanes = append(t.Lanes, Lane{Client: clientsText([]candidate.Client{l.from}) + l.with(), To: fmt.Sprintf("%s/%s%s", l.to, l.protocol, l.path), Segments: segmentsOf(l.shots)})
	}
	t.Lanes, t.LanesLeftOut = boundLanes(t.Lanes)
	return t, shots
}

func (l *laneSeen) with() string {
	if l.connection == "" {
		return ""
	}
	return fmt.Sprintf(" on connection %q", l.connection)
}

// byClient are the lanes, those of one client together, in the order in which clients came first.
func (r *recorder) byClient() []*laneSeen {
	came := map[candidate.Client]int{}
	for i, l := range r.lanes {
		if _, before := came[l.from]; !before {
			came[l.from] = i
		}
	}
	lanes := slices.Clone(r.lanes)
	slices.SortStableFunc(lanes, func(a, b *laneSeen) int { return cmp.Compare(came[a.from], came[b.from]) })
	return lanes
}

// boundLanes keeps as many lanes as a timeline may have, in their order: those first in which the answers change most often.
func boundLanes(lanes []Lane) (kept []Lane, left int) {
	order := make([]int, len(lanes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(lanes[b].turns(), lanes[a].turns()), cmp.Compare(len(lanes[b].Segments), len(lanes[a].Segments)))
	})
	segments, keep := 0, make([]bool, len(lanes))
	for n, i := range order {
		if segments += len(lanes[i].Segments); n >= mostLanes || segments > mostSegments {
			break
		}
		keep[i] = true
	}
	for i, l := range lanes {
		if keep[i] {
			kept = append(kept, l)
		}
	}
	return kept, len(lanes) - len(kept)
}

// turns is how often something else was met than before.
func (l *Lane) turns() (n int) {
	same := func(a, b map[string]int) bool {
		return maps.EqualFunc(a, b, func(int, int) bool { return true })
	}
	for i := 1; i < len(l.Segments); i++ {
		if a, b := &l.Segments[i-1], &l.Segments[i]; !same(a.Answered, b.Answered) || !same(a.Otherwise, b.Otherwise) {
			n++
		}
	}
	return n
}
