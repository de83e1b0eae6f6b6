package selftest

import (
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// reached are the names of the checks that each fault could change, and the rules that it edits. Those everywhere could change every check.
type reached struct {
	checks     map[*fault.Fault]map[string]bool
	rules      map[*fault.Fault][]string
	everywhere map[*fault.Fault]bool
}

// gathered puts together what was recorded in parts.
func gathered(parts []reach) *reached {
	r := &reached{map[*fault.Fault]map[string]bool{}, map[*fault.Fault][]string{}, map[*fault.Fault]bool{}}
	faults := map[string]*fault.Fault{}
	for _, f := range fault.All() {
		faults[f.Name], r.checks[f] = f, map[string]bool{}
	}
	for _, part := range parts {
		f := faults[part.Fault]
		for _, name := range part.Checks {
			if name == fault.Outside {
				r.everywhere[f] = true
			}
			r.checks[f][name] = true
		}
		for _, rule := range part.Rules {
			if !slices.Contains(r.rules[f], rule) {
				r.rules[f] = append(r.rules[f], rule)
			}
		}
	}
	return r
}

// Unseen is a check that a fault changed although the recording said that it could not.
type Unseen struct {
	Check string `json:"check"`
	// Rules are those that the fault edits. The use of one of them was not seen.
	Rules []string `json:"rules"`
}

// unseen are the checks that a fault changed, and that it could not change.
func (s *session) unseen(x *fault.Fault, f *finding) (unseen []Unseen) {
	before := map[string]bool{}
	for _, r := range s.results {
		before[check.DisplayName(r.Check, r.ServiceCIDR)] = r.Failure != nil
	}
	for _, r := range f.results {
		name := check.DisplayName(r.Check, r.ServiceCIDR)
		if (r.Failure != nil) != before[name] && !s.reached.everywhere[x] && !s.reached.checks[x][name] && !s.triedSlowly(x, r.Check) {
			unseen = append(unseen, Unseen{name, s.reached.rules[x]})
		}
	}
	return unseen
}

// triedSlowly reports whether a check is a slow one that is tried with the fault.
func (s *session) triedSlowly(x *fault.Fault, name string) bool {
	return slices.ContainsFunc(s.checks, func(d check.Declaration) bool { return d.Name == name && s.slowFor(x, &d) })
}

func (u *Unseen) line(faultName string) string {
	return fmt.Sprintf("NOT SEEN    %-44s changes %s, where the use of %s was not seen", faultName, u.Check, strings.Join(u.Rules, " or "))
}
