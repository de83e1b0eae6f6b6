package selftest

import (
	"slices"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

func TestAChangeThatTheRecordingDidNotSeeIsNamed(t *testing.T) {
	x := fault.All()[0]
	s := &session{
		results: []check.Result{{Check: "a"}, {Check: "b"}, {Check: "c"}},
		reached: gathered([]reach{{x.Name, []string{"a"}, []string{"rule-one"}}, {x.Name, []string{"a"}, []string{"rule-one", "rule-two"}}}),
	}
	failure := &check.Failure{Message: "m"}
	f := &finding{results: []check.Result{{Check: "a", Failure: failure}, {Check: "b", Failure: failure}, {Check: "c"}}}
	unseen := s.unseen(x, f)
	if len(unseen) != 1 || unseen[0].Check != "b" || !slices.Equal(unseen[0].Rules, []string{"rule-one", "rule-two"}) {
		t.Errorf("unseen: %+v", unseen)
	}
	s.reached = gathered([]reach{{x.Name, []string{fault.Outside}, nil}})
	if unseen := s.unseen(x, f); len(unseen) > 0 {
		t.Errorf("of a fault that reaches every check: %+v", unseen)
	}
}

func TestChecksThatDidNotRunFindWhatTheyFindWithoutTheFault(t *testing.T) {
	f := &finding{results: []check.Result{{Check: "a", Verdict: check.NonConformant, Failure: &check.Failure{Message: "m"}}}}
	r := f.reportOver([]check.Result{{Check: "a", Verdict: check.Conformant}, {Check: "b", ServiceCIDR: "10.96.0.0/24", Verdict: check.Conformant}})
	if len(r.Checks) != 2 || r.Checks[0].Verdict != check.NonConformant || r.Checks[1].Verdict != check.Conformant {
		t.Errorf("the checks are %+v", r.Checks)
	}
}

func TestAnInterruptedSelfTestSaysWhatItHasNotTried(t *testing.T) {
	all := fault.All()[:3]
	card := &Card{Faults: []Score{{Fault: all[1]}}, all: true}
	card.interrupted(&Options{Faults: all, Without: []string{"UDP"}})
	if want := []string{all[0].Name, all[2].Name, "without UDP"}; !slices.Equal(card.NotTried, want) {
		t.Errorf("not tried: %q, want %q", card.NotTried, want)
	}
	if card.Passed() {
		t.Error("an interrupted self-test has passed")
	}
}
