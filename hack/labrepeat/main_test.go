//go:build linux

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

func TestOnlyDecidedVerdictsAreCompared(t *testing.T) {
	for _, c := range []struct {
		runs []check.Verdict
		same bool
	}{
		{[]check.Verdict{check.Conformant, check.Unknown, check.Blocked}, true},
		{[]check.Verdict{check.NonConformant, check.Unknown}, true},
		{[]check.Verdict{check.Conformant, check.NonConformant}, false},
		{[]check.Verdict{check.Conformant, check.Unknown, check.NonConformant}, false},
		{[]check.Verdict{check.Conformant, check.NotJudged}, false},
		{[]check.Verdict{check.Conformant, listedIntermittent, check.Unknown}, true},
	} {
		verdicts := map[check.Verdict][]int{}
		for i, v := range c.runs {
			verdicts[v] = append(verdicts[v], i)
		}
		if onlyUndecided(verdicts) != c.same {
			t.Errorf("%v: the same where it was decided is %v", c.runs, !c.same)
		}
	}
}

func TestParseStat(t *testing.T) {
	pid, parent, name, ok := parseStat("42 (a (b) c) S 7 42 42 0")
	if pid != 42 || parent != 7 || name != "a (b) c" || !ok {
		t.Errorf("%d %d %q %v", pid, parent, name, ok)
	}
	for _, text := range []string{"", "42", "42 (a", "42 (a) S", "x (a) S 7 1"} {
		if _, _, _, ok := parseStat(text); ok {
			t.Errorf("%q is taken", text)
		}
	}
}

func TestKubeconfigOf(t *testing.T) {
	for want, args := range map[string][]string{"a": {"run", "--kubeconfig", "a"}, "b": {"--kubeconfig=b", "x"}, "": {"run", "--kubeconfig"}} {
		if got := kubeconfigOf(args); got != want {
			t.Errorf("%q of %q, want %q", got, args, want)
		}
	}
}

func TestStressesAreNamed(t *testing.T) {
	if chosen, err := parseStresses("disk,none"); err != nil || len(chosen) != 2 || chosen[0].name != "disk" {
		t.Errorf("%v, error %v", chosen, err)
	}
	if _, err := parseStresses("disk,rain"); err == nil {
		t.Error("rain is no stress")
	}
}
