package report

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// largestTimeline has as many lanes, marks and segments as a run keeps.
func largestTimeline() *check.Timeline {
	t := &check.Timeline{LanesLeftOut: 8}
	for i := range 12 {
		t.Marks = append(t.Marks, check.Mark{At: float64(i), What: fmt.Sprintf("externalTrafficPolicy becomes Local, and that is change %d", i)})
	}
	for i := range 24 {
		lane := check.Lane{Client: fmt.Sprintf("outside by node-1 (address %d)", i+1), To: fmt.Sprintf("172.30.1.%d:31081/TCP", i)}
		for k := range 10 {
			lane.Segments = append(lane.Segments, check.Segment{After: k, From: float64(k), To: float64(k) + 0.1234, Answered: map[string]int{"app-1": 12, "app-2": 9, "app-3": 11}})
		}
		t.Lanes = append(t.Lanes, lane)
	}
	return t
}

// policyChange is what a client of a Service sees whose policy becomes Local, with a moment in which nobody answers, and another client.
func policyChange() *check.Timeline {
	return &check.Timeline{
		Marks: []check.Mark{{At: 0, What: "the Service is created"}, {At: 2, What: "internalTrafficPolicy becomes Local"}},
		Lanes: []check.Lane{
			{Client: "pod client-1", To: "10.96.0.7:80/TCP", Segments: []check.Segment{
				{After: 0, From: 0, To: 1, Answered: map[string]int{"app-2": 1, "app-10": 3}},
				{After: 1, From: 2, To: 2.5, Answered: map[string]int{"app-10": 4}},
				{After: 1, From: 2.5, To: 2.501, Otherwise: map[string]int{"dropped": 1}},
				{After: 1, From: 3, To: 4, Answered: map[string]int{"app-2": 4}},
			}},
			{Client: "host of node-2", To: "10.96.0.7:80/TCP", Segments: []check.Segment{{After: 1, From: 3, To: 3, Answered: map[string]int{"app-2": 1}}}},
		},
	}
}

func TestATimelineIsDrawnToScaleAndCanBeSeen(t *testing.T) {
	p := timelineOf(policyChange())
	if p.To != "10.96.0.7:80/TCP" || p.Lanes[0].To != "" || len(p.Columns) != 2 {
		t.Errorf("%+v", p)
	}
	var legend []string
	for _, a := range p.Legend {
		legend = append(legend, strings.TrimSpace(a.Letter+" "+a.Name))
	}
	if got := strings.Join(legend, ", "); got != "A app-2, B app-10, ✕ dropped" {
		t.Errorf("legend %q", got)
	}
	boxes := p.Lanes[0].Boxes
	if len(boxes) != 4 || boxes[0].Label != "A B" || boxes[1].Label != "B app-10" || boxes[2].Label != "✕ dropped" {
		t.Fatalf("boxes %+v", boxes)
	}
	if bands := boxes[0].Bands; len(bands) != 2 || bands[0] != (band{"b0", 0, 25}) || bands[1] != (band{"b1", 25, 75}) {
		t.Errorf("shares %+v", bands)
	}
	// The second column is two seconds wide: half a second is a quarter of it, and a millisecond can be seen all the same.
	wide := 50 - columnGap
	if first := boxes[1]; first.X != 50.4 || first.Width != percent(wide/4) {
		t.Errorf("half of a second of two: %+v", first)
	}
	if lost := boxes[2]; lost.Width != boxLeast || lost.X < boxes[1].X+boxes[1].Width-0.02 || boxes[3].X < lost.X+lost.Width-0.02 {
		t.Errorf("a shot that was dropped: %+v", boxes)
	}
	if cell := p.Lanes[0].Cells[1]; cell != "2 s to 2.5 s: 4× app-10; 2.5 s to 2.501 s: 1× dropped; 3 s to 4 s: 4× app-2" {
		t.Errorf("in words: %q", cell)
	}
	if cells := p.Lanes[1].Cells; cells[0] != "" || cells[1] != "1× app-2" {
		t.Errorf("in words: %q", cells)
	}
}

// Whatever a timeline holds, no box leaves its column, covers another one, or is too narrow to be seen.
func TestBoxesStayInTheirColumn(t *testing.T) {
	for _, timeline := range []*check.Timeline{policyChange(), largestTimeline(), crowded(0), crowded(1e-9), crowded(1e9)} {
		p := timelineOf(timeline)
		width := 100 / float64(len(p.Columns))
		for i, l := range p.Lanes {
			at, column := 0.0, -1
			for k, b := range l.Boxes {
				after := timeline.Lanes[i].Segments[k].After
				if after != column {
					at, column = float64(after)*width, after
				}
				if b.X < at-0.02 || b.X+b.Width > float64(after+1)*width+0.02 || b.Width < 0.05 {
					t.Fatalf("box %d of lane %d is at %+v, after %v in column %d", k, i, b, at, after)
				}
				at = b.X + b.Width
			}
		}
	}
}

// crowded has forty segments in one of two columns, the last of which begins late.
func crowded(apart float64) *check.Timeline {
	t := &check.Timeline{Marks: []check.Mark{{What: "a"}, {What: "b"}}, Lanes: []check.Lane{{Client: "c", To: "t"}}}
	for i := range 40 {
		s := check.Segment{After: 1, From: apart * float64(i*i), Answered: map[string]int{fmt.Sprint("app-", i): 1}}
		s.To = s.From
		t.Lanes[0].Segments = append(t.Lanes[0].Segments, s)
	}
	return t
}

func TestTheTimelineOnThePageIsWellFormedAndSaysTheSameInWords(t *testing.T) {
	passed := result(requirement(t, spec.Must), "a", check.Conformant)
	passed.Evidence = []check.Evidence{{Name: "who answered whom", Value: "v", Timeline: policyChange()}}
	page, err := Build(Run{Planned: 1}, []check.Result{passed}).HTML()
	if err != nil {
		t.Fatal(err)
	}
	begin := bytes.Index(page, []byte("<figure>"))
	figure := page[begin : begin+bytes.Index(page[begin:], []byte("</figure>"))+len("</figure>")]
	decoder, elements := xml.NewDecoder(bytes.NewReader(figure)), map[string]int{}
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("%v in\n%s", err, figure)
		}
		if e, ok := token.(xml.StartElement); ok {
			elements[e.Name.Local]++
		}
	}
	// A picture with five boxes, of which one has two answers; a table with two clients and a line above.
	if elements["svg"] != 1+5 || elements["rect"] != 6 || elements["tr"] != 3 || elements["li"] != 2 {
		t.Errorf("elements %v in\n%s", elements, figure)
	}
	for _, want := range []string{`role="img"`, "internalTrafficPolicy becomes Local", "1× dropped", "✕ dropped", "B app-10"} {
		if !bytes.Contains(figure, []byte(want)) {
			t.Errorf("no %q in\n%s", want, figure)
		}
	}
}

func TestATimelineThatIsNotSoundContradictsItsReport(t *testing.T) {
	passed := result(requirement(t, spec.Must), "a", check.Conformant)
	timeline := policyChange()
	timeline.Lanes[0].Segments[1].After = 7
	passed.Evidence = []check.Evidence{{Timeline: timeline}}
	if problems := Build(Run{Planned: 1}, []check.Result{passed}).Problems(); len(problems) != 1 || !strings.Contains(problems[0].Error(), "follows mark 8 of 2") {
		t.Errorf("%v", problems)
	}
}
