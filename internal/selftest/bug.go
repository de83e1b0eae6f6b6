package selftest

import (
	"slices"

	"github.com/service-conformance/conformance/framework/spec"
)

// Bug is a public bug that a fault of the reference is.
type Bug struct {
	Issue string `json:"issue"`
	Fault string `json:"fault"`
	// Red are those of the requirements that it breaks which turn red with the fault. Without any, it is not caught.
	Red []spec.ID `json:"red"`
}

// reproduced are the public bugs of the faults that were tried.
func reproduced(faults []Score) (bugs []Bug) {
	for _, known := range spec.AllRealBugs() {
		i := slices.IndexFunc(faults, func(s Score) bool { return s.Name == known.Fault })
		if i < 0 {
			continue
		}
		b := Bug{Issue: known.Issue, Fault: known.Fault, Red: []spec.ID{}}
		for _, id := range known.Requirements {
			if slices.Contains(faults[i].Red, id) {
				b.Red = append(b.Red, id)
			}
		}
		bugs = append(bugs, b)
	}
	return bugs
}

// missedBugs is how many of them turn none of their requirements red.
func (c *Card) missedBugs() (n int) {
	for i := range c.Bugs {
		if len(c.Bugs[i].Red) == 0 {
			n++
		}
	}
	return n
}
