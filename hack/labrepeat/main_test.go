package main

import (
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
)

func TestOnlyDeviationsThatAreListedAsIntermittentMayDiffer(t *testing.T) {
	of := func(v check.Verdict, known *report.Expectation) *report.CheckVerdict {
		return &report.CheckVerdict{Result: check.Result{Verdict: v}, KnownDeviation: known}
	}
	good, bad := of(check.Conformant, nil), of(check.NonConformant, nil)
	listed, intermittent := of(check.NonConformant, &report.Expectation{}), of(check.NonConformant, &report.Expectation{Intermittent: true})
	for _, c := range []struct {
		runs []*report.CheckVerdict
		may  bool
	}{
		{[]*report.CheckVerdict{good, intermittent, good}, true},
		{[]*report.CheckVerdict{good, listed}, false},
		{[]*report.CheckVerdict{good, bad}, false},
		{[]*report.CheckVerdict{good, intermittent, bad}, false},
		{[]*report.CheckVerdict{intermittent, of(check.Unknown, nil)}, false},
	} {
		verdicts := map[check.Verdict][]int{}
		for i, v := range c.runs {
			verdicts[verdictOf(v)] = append(verdicts[verdictOf(v)], i)
		}
		if onlyIntermittent(verdicts) != c.may {
			t.Errorf("%v: may differ is %v", verdicts, !c.may)
		}
	}
}
