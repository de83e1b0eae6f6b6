package check

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"time"
)

// shotSeen is a shot of a lane. It has the times of the shot and its result, on the candidate's clock since the start
// of the timeline. It has the mark before it, and what it met.
type shotSeen struct {
	start, end time.Duration
	sent       int64 // as its outcome says, in nanoseconds, by which it can be found again
	mark       int
	met        encounter
}

// encounter is the pod that answered, or what was met otherwise.
type encounter struct {
	text     string
	answered bool
}

// mostRuns is how many segments a lane may have between two marks before those without an answer are joined with others.
const mostRuns = 12

// segmentsOf joins the shots of a lane to segments. A segment ends at each mark, where a backend begins or ceases to answer, and where shots begin or cease to be
// answered at all. So a client that stays at one backend has one segment, and one whose backends take turns has one, too.
func segmentsOf(shots []shotSeen) (all []Segment) {
	shots = slices.Clone(shots)
	slices.SortStableFunc(shots, func(a, b shotSeen) int { return cmp.Or(cmp.Compare(a.mark, b.mark), cmp.Compare(a.start, b.start)) })
	for len(shots) > 0 {
		n := slices.IndexFunc(shots, func(s shotSeen) bool { return s.mark != shots[0].mark })
		if n < 0 {
			n = len(shots)
		}
		all = append(all, betweenMarks(shots[:n])...)
		shots = shots[n:]
	}
	return all
}

// betweenMarks are the segments of shots that have no mark between them.
func betweenMarks(shots []shotSeen) []Segment {
	var exact []Segment
	for rest := shots; len(rest) > 0; {
		n := slices.IndexFunc(rest, func(s shotSeen) bool { return s.met.answered != rest[0].met.answered })
		if n < 0 {
			n = len(rest)
		}
		exact = append(exact, turns(rest[:n])...)
		rest = rest[n:]
	}
	if len(exact) <= mostRuns {
		return exact
	}
	return turns(shots)
}

// turns are the segments of shots, split where something is met for the first or the last time. A part that shows
// nothing but what its neighbour shows may be so short that random turns look like it. Then it belongs to the
// neighbour.
func turns(shots []shotSeen) []Segment {
	first, last := map[encounter]int{}, map[encounter]int{}
	for i, s := range shots {
		if _, seen := first[s.met]; !seen {
			first[s.met] = i
		}
		last[s.met] = i
	}
	cut := map[int]bool{len(shots): true}
	for m := range first {
		cut[first[m]], cut[last[m]+1] = true, true
	}
	var parts [][]shotSeen
	begin := 0
	for _, end := range slices.Sorted(maps.Keys(cut)) {
		if end == begin {
			continue
		}
		part := shots[begin:end]
		begin = end
		// A part may belong to the one before it, and the one before it to this one.
		for len(parts) > 0 && (byChance(part, parts[len(parts)-1]) || byChance(parts[len(parts)-1], part)) {
			before := parts[len(parts)-1]
			parts = parts[:len(parts)-1]
			part = shots[end-len(part)-len(before) : end]
		}
		parts = append(parts, part)
	}
	segments := make([]Segment, len(parts))
	for i, part := range parts {
		segments[i] = segmentOf(part)
	}
	return segments
}

// byChance reports whether a part may be a stretch of what a neighbour shows.
func byChance(part, of []shotSeen) bool {
	mine, others := kinds(part), kinds(of)
	for m := range mine {
		if !others[m] {
			return false
		}
	}
	if len(mine) == len(others) {
		return true
	}
	// One of n that take turns at random is not seen in k shots with probability (1-1/n)^k.
	return math.Pow(1-1/float64(len(others)), float64(len(part))) > telling
}

// telling is the probability below which a stretch of shots counts as different from its neighbour.
const telling = 0.01

func kinds(shots []shotSeen) map[encounter]bool {
	all := map[encounter]bool{}
	for _, s := range shots {
		all[s.met] = true
	}
	return all
}

func segmentOf(shots []shotSeen) Segment {
	s := Segment{After: shots[0].mark, From: seconds(shots[0].start)}
	end := shots[0].end
	for _, shot := range shots {
		end = max(end, shot.end)
		counts := &s.Otherwise
		if shot.met.answered {
			counts = &s.Answered
		}
		if *counts == nil {
			*counts = map[string]int{}
		}
		(*counts)[shot.met.text]++
	}
	s.To = max(s.From, seconds(end))
	return s
}

// seconds is a time as it stands in a report: to a tenth of a millisecond.
func seconds(d time.Duration) float64 { return math.Round(d.Seconds()*1e4) / 1e4 }
