package report

import (
	"cmp"
	"slices"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Part is the report of a part of a run: of one of several clusters of the same implementation, or of one shard.
type Part struct {
	// ServiceCIDR is the cluster's range, or two joined by a comma; empty for a shard, whose checks no other part has.
	ServiceCIDR string
	Report      *Report
}

// Merge makes one report of the parts of a run, as if one process had judged all. What depends on other results, such
// as what blocks a check, is decided over all of them. Of run it takes what the parts cannot know: the time, the seed,
// the expectations and Candidate.Tier. The rest of the candidate is that of the parts. Where there are several
// clusters, each result carries the Service range of its cluster. A check of a fixed range, which at most one of them
// has, stands there once, with its worst verdict. What one cluster could not judge is left out where another one did, unless the check is about the range.
func Merge(run Run, parts []Part) *Report {
	tier := run.Candidate.Tier
	run.Candidate, run.Planned = Described(parts), 0
	run.Candidate.Tier = tier
	var results []check.Result
	judged := map[[2]string]bool{} // checks that a part has judged
	for _, p := range parts {
		for _, c := range p.Report.Checks {
			judged[[2]string{c.Suite, c.Check}] = judged[[2]string{c.Suite, c.Check}] || c.Verdict != check.NotJudged
		}
	}
	at := map[[3]string]int{} // where in results a check of a range is
	for _, p := range parts {
		run.Planned += p.Report.NotRun
		run.Interrupted = run.Interrupted || p.Report.Interrupted
		run.Ended = append(run.Ended, p.Report.Ended...)
		run.Programs = together(run.Programs, p.Report.Programs)
		run.Residue = leftTogether(run.Residue, p.Report.Residue)
		for _, c := range p.Report.Checks {
			r := *c.found()
			if r.Verdict == check.NotJudged && r.ServiceCIDR == "" && judged[[2]string{r.Suite, r.Check}] {
				continue
			}
			if len(parts) > 1 && r.ServiceCIDR == "" {
				r.ServiceCIDR = p.ServiceCIDR
			}
			key := [3]string{r.Suite, r.Check, r.ServiceCIDR}
			if i, before := at[key]; before {
				if check.Worse(results[i].Verdict, r.Verdict) != results[i].Verdict {
					results[i] = r
				}
				continue
			}
			at[key] = len(results)
			results = append(results, r)
		}
	}
	run.Planned += len(results)
	return Build(run, results)
}

// leftTogether is what two parts have left; nil if nobody has looked in either.
func leftTogether(a, b *candidate.Residue) *candidate.Residue {
	if a == nil || b == nil {
		return cmp.Or(a, b)
	}
	both := a.And(*b)
	return &both
}

// Described is what the parts say of their candidate: the first that knows it, with the capabilities of all. One that was judged without traffic does not know the proxy.
func Described(parts []Part) candidate.Description {
	var d candidate.Description
	for _, p := range parts {
		what := p.Report.Candidate
		if d.Implementation == "" {
			capabilities := d.Capabilities
			d = what
			d.Capabilities = capabilities
		}
		if d.DataPlane.Name == "" && what.DataPlane.Name != "" {
			d.DataPlane, d.ProxyMode, d.Declarations = what.DataPlane, what.ProxyMode, what.Declarations
			d.Surroundings, d.Witnesses = what.Surroundings, what.Witnesses
		}
		for _, c := range what.Capabilities {
			if !slices.Contains(d.Capabilities, c) {
				d.Capabilities = append(slices.Clip(d.Capabilities), c)
			}
		}
	}
	if d.Capabilities == nil {
		d.Capabilities = []spec.Capability{}
	}
	return d
}

// Undecided is the report of a cluster on which no check could run: every check that was selected is unknown, for the reason.
func Undecided(declarations []check.Declaration, reason string) *Report {
	var results []check.Result
	for _, d := range declarations {
		if d.Runs == 0 {
			continue
		}
		results = append(results, check.Result{
			Suite: d.Suite, Check: d.Name, Requirements: d.Requirements, Verdict: check.Unknown, Reason: reason,
			TimeoutSeconds: d.Timeout.Seconds(), Location: d.Location,
		})
	}
	return Build(Run{Planned: len(results), Interrupted: reason == check.Interrupted}, results)
}

// together adds what programs of the same name took.
func together(all, more []Program) []Program {
	for _, m := range more {
		i := slices.IndexFunc(all, func(p Program) bool { return p.Program == m.Program })
		if i < 0 {
			i = len(all)
			all = append(all, Program{Program: m.Program})
		}
		all[i].Processes += m.Processes
		all[i].ProcessorSeconds += m.ProcessorSeconds
	}
	slices.SortStableFunc(all, func(a, b Program) int { return cmp.Compare(b.ProcessorSeconds, a.ProcessorSeconds) })
	return all
}
