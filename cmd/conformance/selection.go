package main

import (
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// splitFocus takes lists apart: IDs may be joined by commas, names of checks have commas of their own.
func splitFocus(given []string) (patterns []string) {
	for _, g := range given {
		if strings.Contains(g, ": ") {
			patterns = append(patterns, g)
			continue
		}
		for p := range strings.SplitSeq(g, ",") {
			if p = strings.TrimSpace(p); p != "" {
				patterns = append(patterns, p)
			}
		}
	}
	return patterns
}

// selected is what the report says of what the run was asked to judge.
func (f *runFlags) selected(declarations []check.Declaration, leftOut []string) *report.Selection {
	s := &report.Selection{
		Suites: f.Suites, Focus: f.Focus, Skip: f.Skip, ServiceCIDRs: f.ServiceCIDRs, Profiles: f.Profiles, Features: f.Features, ClaimedSuites: f.ClaimedSuites, Slow: f.Slow,
		MaxWaitSeconds: f.MaxWait.Seconds(), Expectations: "published", Arguments: withoutKey(os.Args[1:]),
	}
	if f.expectations != "" {
		s.Expectations = f.expectations
	}
	if f.Shard.Of > 0 {
		s.Shard = &report.Shard{Shard: f.Shard, Checks: f.Divided(declarations)}
	}
	for _, id := range leftOut {
		s.LeftOut = append(s.LeftOut, spec.ID(id))
	}
	s.Claimed, s.Unasked = len(f.Claimed(declarations)), f.Unasked(declarations)
	return s
}

// again is the command that judges these requirements as this run did.
func (f *runFlags) again(ids []string) string {
	words := []string{"conformance", "run"}
	f.given.Visit(func(flag *pflag.Flag) {
		switch flag.Name {
		case "focus", "skip", "suite", "report-dir", "out", "fail-fast", "seed", "tier-name", "print-report", "shard":
			return
		}
		values := []string{flag.Value.String()}
		if list, ok := flag.Value.(pflag.SliceValue); ok {
			values = list.GetSlice()
		}
		for _, v := range values {
			if flag.Value.Type() == "bool" {
				words = append(words, "--"+flag.Name)
				continue
			}
			if flag.NoOptDefVal != "" { // its value cannot be a word of its own
				words = append(words, "--"+flag.Name+"="+quoted(v))
				continue
			}
			words = append(words, "--"+flag.Name, quoted(v))
		}
	})
	return strings.Join(append(words, "--focus", strings.Join(ids, ",")), " ")
}

// quoted is a word as a shell takes it.
func quoted(word string) string {
	if word != "" && strings.Trim(word, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_./:,=@%+") == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
