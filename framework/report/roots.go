package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Root is a requirement that is not met, and whose checks build on no other such requirement: the likely cause of those that it blocks.
type Root struct {
	Requirement spec.ID `json:"requirement"`
	// Blocks is the number of requirements whose checks were not conformant either, and build on this one.
	Blocks int `json:"blocks"`
}

// VerdictOn is what the check says of one of its requirements, be it that another requirement blocks it. It has not judged one that it did not come to, for it ended at
// a known deviation: other checks may have.
func (c *CheckVerdict) VerdictOn(id spec.ID) check.Verdict {
	if len(c.BlockedBy[id]) > 0 {
		return check.Blocked
	}
	on := c.found().VerdictOn(id)
	if on == check.Unknown && c.endedAtKnownDeviation() {
		return check.NotJudged
	}
	return on
}

func (c *CheckVerdict) endedAtKnownDeviation() bool {
	return c.KnownDeviation != nil && c.Result.Verdict == check.NonConformant
}

// Violates reports whether the check says that one of the requirements is not met, and nothing blocks it.
func (c *CheckVerdict) Violates(ids ...spec.ID) bool {
	return slices.ContainsFunc(ids, func(id spec.ID) bool {
		return slices.Contains(c.Requirements, id) && c.VerdictOn(id) == check.NonConformant
	})
}

// found is what the check found by itself: its verdict before the others of the run were known.
func (c *CheckVerdict) found() *check.Result {
	r := c.Result
	switch {
	case r.Verdict != check.Blocked:
	case r.Failure != nil:
		r.Verdict = check.NonConformant
	default:
		r.Verdict = check.Unknown
	}
	return &r
}

// place is a requirement on a Service range: one cluster of several may meet what another does not.
type place struct {
	id   spec.ID
	cidr string
}

// reds are the requirements that are not met where no expectation excuses it.
type reds struct {
	c            *spec.Catalogue
	red, decided map[place]bool
	anywhere     map[spec.ID]bool
	ofFeature    map[string][]violation
}

func newReds(c *spec.Catalogue) *reds {
	return &reds{c, map[place]bool{}, map[place]bool{}, map[spec.ID]bool{}, map[string][]violation{}}
}

// note takes note of what a check found.
func (d *reds) note(x *CheckVerdict) {
	for _, id := range x.Requirements {
		at := place{id, x.ServiceCIDR}
		switch on := x.Result.VerdictOn(id); {
		case on == check.Conformant:
			d.decided[at] = true
		case on == check.NonConformant && x.KnownDeviation == nil:
			d.decided[at], d.red[at], d.anywhere[id] = true, true, true
		}
	}
	if x.Verdict == check.NonConformant && x.KnownDeviation == nil {
		d.noteFeature(x)
	}
}

// at reports whether the requirement is not met on the range, or, where no check decided it there, on another one.
func (d *reds) at(p place) bool {
	if d.decided[p] {
		return d.red[p]
	}
	return d.anywhere[p.id]
}

// roots are those of the requirements that p builds on that are not met, and build on no other such requirement. What weighs less than p does not block it: a run
// whose verdict a MUST decides would look better than it is.
func (d *reds) roots(p place) []spec.ID {
	weight := d.weight(p.id)
	below := slices.DeleteFunc(slices.Clone(d.c.Foundations(p.id)), func(id spec.ID) bool { return d.weight(id) < weight || !d.at(place{id, p.cidr}) })
	roots := slices.DeleteFunc(slices.Clone(below), func(id spec.ID) bool {
		return slices.ContainsFunc(d.c.Foundations(id), func(deeper spec.ID) bool { return slices.Contains(below, deeper) })
	})
	slices.Sort(roots)
	return roots
}

var levelWeight = map[spec.Level]int{spec.May: 1, spec.Should: 2, spec.Must: 3}

func (d *reds) weight(id spec.ID) int {
	if r := d.c.Get(id); r != nil {
		return levelWeight[r.Level]
	}
	return 0
}

// block marks what goes back to other requirements. A check of a requirement that builds on one that is not met cannot
// tell whether its own is. As no requirement builds on itself, one that is not met always stays, so that blocking never
// makes a run look better. A known deviation neither blocks nor is blocked: it has its own explanation.
func (r *Report) block(c *spec.Catalogue) {
	reds := newReds(c)
	for i := range r.Checks {
		reds.note(&r.Checks[i])
	}
	for i := range r.Checks {
		reds.block(&r.Checks[i])
	}
	r.deepen()
}

// deepen replaces roots that are blocked themselves, because of a feature that their own checks use, by theirs.
func (r *Report) deepen() {
	open, by := map[spec.ID]bool{}, map[spec.ID][]spec.ID{}
	for i := range r.Checks {
		x := &r.Checks[i]
		for _, id := range x.Requirements {
			if x.VerdictOn(id) == check.NonConformant {
				open[id] = true
			}
			by[id] = append(by[id], x.BlockedBy[id]...)
		}
	}
	var roots func(spec.ID, map[spec.ID]bool) []spec.ID
	roots = func(id spec.ID, seen map[spec.ID]bool) (all []spec.ID) {
		if open[id] {
			return []spec.ID{id}
		}
		if seen[id] { // a check that did not come to a requirement may be blocked by that requirement
			return nil
		}
		seen[id] = true
		for _, deeper := range by[id] {
			all = append(all, roots(deeper, seen)...)
		}
		return all
	}
	for i := range r.Checks {
		for id, blockers := range r.Checks[i].BlockedBy {
			var deepest []spec.ID
			for _, b := range blockers {
				deepest = append(deepest, roots(b, map[spec.ID]bool{})...)
			}
			slices.Sort(deepest)
			r.Checks[i].BlockedBy[id] = slices.Compact(deepest)
		}
	}
}

func (d *reds) block(x *CheckVerdict) {
	failed := x.Verdict == check.NonConformant || x.Verdict == check.Unknown && x.Reason != check.Interrupted
	if len(d.anywhere) == 0 || !failed || x.KnownDeviation != nil {
		return
	}
	left := false // something that nothing blocks
	blockedBy := map[spec.ID][]spec.ID{}
	for _, id := range x.Requirements {
		on := x.Result.VerdictOn(id)
		if on != check.NonConformant && on != check.Unknown {
			continue
		}
		by := d.roots(place{id, x.ServiceCIDR})
		if x.Failure != nil && on == check.Unknown { // the check ended before it came to this requirement
			for _, v := range x.Failure.Violated {
				at := place{v, x.ServiceCIDR}
				if d.weight(v) < d.weight(id) || !d.at(at) {
					continue
				}
				if deeper := d.roots(at); len(deeper) > 0 {
					by = append(by, deeper...)
				} else {
					by = append(by, v)
				}
			}
			slices.Sort(by)
			by = slices.Compact(by)
		}
		if len(by) == 0 {
			by = d.featureRoots(x, place{id, x.ServiceCIDR})
		}
		if len(by) == 0 {
			left = true
			continue
		}
		blockedBy[id] = by
	}
	if len(blockedBy) > 0 {
		x.BlockedBy = blockedBy
		if !left {
			x.Verdict = check.Blocked
		}
	}
}

// Live judges results one by one while a run goes on. It cannot know yet what is blocked by a requirement whose check
// ends later.
type Live struct {
	run  *Run
	reds *reds
}

// NewLive begins to judge a run.
func NewLive(run Run) *Live { return &Live{&run, newReds(spec.Default())} }

// Judge returns the verdict of a check as far as it is known now.
func (l *Live) Judge(result check.Result) *CheckVerdict {
	x, _ := l.run.excuse(result)
	l.reds.note(&x)
	l.reds.block(&x)
	return &x
}

// rooted fills in what blocks each requirement, and Roots. The verdicts of requirements must be known.
func (r *Report) rooted() {
	by := map[spec.ID][]spec.ID{}
	for _, x := range r.Checks {
		for id, roots := range x.BlockedBy {
			by[id] = append(by[id], roots...)
		}
	}
	blocks := map[spec.ID]int{}
	for i := range r.Requirements {
		v := &r.Requirements[i]
		if v.Verdict != check.Blocked {
			continue
		}
		slices.Sort(by[v.ID])
		v.BlockedBy = slices.Compact(by[v.ID])
		for _, root := range v.BlockedBy {
			blocks[root]++
		}
	}
	for _, v := range r.Requirements {
		if v.Verdict == check.NonConformant && !v.KnownDeviation {
			r.Roots = append(r.Roots, Root{v.ID, blocks[v.ID]})
		}
	}
	slices.SortStableFunc(r.Roots, func(a, b Root) int { return cmp.Compare(b.Blocks, a.Blocks) })
}

// rootsShown is how many roots the verdict of a run names.
const rootsShown = 5

// RootsLine says in words to which requirements the failures of the run go back; empty where nothing is non-conformant that was not expected.
func (r *Report) RootsLine() string {
	total := len(r.Roots) + r.Summary.Requirements.Blocked
	switch {
	case len(r.Roots) == 0:
		return ""
	case total == 1:
		return fmt.Sprintf("1 requirement is red: %s", r.Roots[0].Requirement)
	case len(r.Roots) == 1:
		return fmt.Sprintf("%d requirements are red; all go back to %s", total, r.Roots[0].Requirement)
	}
	var names []string
	for _, x := range r.Roots[:min(len(r.Roots), rootsShown)] {
		name := string(x.Requirement)
		if x.Blocks > 0 {
			name += fmt.Sprintf(" (blocks %d)", x.Blocks)
		}
		names = append(names, name)
	}
	if more := len(r.Roots) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	text := fmt.Sprintf("%d requirements are red", total)
	if r.Summary.Requirements.Blocked > 0 {
		text += fmt.Sprintf("; they go back to %d", len(r.Roots))
	}
	return text + ": " + strings.Join(names, ", ")
}

// blockedText says what blocks the check.
func blockedText(c *CheckVerdict) string {
	var by []spec.ID
	for _, roots := range c.BlockedBy {
		by = append(by, roots...)
	}
	slices.Sort(by)
	names := ""
	for _, id := range slices.Compact(by) {
		names += ", " + string(id)
	}
	return "blocked by " + strings.TrimPrefix(names, ", ")
}
