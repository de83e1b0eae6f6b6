// Package selftest judges the reference with each of its deliberate bugs, and without each of its optional features. The score card says which checks see which bug.
package selftest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// Options say what is tried.
type Options struct {
	// Worker is the command that judges: a program, and arguments that let it call Work.
	Worker []string
	// Faults are what the reference is started with, one at a time.
	Faults []*fault.Fault
	// Without are the features that the reference is started without, one at a time, as --without names them.
	Without []string
	// All says that nothing was left out. A check that never fails, and a low precision, are then findings.
	All bool
	// Selected tries each fault against the checks that it can change (fault.Reach). The others find what they find without it.
	Selected bool
	// Complete tries each fault against every check, and compares what it changes with what it can change.
	Complete bool
	// Quick tries each fault against the checks of the requirements that it breaks. It says nothing of precision.
	Quick bool
	// Parallel is how many references are judged at a time; it is at least 1.
	Parallel int
	// Out is told what became of each fault and feature, in the order in which they end.
	Out io.Writer
}

// UnsoundError says that the reference without a fault is not conformant, so that no score means anything.
type UnsoundError struct {
	// Failed are the checks that it fails, and Unknown those that could not be decided, each with its reason.
	Failed, Unknown []string
}

func (e *UnsoundError) Error() string {
	if len(e.Failed) == 0 {
		return "of the reference without a fault is not known whether it is conformant: " + strings.Join(e.Unknown, "; ")
	}
	return "the reference without a fault is not conformant: " + strings.Join(e.Failed, "; ")
}

// Run judges the reference as it is, then with each fault, then without each feature. The error is an *UnsoundError, that of a context that has ended before anything
// was tried, or tells that the program could not judge. A fault that could not be judged is a problem in the card. If the context ends, the card says what was not tried.
//
// The declarations of checks are those of the suites that this process imports.
func Run(ctx context.Context, o Options) (*Card, error) {
	s := &session{Options: o, workers: workers{o.Worker, o.Parallel}, checks: check.Preview()}
	if err := s.judgeSound(ctx); err != nil {
		return nil, err
	}
	card := &Card{all: o.All, quick: o.Quick}
	var jobs []*weighed
	for _, x := range o.Faults {
		jobs = append(jobs, s.faultJob(card, x))
	}
	for _, without := range o.Without {
		jobs = append(jobs, s.ablationJobs(card, without)...)
	}
	slices.SortStableFunc(jobs, func(a, b *weighed) int { return int(1000 * (b.weight - a.weight)) })
	s.judge(ctx, jobs)
	if ctx.Err() != nil {
		card.interrupted(&o)
	}
	card.count(s)
	card.add(s.sound)
	return card, nil
}

// session is a self-test under way.
type session struct {
	Options
	workers
	checks []check.Declaration

	sound   *report.Report
	results []check.Result     // without a fault
	seconds map[string]float64 // that each check took then
	reached *reached           // nil if it was not recorded
	runs    int                // of checks, with faults
}

// recordsReach reports whether it is recorded what each fault can change.
func (s *session) recordsReach() bool { return s.Selected || s.Complete }

// judgeSound judges the reference without a fault.
func (s *session) judgeSound(ctx context.Context) error {
	var jobs []*weighed
	if s.recordsReach() {
		for i, names := range dealt(s.runsOf(func(d *check.Declaration) bool { return true }), 2*s.Parallel) {
			jobs = append(jobs, &weighed{job: job{Label: fmt.Sprintf("sound, part %d", i+1), Only: names, Record: true}, weight: 1})
		}
	} else {
		jobs = []*weighed{{job: job{Label: "sound"}}}
	}
	sound, reach, problem := finding{}, []reach{}, ""
	for _, j := range jobs {
		j.ended = func(f *finding) {
			sound.candidate, sound.results, reach = f.candidate, append(sound.results, f.results...), append(reach, f.reach...)
			if f.problem != "" {
				problem = f.problem
			}
		}
	}
	s.judge(ctx, jobs)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case problem != "":
		return fmt.Errorf("%s", problem)
	}
	s.sound, s.results, s.seconds = sound.report(), sound.results, map[string]float64{}
	for _, r := range s.results {
		s.seconds[check.DisplayName(r.Check, r.ServiceCIDR)] = r.Seconds
	}
	if bad := failed(s.sound); len(bad) > 0 || s.sound.Summary.Checks.Unknown > 0 {
		return &UnsoundError{bad, undecided(s.results)}
	}
	if s.recordsReach() {
		s.reached = gathered(reach)
	}
	return nil
}

// runsOf are the names of all runs of some checks.
func (s *session) runsOf(some func(*check.Declaration) bool) (names []string) {
	for i := range s.checks {
		d := &s.checks[i]
		if !some(d) {
			continue
		}
		if len(d.ServiceCIDRs) == 0 {
			names = append(names, d.Name)
		}
		for _, r := range d.ServiceCIDRs {
			names = append(names, check.DisplayName(d.Name, r))
		}
	}
	return names
}

// dealt deals names out like cards. Neighbours, which are alike, come into different hands.
func dealt(names []string, hands int) [][]string {
	out := make([][]string, min(hands, len(names)))
	for i, name := range names {
		out[i%len(out)] = append(out[i%len(out)], name)
	}
	return out
}

// faultJob is the job that tries a fault.
func (s *session) faultJob(card *Card, x *fault.Fault) *weighed {
	j := &weighed{job: job{Label: "fault " + x.Name, Faults: []string{x.Name}, Slow: x.Slow}}
	if s.Selected && !s.reached.everywhere[x] {
		j.Only = s.runsOf(func(d *check.Declaration) bool { return s.slowFor(x, d) })
		for name := range s.reached.checks[x] {
			if !slices.Contains(j.Only, name) {
				j.Only = append(j.Only, name)
			}
		}
	}
	if s.Quick {
		of := s.runsOf(func(d *check.Declaration) bool {
			return slices.ContainsFunc(d.Requirements, func(id spec.ID) bool { return slices.Contains(x.Breaks, id) })
		})
		if j.Only != nil {
			of = slices.DeleteFunc(of, func(name string) bool { return !slices.Contains(j.Only, name) })
		}
		j.Only = of
	}
	s.weigh(j)
	s.runs += j.specs
	j.ended = func(f *finding) {
		score := Score{Fault: x}
		if f.problem != "" {
			score.Problem = f.problem
		} else {
			score.judge(f.reportOver(s.results))
			if s.Complete {
				score.Unseen = s.unseen(x, f)
			}
		}
		card.Faults = append(card.Faults, score)
		fmt.Fprintln(s.Out, score.line())
	}
	return j
}

// slowFor reports whether a slow check is tried with a fault. Slow checks are not recorded; those of a suite that could catch the fault are tried.
func (s *session) slowFor(x *fault.Fault, d *check.Declaration) bool {
	return x.Slow && d.Slow && slices.ContainsFunc(s.checks, func(other check.Declaration) bool {
		return other.Suite == d.Suite && other.Slow && slices.ContainsFunc(other.Requirements, func(id spec.ID) bool { return slices.Contains(x.Breaks, id) })
	})
}

// What a job costs beside its checks, in seconds: most faults let a check wait in vain. A check costs a part of what it took while its rules were recorded.
const (
	costOfJob   = 0.6
	partOfCheck = 0.1
)

// weigh says what a job is expected to cost.
func (s *session) weigh(j *weighed) {
	j.weight = costOfJob
	if j.Only == nil {
		for _, seconds := range s.seconds {
			j.weight += partOfCheck * seconds
		}
		j.specs = len(s.seconds)
		return
	}
	for _, name := range j.Only {
		j.weight += partOfCheck * s.seconds[name]
	}
	j.specs = len(j.Only)
}

// failed are the checks that are non-conformant.
// undecided are the checks of a run that are unknown, each with its reason.
func undecided(results []check.Result) (names []string) {
	for _, r := range results {
		if r.Verdict == check.Unknown {
			names = append(names, check.DisplayName(r.Check, r.ServiceCIDR)+": "+r.Reason)
		}
	}
	return names
}

func failed(r *report.Report) (names []string) {
	for _, c := range r.Checks {
		if c.Verdict == check.NonConformant {
			names = append(names, c.DisplayName())
		}
	}
	return names
}
