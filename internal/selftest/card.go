package selftest

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
)

// minPrecision is the share of red requirements that faults must name, over all faults: below it the self-test fails.
const minPrecision = 0.95

// Card is the score card of a self-test.
type Card struct {
	Faults []Score `json:"faults"`
	// NeverFailed are checks that no fault makes fail; filled only when all faults were tried.
	NeverFailed []string `json:"neverFailed"`
	// Ablations are what became of references that are without a feature.
	Ablations []Ablation `json:"ablations,omitempty"`
	// Bugs are the public bugs that the faults are.
	Bugs   []Bug `json:"bugs,omitempty"`
	Caught int   `json:"caught"`
	Total  int   `json:"total"`
	// Precision is how many of the red requirements the fault names that turned them red, over all faults.
	Precision float64 `json:"precision,omitempty"`
	// MedianRed and WorstRed are numbers of red requirements per fault.
	MedianRed int `json:"medianRed,omitempty"`
	WorstRed  int `json:"worstRed,omitempty"`
	// NotTried are the faults and features that an interruption left untried.
	NotTried []string `json:"notTried,omitempty"`
	// Runs are those of checks on references with faults, of AllRuns that there are. They differ where each fault was tried against the checks that it can change.
	Runs    int `json:"runs"`
	AllRuns int `json:"allRuns"`
	// Everywhere is the number of faults of which it cannot be told what they can change: they count as reaching every check.
	Everywhere int `json:"everywhere"`

	all, quick   bool // as in Options
	selected     bool
	seen, checks int // checks that were seen to fail, of all
}

// interrupted notes what was not tried.
func (c *Card) interrupted(o *Options) {
	tried := map[string]bool{}
	for i := range c.Faults {
		tried[c.Faults[i].Name] = true
	}
	for i := range c.Ablations {
		tried["without "+c.Ablations[i].Without] = true
	}
	for _, f := range o.Faults {
		if !tried[f.Name] {
			c.NotTried = append(c.NotTried, f.Name)
		}
	}
	for _, w := range o.Without {
		if !tried["without "+w] {
			c.NotTried = append(c.NotTried, "without "+w)
		}
	}
	c.all = false
}

// count enters how many runs of checks there were.
func (c *Card) count(s *session) {
	c.Runs, c.AllRuns, c.selected = s.runs, len(s.Faults)*len(s.seconds), s.Selected
	if s.reached == nil {
		return
	}
	for _, f := range s.Faults {
		if s.reached.everywhere[f] {
			c.Everywhere++
		}
	}
}

// add sums up the scores. sound is the report of the reference without a fault.
func (c *Card) add(sound *report.Report) {
	slices.SortFunc(c.Faults, func(a, b Score) int { return strings.Compare(a.Name, b.Name) })
	slices.SortFunc(c.Ablations, func(a, b Ablation) int { return strings.Compare(a.Without, b.Without) })
	c.Total, c.NeverFailed = len(c.Faults), []string{}
	failed := map[string]bool{}
	red, others := []int{}, 0
	for _, s := range c.Faults {
		if s.Problem == "" {
			c.Caught++
		}
		maps.Copy(failed, s.failed)
		red = append(red, len(s.Red))
		others += len(s.others())
	}
	checks := map[string]bool{}
	for _, x := range sound.Checks {
		if x.Verdict != check.Conformant || checks[x.Check] {
			continue
		}
		checks[x.Check] = true
		switch {
		case failed[x.Check]:
			c.seen++
		case c.all:
			c.NeverFailed = append(c.NeverFailed, x.Check)
		}
	}
	c.Bugs = reproduced(c.Faults)
	slices.Sort(c.NeverFailed)
	c.checks = len(checks)
	if c.quick || len(red) == 0 {
		return
	}
	slices.Sort(red)
	total := 0
	for _, n := range red {
		total += n
	}
	c.MedianRed, c.WorstRed = red[len(red)/2], red[len(red)-1]
	if total > 0 {
		c.Precision = float64(total-others) / float64(total)
	}
}

// JSON is the card for programs: selftest.json.
func (c *Card) JSON() ([]byte, error) {
	data, err := json.MarshalIndent(c, "", "  ")
	return append(data, '\n'), err
}

// Passed reports whether every fault and every public bug was caught and every feature isolated. If nothing was left out, every check was also seen to fail, and the precision is
// high enough.
func (c *Card) Passed() bool {
	return c.Caught == c.Total && len(c.NeverFailed) == 0 && c.isolated() == len(c.Ablations) && !c.imprecise() && len(c.NotTried) == 0 && c.unseen() == 0 && c.missedBugs() == 0
}

// unseen is how many checks faults changed although the recording said that they could not.
func (c *Card) unseen() (n int) {
	for i := range c.Faults {
		n += len(c.Faults[i].Unseen)
	}
	return n
}

func (c *Card) imprecise() bool { return c.all && !c.quick && c.Precision < minPrecision }

func (c *Card) isolated() (n int) {
	for _, a := range c.Ablations {
		if a.Problem == "" {
			n++
		}
	}
	return n
}

// WriteSummary says in a few lines what the self-test found; path is where the card is.
func (c *Card) WriteSummary(out io.Writer, path string) {
	for _, name := range c.NeverFailed {
		fmt.Fprintf(out, "never seen to fail  %s\n", name)
	}
	fmt.Fprintf(out, "report: %s\n", path)
	if c.selected {
		fmt.Fprintf(out, "faults were tried against the checks that they can change: %d of %d runs; %d faults count as reaching every check\n", c.Runs, c.AllRuns, c.Everywhere)
	}
	if n := c.unseen(); n > 0 {
		fmt.Fprintf(out, "%d checks were changed by faults that seemed not to reach them: without --complete, they would not have run\n", n)
	}
	if c.Total > 0 && !c.quick {
		fmt.Fprintf(out, "precision %s; red requirements per fault: median %d, worst %d\n", percent(c.Precision), c.MedianRed, c.WorstRed)
	}
	if c.imprecise() {
		fmt.Fprintf(out, "the precision is below %s: a check is red for what its requirement does not say, or fixtures/spec/builds-on.yaml lacks what it builds on\n", percent(minPrecision))
	}
	if c.Total > 0 {
		fmt.Fprintf(out, "%d of %d faults caught, %d of %d checks seen to fail\n", c.Caught, c.Total, c.seen, c.checks)
	}
	for _, b := range c.Bugs {
		if len(b.Red) == 0 {
			fmt.Fprintf(out, "NOT CAUGHT  %s: the fault %s turns none of its requirements red\n", b.Issue, b.Fault)
		}
	}
	if len(c.Bugs) > 0 {
		fmt.Fprintf(out, "%d public bugs reproduced, %d caught\n", len(c.Bugs), len(c.Bugs)-c.missedBugs())
	}
	if len(c.Ablations) > 0 {
		fmt.Fprintf(out, "%d of %d features isolated\n", c.isolated(), len(c.Ablations))
	}
	if n := len(c.NotTried); n > 0 {
		fmt.Fprintf(out, "interrupted: not tried are %d faults and features, %s%s\n", n, strings.Join(c.NotTried[:min(n, shownNotTried)], ", "), more(n-shownNotTried))
	}
}

// shownNotTried is how many of them the summary names; the card has all.
const shownNotTried = 5

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d more, which the report names", n)
}

func percent(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }
