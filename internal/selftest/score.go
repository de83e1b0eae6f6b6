package selftest

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// Score is what became of the suites on the reference with a fault.
type Score struct {
	*fault.Fault
	// CaughtBy are the checks of the requirements it breaks that are non-conformant, AlsoFailed those of other requirements.
	CaughtBy   []string `json:"caughtBy"`
	AlsoFailed []string `json:"alsoFailed,omitempty"`
	// Red are the requirements that are not met, Blocked those that go back to them.
	Red     []spec.ID `json:"red"`
	Blocked []spec.ID `json:"blocked,omitempty"`
	Problem string    `json:"problem,omitempty"`
	// Unseen are checks that the fault changed although the recording said that it could not; looked for in a complete self-test.
	Unseen []Unseen `json:"unseen,omitempty"`

	failed map[string]bool // checks, blocked ones included
}

// judge enters what a run with the fault found.
func (s *Score) judge(r *report.Report) {
	caught, also := map[string]bool{}, map[string]bool{}
	s.failed = map[string]bool{}
	for _, c := range r.Checks {
		switch {
		case c.Violates(s.Breaks...):
			caught[c.Check] = true
		case c.Verdict == check.NonConformant:
			also[c.Check] = true
		}
		if c.Failure != nil {
			s.failed[c.Check] = true
		}
	}
	for _, v := range r.Requirements {
		switch v.Verdict {
		case check.NonConformant:
			s.Red = append(s.Red, v.ID)
		case check.Blocked:
			s.Blocked = append(s.Blocked, v.ID)
		}
	}
	s.CaughtBy, s.AlsoFailed = sorted(caught), sorted(also)
	switch {
	case len(caught) == 0 && len(also) == 0:
		s.Problem = "no check fails"
	case len(caught) == 0:
		s.Problem = "only checks of requirements that it does not name fail: " + strings.Join(s.AlsoFailed, "; ")
	}
}

// others are the red requirements that the fault does not name.
func (s *Score) others() []spec.ID {
	return slices.DeleteFunc(slices.Clone(s.Red), func(id spec.ID) bool { return slices.Contains(s.Breaks, id) })
}

// line says what became of the fault.
func (s *Score) line() string {
	lines := []string{s.verdict()}
	for i := range s.Unseen {
		lines = append(lines, s.Unseen[i].line(s.Name))
	}
	return strings.Join(lines, "\n")
}

func (s *Score) verdict() string {
	if s.Problem != "" {
		return fmt.Sprintf("NOT CAUGHT  %-44s %s", s.Name, s.Problem)
	}
	besides := ""
	if others := s.others(); len(others) > 0 {
		besides = "; red besides: " + joined(others)
	}
	return fmt.Sprintf("caught      %-44s by %d checks, first %s%s", s.Name, len(s.CaughtBy), s.CaughtBy[0], besides)
}

func joined(ids []spec.ID) string {
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = string(id)
	}
	return strings.Join(names, ", ")
}

// sorted are the names of a set. They are never nil, which JSON would write as null.
func sorted(set map[string]bool) []string {
	names := slices.AppendSeq(make([]string, 0, len(set)), maps.Keys(set))
	slices.Sort(names)
	return names
}
