// Package report turns the results of a run into its report: verdicts per requirement, known deviations, exit code,
// report.json, JUnit and what a person reads.
package report

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// SchemaVersion is the version of the report's JSON form. It grows when a field changes its meaning or goes.
// Version 2 tells apart what does not apply and what was not judged.
const SchemaVersion = 2

// tellsNotJudged is the first version whose reports say "not applicable" only of what does not bind the candidate.
const tellsNotJudged = 2

// Report is what a run found. Its JSON form is deterministic: the same results give the same bytes but for times.
type Report struct {
	SchemaVersion int                   `json:"schemaVersion"`
	SuiteVersion  string                `json:"suiteVersion"`
	Candidate     candidate.Description `json:"candidate"`
	Started       time.Time             `json:"started"`
	Seconds       float64               `json:"seconds"`
	Seed          int64                 `json:"seed"`
	// Catalogue is the digest of the requirements that the run judged by, see spec.Digest.
	Catalogue string `json:"catalogue,omitempty"`
	// Submitter is who has the implementation judged.
	Submitter *Submitter `json:"submitter,omitempty"`
	// Verdict is the worst verdict over all MUST requirements, known deviations left aside, or one of InPart, AsExpected and Unlisted.
	Verdict check.Verdict `json:"verdict"`
	// Selection is what the run was asked to judge; nil in reports of before it was recorded.
	Selection *Selection `json:"selection,omitempty"`
	Summary   Summary    `json:"summary"`
	// Profiles are the verdicts by profile, of those in which something was judged.
	Profiles     []ProfileVerdict     `json:"profiles,omitempty"`
	Requirements []RequirementVerdict `json:"requirements"`
	Checks       []CheckVerdict       `json:"checks"`
	// Roots are the requirements that are not met and that nothing blocks, those that block most first; known deviations are left aside.
	Roots []Root `json:"roots,omitempty"`
	// TimeToConsistency is how long the data plane took to follow changes; nil if no check of traffic measured it.
	TimeToConsistency *TimeToConsistency `json:"timeToConsistency,omitempty"`
	// Interrupted is set when the run ended before every check had run; NotRun counts the missing ones.
	Interrupted bool `json:"interrupted,omitempty"`
	NotRun      int  `json:"notRun,omitempty"`
	// Ended are programs of what was judged that ended by themselves. What was seen after that says nothing, so the verdict is unknown at best.
	Ended []EndedProgram `json:"endedPrograms,omitempty"`
	// Programs are what the run started beside itself, those that took most processor time first; empty where the tier does not count.
	Programs []Program `json:"programs,omitempty"`
	// Residue is what is left of the run; nil where nobody looked, as after an interrupted run and on a cluster that was deleted after it.
	Residue *candidate.Residue `json:"residue,omitempty"`
	// UnexpectedPasses are expectations whose checks ran and all passed: the list must be corrected.
	UnexpectedPasses []Expectation `json:"unexpectedPasses,omitempty"`
	// Expectations are the list of known deviations, in the report of a shard only: whether all checks of one pass is decided over all shards.
	Expectations []Expectation `json:"expectations,omitempty"`
}

// Submitter is who answers for an implementation.
type Submitter struct {
	Organization string `json:"organization"`
	Project      string `json:"project"`
	Version      string `json:"version"`
	URL          string `json:"url"`
	// Contact are addresses, or handles on the project's forge.
	Contact []string `json:"contact"`
}

// EndedProgram is a program that ended by itself while it should have run.
type EndedProgram struct {
	// Program names it by its place, such as proxy-node-1.
	Program string `json:"program"`
	// How says how it ended, with the last words of its log.
	How string `json:"how"`
	// Log is the path of its log, from the folder of the report on.
	Log string `json:"log,omitempty"`
}

// Program is a program that a run started, such as kube-apiserver.
type Program struct {
	Program string `json:"program"`
	// Processes is how often it was started.
	Processes int `json:"processes"`
	// ProcessorSeconds is what all of them took together, in user and system mode.
	ProcessorSeconds float64 `json:"processorSeconds"`
}

// Summary counts checks and requirements by verdict. KnownDeviations are among NonConformant.
type Summary struct {
	Checks       Counts `json:"checks"`
	Requirements Counts `json:"requirements"`
}

// Counts is a number per verdict.
type Counts struct {
	Conformant      int `json:"conformant"`
	NonConformant   int `json:"nonConformant"`
	KnownDeviations int `json:"knownDeviations"`
	Blocked         int `json:"blocked"`
	Unknown         int `json:"unknown"`
	// NotJudged is what binds the candidate and the run could not decide, or left out.
	NotJudged     int `json:"notJudged"`
	NotApplicable int `json:"notApplicable"`
}

func (c *Counts) add(v check.Verdict, known bool) {
	switch v {
	case check.Conformant:
		c.Conformant++
	case check.NonConformant:
		c.NonConformant++
		if known {
			c.KnownDeviations++
		}
	case check.Blocked:
		c.Blocked++
	case check.Unknown:
		c.Unknown++
	case check.NotJudged:
		c.NotJudged++
	case check.NotApplicable:
		c.NotApplicable++
	}
}

// Decided is how many were judged: they are met, or are not.
func (c Counts) Decided() int { return c.Conformant + c.NonConformant }

// Binding is how many bind the candidate, whether they were judged or not.
func (c Counts) Binding() int { return c.Decided() + c.Blocked + c.Unknown + c.NotJudged }

// RequirementVerdict is the worst verdict of the checks of one requirement.
type RequirementVerdict struct {
	ID             spec.ID       `json:"id"`
	Level          spec.Level    `json:"level"`
	Basis          spec.Basis    `json:"basis,omitempty"`
	Profile        spec.Profile  `json:"profile,omitempty"`
	Verdict        check.Verdict `json:"verdict"`
	KnownDeviation bool          `json:"knownDeviation,omitempty"`
	Checks         int           `json:"checks"`
	// NotJudged is how many of the checks could not be decided by this run. The requirement is judged if another one was.
	NotJudged int `json:"notJudged,omitempty"`
	// BlockedBy are the requirements that its failures go back to; set when the verdict is blocked.
	BlockedBy []spec.ID `json:"blockedBy,omitempty"`
}

// CheckVerdict is the result of a check with the expectation that covers it.
type CheckVerdict struct {
	check.Result
	// KnownDeviation is set when the check is non-conformant and a published expectation says so.
	KnownDeviation *Expectation `json:"knownDeviation,omitempty"`
	// BlockedBy says of the check's requirements that are blocked to which others their failure goes back.
	BlockedBy map[spec.ID][]spec.ID `json:"blockedBy,omitempty"`
}

// Run is what Build needs to know of a run besides its results.
type Run struct {
	SuiteVersion string
	Candidate    candidate.Description
	Started      time.Time
	Duration     time.Duration
	Seed         int64
	Planned      int // how many results were to come
	Interrupted  bool
	Ended        []EndedProgram
	Programs     []Program
	Residue      *candidate.Residue
	Expectations Expectations
	Selection    *Selection
	Submitter    *Submitter
}

// Build makes the report of a run. The order of results does not matter.
func Build(run Run, results []check.Result) *Report { return build(spec.Default(), run, results) }

func build(catalogue *spec.Catalogue, run Run, results []check.Result) *Report {
	r := &Report{
		SchemaVersion: SchemaVersion, SuiteVersion: run.SuiteVersion, Candidate: run.Candidate, Started: run.Started.UTC(),
		Seconds: run.Duration.Seconds(), Seed: run.Seed, Catalogue: spec.Digest(), Submitter: run.Submitter, Selection: run.Selection, Interrupted: run.Interrupted, Ended: run.Ended, Programs: run.Programs, Residue: run.Residue, NotRun: max(0, run.Planned-len(results)),
	}
	covered := make([][]check.Verdict, len(run.Expectations.Deviations))
	for _, result := range results {
		c, by := run.excuse(result)
		for _, i := range by {
			covered[i] = append(covered[i], result.Verdict)
		}
		r.Checks = append(r.Checks, c)
	}
	if run.Selection.ofShard() {
		r.Expectations, covered = run.Expectations.Deviations, nil
	}
	for i, verdicts := range covered {
		if run.Expectations.Deviations[i].Intermittent {
			continue
		}
		if slices.Contains(verdicts, check.Conformant) && !slices.Contains(verdicts, check.NonConformant) && !slices.Contains(verdicts, check.Unknown) {
			r.UnexpectedPasses = append(r.UnexpectedPasses, run.Expectations.Deviations[i])
		}
	}
	slices.SortStableFunc(r.Checks, func(a, b CheckVerdict) int {
		return cmp.Or(cmp.Compare(a.Suite, b.Suite), cmp.Compare(a.Check, b.Check), cmp.Compare(a.ServiceCIDR, b.ServiceCIDR))
	})
	r.conclude(catalogue, results)
	return r
}

// conclude fills in everything that follows from the checks.
func (r *Report) conclude(catalogue *spec.Catalogue, results []check.Result) {
	r.block(catalogue)
	r.judge(catalogue)
	r.qualify()
	r.rooted()
	r.profiled(catalogue)
	r.TimeToConsistency = timeToConsistency(results)
}

// excuse is the verdict of one check with the expectation that covers it, and which expectations speak of it.
func (run *Run) excuse(result check.Result) (c CheckVerdict, by []int) {
	c.Result = result
	for i := range run.Expectations.Deviations {
		x := &run.Expectations.Deviations[i]
		if !x.covers(&result, &run.Candidate) {
			continue
		}
		by = append(by, i)
		if result.Verdict == check.NonConformant && !x.expired(run.Started) {
			c.KnownDeviation = x
		}
	}
	return c, by
}

func (r *Report) judge(catalogue *spec.Catalogue) {
	byID := map[spec.ID]*RequirementVerdict{}
	unexcused := check.NotApplicable // the worst verdict of a MUST requirement, known deviations left aside
	for i := range r.Checks {
		c := &r.Checks[i]
		r.Summary.Checks.add(c.Verdict, c.KnownDeviation != nil)
		for _, id := range c.Requirements {
			v := byID[id]
			if v == nil {
				v = &RequirementVerdict{ID: id, KnownDeviation: true}
				if known := catalogue.Get(id); known != nil {
					v.Level, v.Basis, v.Profile = known.Level, known.Basis, known.Profile
				}
				byID[id] = v
			}
			v.Checks++
			on := c.VerdictOn(id)
			if on == check.NotJudged {
				v.NotJudged++
			}
			v.Verdict = check.Worse(v.Verdict, on)
			if on == check.NonConformant && c.KnownDeviation == nil {
				v.KnownDeviation = false
			}
			if v.Level == spec.Must && (c.KnownDeviation == nil || on != check.NonConformant) {
				unexcused = check.Worse(unexcused, on)
			}
		}
	}
	for _, v := range byID {
		v.KnownDeviation = v.KnownDeviation && v.Verdict == check.NonConformant
		r.Summary.Requirements.add(v.Verdict, v.KnownDeviation)
		r.Requirements = append(r.Requirements, *v)
	}
	slices.SortFunc(r.Requirements, func(a, b RequirementVerdict) int { return cmp.Compare(a.ID, b.ID) })
	r.Summary.Requirements.NotJudged += len(r.unasked(catalogue))
	r.Verdict = unexcused
	if r.NotRun > 0 || r.Interrupted || len(r.Ended) > 0 {
		r.Verdict = check.Worse(r.Verdict, check.Unknown)
	}
	// Where all that was decided is excused, or about what SHOULD be, no MUST is violated.
	if decided := r.Summary.Checks.Decided(); (r.Verdict == check.NotApplicable || r.Verdict == check.NotJudged) && decided > 0 {
		r.Verdict = check.Conformant
	}
}

// notMetBesides are the requirements that are not met and do not decide the verdict, SHOULD before MAY. Known deviations are not among them.
func (r *Report) notMetBesides() (all []RequirementVerdict) {
	for _, level := range []spec.Level{spec.Should, spec.May} {
		for _, v := range r.Requirements {
			if v.Level == level && v.Verdict == check.NonConformant && !v.KnownDeviation {
				all = append(all, v)
			}
		}
	}
	return all
}

// namedBesides bounds how many of them the verdict line names.
const namedBesides = 3

// Exit codes of `conformance run`.
const (
	ExitConformant    = 0
	ExitNonConformant = 1
	ExitUnknown       = 2
	ExitUsage         = 64
	ExitHarness       = 70
)

// ExitCode is the exit code of a run with this report. It is 0 when every applicable MUST is conformant or a known
// deviation. It is 1 when one is not, or an expected failure passed. It is 2 when none is non-conformant but something
// is unknown, or nothing was decided.
func (r *Report) ExitCode() int {
	switch r.Verdict {
	case check.NonConformant, Unlisted:
		return ExitNonConformant
	case check.Conformant, InPart, AsExpected:
		if !r.Interrupted {
			return ExitConformant
		}
	}
	return ExitUnknown
}

// CutOff is how many checks the end of an interrupted run left without a verdict.
func (r *Report) CutOff() int {
	n := r.NotRun
	for _, c := range r.Checks {
		if c.Verdict == check.Unknown && c.Reason == check.Interrupted {
			n++
		}
	}
	return n
}

// VerdictLine is the verdict in words.
func (r *Report) VerdictLine() string {
	line := r.verdictOnMusts()
	if r.Selection.ofShard() {
		line += fmt.Sprintf("; shard %s", r.Selection.Shard)
	}
	if n := r.CutOff(); r.Interrupted {
		line += fmt.Sprintf("; interrupted, %d checks were not judged", n)
	}
	if len(r.Ended) > 0 {
		line += fmt.Sprintf("; %s ended by itself", r.Ended[0].Program)
	}
	if n := len(r.Ended) - 1; n > 0 {
		line += fmt.Sprintf(", and %d more", n)
	}
	besides := r.notMetBesides()
	for i, v := range besides[:min(len(besides), namedBesides)] {
		line += [...]string{"; not met besides: ", ", "}[min(i, 1)] + fmt.Sprintf("%s (%s)", v.ID, v.Level)
	}
	if n := len(besides) - namedBesides; n > 0 {
		line += fmt.Sprintf(" and %d more", n)
	}
	return line
}

func (r *Report) verdictOnMusts() string {
	but := ""
	switch n := r.Summary.Requirements.KnownDeviations; {
	case n == 1:
		but = " but for 1 known deviation"
	case r.Summary.Checks.KnownDeviations > 0:
		but = fmt.Sprintf(" but for %d known deviations", n)
	}
	switch r.Verdict {
	case check.Conformant:
		return "conformant" + but
	case InPart:
		return "conformant" + but + " in what was judged, " + r.judged()
	case AsExpected:
		return fmt.Sprintf("not conformant, as %s expects: %d requirements are not met and are in no published list", r.list(), r.ownExcuses())
	case Unlisted:
		return fmt.Sprintf("%d expected failures passed: correct the list of known deviations", len(r.UnexpectedPasses))
	case check.NotApplicable:
		return "nothing was decided: no check applies"
	case check.NotJudged:
		return "nothing was decided: this run can judge no check that applies"
	}
	return string(r.Verdict)
}

// Unexcused is how many are not met and are no known deviations.
func (c Counts) Unexcused() int { return c.NonConformant - c.KnownDeviations }

// Undecided are the requirements that are unknown, or blocked by others.
func (c Counts) Undecided() int { return c.Unknown + c.Blocked }
