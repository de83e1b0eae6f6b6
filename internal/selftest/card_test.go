package selftest

import (
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// found is a report in which one check for each of the requirements has failed.
func found(red ...spec.ID) *report.Report {
	var results []check.Result
	for _, id := range red {
		results = append(results, check.Result{Suite: "proxy", Check: string(id) + ": x", Requirements: []spec.ID{id}, Verdict: check.NonConformant,
			Failure: &check.Failure{Message: "m"}})
	}
	return report.Build(report.Run{}, results)
}

func scored(name string, breaks []spec.ID, red ...spec.ID) Score {
	s := Score{Fault: &fault.Fault{Name: name, Breaks: breaks}}
	s.judge(found(red...))
	return s
}

func TestTheScoreCardTellsWhatFaultsNameFromWhatElseIsRed(t *testing.T) {
	const a, b, c = spec.APITypeValues, spec.ProxyDNSSrvPort, spec.AllocDNSAddressConflict
	card := Card{all: true, Faults: []Score{
		scored("exact", []spec.ID{a}, a), scored("broad", []spec.ID{a}, a, b, c), scored("missed", []spec.ID{a}, b), scored("unseen", []spec.ID{a}),
	}}
	sound := found()
	for _, id := range []spec.ID{a, b, c, spec.APIVersionReturned} {
		sound.Checks = append(sound.Checks, report.CheckVerdict{Result: check.Result{Check: string(id) + ": x", Verdict: check.Conformant}})
	}
	card.add(sound)
	if card.Caught != 2 || card.Total != 4 || card.Precision != 0.4 || card.WorstRed != 3 {
		t.Errorf("%d of %d caught, precision %g, worst %d", card.Caught, card.Total, card.Precision, card.WorstRed)
	}
	if len(card.NeverFailed) != 1 || !strings.HasPrefix(card.NeverFailed[0], string(spec.APIVersionReturned)) {
		t.Errorf("never seen to fail: %q", card.NeverFailed)
	}
	for i, want := range []string{"", "", "only checks of requirements that it does not name fail", "no check fails"} {
		if got := card.Faults[i].Problem; !strings.HasPrefix(got, want) || (want == "") != (got == "") {
			t.Errorf("%s: %q, want %q", card.Faults[i].Name, got, want)
		}
	}
	text := card.Markdown()
	for _, want := range []string{"| recall | 50.0% |", "| precision | 40.0% |", "| `broad` | 3 | 2 | 0 | " + string(c) + ", " + string(b) + " |", "| " + string(b) + ": x | 2 |"} {
		if !strings.Contains(text, want) {
			t.Errorf("the score card lacks %q:\n%s", want, text)
		}
	}
	if text != card.Markdown() {
		t.Error("the score card is not the same when it is written again")
	}
}

func TestAFaultIsNotCaughtByWhatIsBlocked(t *testing.T) {
	c := spec.Default()
	for i := range c.Requirements {
		r := &c.Requirements[i]
		if f := c.Foundations(r.ID); r.Level == spec.Must && len(f) > 0 && c.Get(f[0]).Level == spec.Must {
			s := scored("x", []spec.ID{r.ID}, r.ID, f[0])
			if !strings.HasPrefix(s.Problem, "only checks of requirements that it does not name fail") || len(s.Blocked) != 1 {
				t.Errorf("%s builds on %s: %+v", r.ID, f[0], s)
			}
			return
		}
	}
	t.Error("no requirement builds on another one")
}
