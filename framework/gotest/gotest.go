// Package gotest judges a candidate in a `go test`, and tells what it finds as `conformance run` does.
package gotest

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
)

// Options say what is judged and where the reports go. The zero value judges everything and writes no file.
type Options struct {
	runner.Selection
	// ReportDir is the folder for junit_01.xml and report.json; empty writes none.
	ReportDir string
	// Expectations is a file of known deviations; empty takes the published list for the candidate.
	Expectations string
	// Seed makes random choices repeatable; 0 makes a seed, which the log tells.
	Seed int64
}

// Run judges the candidate with the suites that the test imports, and returns the report. The test fails unless the run
// would exit with 0. It tells each check that is not as it should be, with its requirement, what was expected and
// observed, and the last requests. It ends with the test's context. A process can judge once: Ginkgo, which the checks
// stand in, runs its tree once; a second call ends its test and says so.
func Run(t testing.TB, c candidate.Candidate, o Options) *report.Report {
	t.Helper()
	log := report.Log{}
	r, err := Judge(t.Context(), c, o, func(verdict *report.CheckVerdict) {
		var text strings.Builder
		if log.Write(&text, verdict); text.Len() > 0 {
			t.Log(strings.TrimRight(text.String(), "\n"))
		}
	})
	if r != nil {
		var end strings.Builder
		r.WriteReasons(&end, report.Palette{})
		r.WriteFailures(&end, report.Palette{}, nil)
		r.WriteSummary(&end, report.Palette{})
		t.Log(strings.TrimRight(end.String(), "\n"))
	}
	switch {
	case err != nil:
		t.Fatalf("conformance: %v", err)
	case r.ExitCode() != report.ExitConformant:
		t.Fail()
	}
	return r
}

// Checks are the checks that the options select, in order of declaration. The error says that the selection names what there is not, that it selects nothing, or that
// the checks have run in this process (check.ErrRunTwice). For use by one goroutine.
func (o *Options) Checks() (selected []check.Declaration, err error) {
	if check.HasRun() {
		return nil, check.ErrRunTwice
	}
	planned := runner.Plan(o.Selection)
	if err := o.Validate(check.Declarations()); err != nil {
		return nil, err
	}
	if planned == 0 {
		return nil, errors.New("no check matches the selection: import the suites that are to judge, such as suites/allocation")
	}
	for _, d := range check.Declarations() {
		if d.Runs > 0 {
			selected = append(selected, d)
		}
	}
	return selected, nil
}

// Judge is Run for callers that tell the report in their own way. It ends with ctx. tell gets each verdict as far as it is known when its check ends, from one goroutine
// at a time; nil drops them. The error never says that a check failed. It is one of Options.Checks, of the list of known deviations, or of the harness. There is a report
// with an error if only its files could not be written. For use by one goroutine.
func Judge(ctx context.Context, c candidate.Candidate, o Options, tell func(*report.CheckVerdict)) (*report.Report, error) {
	selected, err := o.Checks()
	if err != nil {
		return nil, err
	}
	planned := 0
	for _, d := range selected {
		planned += d.Runs
	}
	if o.Seed == 0 {
		o.Seed = o.NewSeed()
	}
	what := c.Describe()
	expectations, err := expected(o.Expectations, &what)
	if err != nil {
		return nil, err
	}
	o.ExpectedToFail = expectations.Failing(check.Declarations(), &what)
	run := report.Run{
		SuiteVersion: check.BuildVersion(), Candidate: what, Started: time.Now(), Seed: o.Seed, Planned: planned, Expectations: expectations, Selection: o.selected(),
	}
	var folder *report.Folder
	if o.ReportDir != "" {
		if folder, err = report.OpenFolder(o.ReportDir); err != nil {
			return nil, err
		}
	}
	live := report.NewLive(run)
	var results []check.Result
	var lost error
	err = runner.Run(ctx, runner.Options{Selection: o.Selection, Candidate: c, Parallel: 1, Seed: o.Seed, Version: run.SuiteVersion, Sink: func(e check.Event) {
		if e.Result == nil {
			return
		}
		results = append(results, *e.Result)
		if folder != nil {
			lost = errors.Join(lost, folder.Add(e.Result))
		}
		if tell != nil {
			tell(live.Judge(*e.Result))
		}
	}})
	run.Duration, run.Interrupted = time.Since(run.Started), ctx.Err() != nil
	r := report.Build(run, results)
	if folder != nil {
		_, writing := folder.Finish(r)
		lost = errors.Join(lost, writing)
	}
	return r, errors.Join(err, lost)
}

// expected is the list of known deviations.
func expected(file string, what *candidate.Description) (report.Expectations, error) {
	if file == "" {
		return report.PublishedExpectations(what)
	}
	list, err := report.ReadExpectations(file)
	if err == nil {
		err = list.MarkOwn(what)
	}
	return list, err
}

// selected is what the report says of what was judged.
func (o *Options) selected() *report.Selection {
	list := "published"
	if o.Expectations != "" {
		list = o.Expectations
	}
	s := &report.Selection{
		Suites: o.Suites, Focus: o.Focus, Skip: o.Skip, ServiceCIDRs: o.ServiceCIDRs, Profiles: o.Profiles, Features: o.Features, Slow: o.Slow,
		MaxWaitSeconds: o.MaxWait.Seconds(), Expectations: list, Arguments: os.Args[1:], Claimed: len(o.Claimed(check.Declarations())), Unasked: o.Unasked(check.Declarations()),
	}
	if o.Shard.Of > 0 {
		s.Shard = &report.Shard{Shard: o.Shard, Checks: o.Divided(check.Declarations())}
	}
	return s
}
