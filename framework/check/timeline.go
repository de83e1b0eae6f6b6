package check

import (
	"errors"
	"fmt"
	"slices"
)

// KeepsTimeline keeps which backend answered whom in the course of the check, as evidence: for checks of what changes with time.
func KeepsTimeline() Option { return func(d *Declaration) { d.timeline = true } }

// Timeline is which backends answered whom in the course of a check, and what the check changed meanwhile. Times are in seconds since the first mark or shot, on
// the candidate's clock, which may be virtual.
type Timeline struct {
	// Marks are what the check changed, or the time that it let pass, in their order.
	Marks []Mark `json:"marks"`
	// Lanes are what each client met, by client and destination.
	Lanes []Lane `json:"lanes"`
	// LanesLeftOut and MarksLeftOut count what there was beyond the bounds. After a mark that is left out, shots stand after the last one that is there.
	LanesLeftOut int `json:"lanesLeftOut,omitempty"`
	MarksLeftOut int `json:"marksLeftOut,omitempty"`
}

// Mark is something that happened between shots.
type Mark struct {
	At   float64 `json:"at"`
	What string  `json:"what"`
}

// Lane is what a client met at one destination.
type Lane struct {
	Client   string    `json:"client"`
	To       string    `json:"to"`
	Segments []Segment `json:"segments"`
}

// Segment is a time in which a client met the same: the same backend, or the same ones in turn.
type Segment struct {
	// After is the index of the mark that the segment follows, of which no other one lies in between.
	After int `json:"after"`
	// From is when its first shot was sent, To when its last one had its result.
	From float64 `json:"from"`
	To   float64 `json:"to"`
	// Answered counts shots by the name of the pod that answered.
	Answered map[string]int `json:"answered,omitempty"`
	// Otherwise counts the others by what they met: refused, dropped, a stranger, HTTP 503 and so on.
	Otherwise map[string]int `json:"otherwise,omitempty"`
}

// Shots is how many there were.
func (s *Segment) Shots() (n int) {
	for _, k := range s.Answered {
		n += k
	}
	for _, k := range s.Otherwise {
		n += k
	}
	return n
}

// words say how much there is of it. shots counts all, also those of lanes that are left out.
func (t *Timeline) words(shots int) string {
	return fmt.Sprintf("%d shots of %d pairs of a client and a destination, %d changes or waits", shots, len(t.Lanes)+t.LanesLeftOut, len(t.Marks)+t.MarksLeftOut)
}

// Bounds of what is kept, so that a report stays small and a picture can be read.
const (
	mostLanes    = 24
	mostMarks    = 12
	mostSegments = 240
)

// Bounds of what is believed of somebody else's report: they leave room for other versions of the suite.
const (
	believedLanes    = 10 * mostLanes
	believedMarks    = 10 * mostMarks
	believedSegments = 10 * mostSegments
)

// Sound reports what is wrong with a timeline that somebody else has written down: what is not in order, or more than can be drawn.
func (t *Timeline) Sound() error {
	segments := 0
	for _, l := range t.Lanes {
		segments += len(l.Segments)
	}
	if len(t.Lanes) > believedLanes || len(t.Marks) > believedMarks || segments > believedSegments {
		return fmt.Errorf("its timeline has %d lanes, %d marks and %d segments, more than there can be", len(t.Lanes), len(t.Marks), segments)
	}
	if t.LanesLeftOut < 0 || t.MarksLeftOut < 0 {
		return errors.New("its timeline leaves out less than nothing")
	}
	if !slices.IsSortedFunc(t.Marks, func(x, y Mark) int { return sign(x.At - y.At) }) || len(t.Marks) > 0 && t.Marks[0].At < 0 {
		return errors.New("the marks of its timeline are not in order")
	}
	for i := range t.Lanes {
		last := Segment{}
		for _, s := range t.Lanes[i].Segments {
			switch {
			case s.After < last.After || s.After >= max(1, len(t.Marks)):
				return fmt.Errorf("a segment of its timeline follows mark %d of %d", s.After+1, len(t.Marks))
			case s.From < last.From || s.To < s.From:
				return errors.New("the segments of its timeline are not in order")
			case !counted(s.Answered) || !counted(s.Otherwise) || len(s.Answered)+len(s.Otherwise) == 0:
				return errors.New("a segment of its timeline has no shots")
			}
			last = s
		}
	}
	return nil
}

func sign(x float64) int {
	switch {
	case x < 0:
		return -1
	case x > 0:
		return 1
	}
	return 0
}

func counted(shots map[string]int) bool {
	for _, n := range shots {
		if n < 1 {
			return false
		}
	}
	return true
}
