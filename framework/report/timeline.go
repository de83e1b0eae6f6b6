package report

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/words"
)

// timelinePicture is which backend answered whom in the course of a check. It has a lane for each client, and a column
// from each change to the next one. Places from left to right are in percent, so that the picture fits a screen of any
// width and its text keeps its size.
type timelinePicture struct {
	Columns  []timeColumn
	Lanes    []timeLane
	Legend   []answerer
	Height   int
	MinWidth int    // of all columns, in pixels
	To       string // where all clients sent to, if they did to one destination
	Caption  words.Phrase
	LeftOut  []words.Phrase // what is beyond the bounds of what a run keeps
}

type timeColumn struct {
	X        float64
	Number   int
	At, What string
}

type timeLane struct {
	Client, To string
	Y, BoxY    int // of its text, of its boxes
	Boxes      []timeBox
	Cells      []string // what was met in each column, for the table
}

// timeBox is a segment.
type timeBox struct {
	X, Width float64
	Bands    []band // of different answers, one above the other, by their share
	Label    string
}

type band struct {
	Class     string
	Y, Height float64 // in percent
}

// answerer is somebody who answered, or what was met otherwise: told apart by a letter, and by a color.
type answerer struct{ Letter, Name, Class string }

// Measures of a timeline, in pixels but for those in percent.
const (
	laneHeight  = 38
	laneText    = 13
	columnLeast = 76
	columnGap   = 0.8  // percent, of which half is on each side
	boxLeast    = 3.2  // percent
	answerKinds = 6    // classes of backends in the style sheet
	drawnMost   = 1400 // segments on one page, at less than 300 bytes each
	noTime      = 1e-4 // seconds: less is none
)

// timelineOf draws a timeline that is sound.
func timelineOf(t *check.Timeline) *timelinePicture {
	marks := t.Marks
	if len(marks) == 0 {
		marks = []check.Mark{{What: "–"}}
	}
	p := &timelinePicture{Caption: words.Say("timeline-of-clients"), MinWidth: columnLeast * len(marks), Height: laneHeight * len(t.Lanes)}
	width := 100 / float64(len(marks))
	for i, m := range marks {
		p.Columns = append(p.Columns, timeColumn{X: percent(float64(i) * width), Number: i + 1, At: moment(m.At), What: m.What})
	}
	legend := legendOf(t.Lanes)
	p.Legend = slices.SortedFunc(maps.Values(legend), func(a, b answerer) int {
		return cmp.Or(cmp.Compare(len(a.Letter), len(b.Letter)), cmp.Compare(a.Letter, b.Letter))
	})
	begin, end := spans(t.Lanes, len(marks))
	places := map[string]bool{}
	for i, l := range t.Lanes {
		places[l.To] = true
		lane := timeLane{Client: l.Client, To: l.To, Y: i*laneHeight + laneText, BoxY: i*laneHeight + laneText + 4, Cells: make([]string, len(marks))}
		for k := range marks {
			var in []check.Segment
			for _, s := range l.Segments {
				if s.After == k {
					in = append(in, s)
				}
			}
			lane.Boxes = append(lane.Boxes, boxes(in, legend, float64(k)*width+columnGap/2, width-columnGap, begin[k], end[k])...)
			lane.Cells[k] = cellOf(in)
		}
		p.Lanes = append(p.Lanes, lane)
	}
	if t.LanesLeftOut > 0 {
		p.LeftOut = append(p.LeftOut, words.Say("lanes-left-out", t.LanesLeftOut))
	}
	if t.MarksLeftOut > 0 {
		p.LeftOut = append(p.LeftOut, words.Say("marks-left-out", t.MarksLeftOut))
	}
	if len(places) == 1 {
		p.To = t.Lanes[0].To
		p.Caption = words.Say("timeline-to-one", p.To)
		for i := range p.Lanes {
			p.Lanes[i].To = ""
		}
	}
	return p
}

// kind is who answered, or what was met.
type kind struct {
	answered bool
	name     string
}

// kindsOf are those of a segment with their shots. Backends come first, by name.
func kindsOf(s *check.Segment) (all []kind, shots map[kind]int) {
	shots = map[kind]int{}
	for i, counts := range []map[string]int{s.Answered, s.Otherwise} {
		for _, name := range slices.SortedFunc(maps.Keys(counts), byName) {
			k := kind{answered: i == 0, name: name}
			all, shots[k] = append(all, k), counts[name]
		}
	}
	return all, shots
}

// byName compares names so that app-10 comes after app-9.
func byName(a, b string) int {
	return cmp.Or(cmp.Compare(strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")), cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
}

// legendOf gives each backend a letter and a class, and everything else a cross.
func legendOf(lanes []check.Lane) map[kind]answerer {
	seen := map[kind]bool{}
	for _, l := range lanes {
		for i := range l.Segments {
			all, _ := kindsOf(&l.Segments[i])
			for _, k := range all {
				seen[k] = true
			}
		}
	}
	legend, backends := map[kind]answerer{}, 0
	for _, k := range slices.SortedFunc(maps.Keys(seen), func(a, b kind) int { return byName(a.name, b.name) }) {
		if !k.answered {
			legend[k] = answerer{Letter: "✕ " + k.name, Class: "none"}
			continue
		}
		letter := fmt.Sprint(backends + 1)
		if backends < 26 {
			letter = string(rune('A' + backends))
		}
		legend[k] = answerer{Letter: letter, Name: k.name, Class: fmt.Sprint("b", backends%answerKinds)}
		backends++
	}
	return legend
}

// spans are when shots begin and end in each column.
func spans(lanes []check.Lane, columns int) (begin, end []float64) {
	begin, end = make([]float64, columns), make([]float64, columns)
	seen := make([]bool, columns)
	for _, l := range lanes {
		for _, s := range l.Segments {
			k := s.After
			if !seen[k] {
				begin[k], end[k], seen[k] = s.From, s.To, true
			}
			begin[k], end[k] = min(begin[k], s.From), max(end[k], s.To)
		}
	}
	return begin, end
}

// boxes places the segments of a lane in a column: to scale, but none so narrow that it cannot be seen. Where no time passes they have the same width.
func boxes(segments []check.Segment, legend map[kind]answerer, x, width, begin, end float64) (all []timeBox) {
	n := len(segments)
	if n == 0 {
		return nil
	}
	least := min(boxLeast, width/float64(n))
	at := x
	for i := range segments {
		s := &segments[i]
		from, to := x+width*float64(i)/float64(n), x+width*float64(i+1)/float64(n)
		if span := end - begin; span > noTime {
			from, to = x+width*(s.From-begin)/span, x+width*(s.To-begin)/span
			from = min(max(from, at), x+width-least*float64(n-i))       // not into the box before it, and room for those that follow
			to = min(max(to, from+least), x+width-least*float64(n-i-1)) // as long as can be seen
		}
		at = to
		box := timeBox{X: percent(from), Width: percent(to - from)}
		kinds, shots := kindsOf(s)
		y := 0.0
		var labels []string
		for _, k := range kinds {
			share := 100 * float64(shots[k]) / float64(s.Shots())
			box.Bands = append(box.Bands, band{legend[k].Class, percent(y), percent(share)})
			y += share
			labels = append(labels, legend[k].Letter)
		}
		if box.Label = strings.Join(labels, " "); len(kinds) == 1 && kinds[0].answered {
			box.Label += " " + kinds[0].name
		}
		all = append(all, box)
	}
	return all
}

// cellOf says what was met, and when where that is not at once.
func cellOf(segments []check.Segment) string {
	var texts []string
	for i := range segments {
		s := &segments[i]
		var counts []string
		kinds, shots := kindsOf(s)
		for _, k := range kinds {
			counts = append(counts, fmt.Sprintf("%d× %s", shots[k], k.name))
		}
		text := strings.Join(counts, ", ")
		switch {
		case len(segments) == 1 && s.To-s.From <= noTime:
		case s.To-s.From <= noTime:
			text = moment(s.From) + ": " + text
		default:
			text = fmt.Sprintf("%s to %s: %s", moment(s.From), moment(s.To), text)
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "; ")
}

// moment is a time in seconds as people write it.
func moment(seconds float64) string {
	if seconds < 60 {
		return fmt.Sprintf("%.4g s", float64(int(seconds*1000+0.5))/1000)
	}
	return (time.Duration(min(seconds, 1e8)) * time.Second).String()
}

func percent(x float64) float64 { return float64(int(x*100+0.5)) / 100 }

// drawTimelines draws those of the checks, in the order in which they are shown, until there is enough for one page.
func drawTimelines(requirements []requirementView) {
	drawn := 0
	for i := range requirements {
		for k := range requirements[i].Checks {
			c := &requirements[i].Checks[k]
			if !c.Whole {
				continue
			}
			for _, e := range c.Evidence {
				if e.Timeline == nil {
					continue
				}
				segments := 0
				for _, l := range e.Timeline.Lanes {
					segments += len(l.Segments)
				}
				if drawn+segments > drawnMost {
					c.NotDrawn = true
					continue
				}
				drawn += segments
				c.Timelines = append(c.Timelines, timelineOf(e.Timeline))
			}
		}
	}
}
