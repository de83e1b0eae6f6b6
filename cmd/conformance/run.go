package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/lab"
)

type runFlags struct {
	tierFlags
	runner.Selection
	parallel     int
	reportDir    string
	expectations string
	strict       bool
	declared     string // file
	profiles     []string
	seed         int64
	shard        string
	traffic      bool // a check of the whole run sends traffic, be it in another shard
	printReport  bool
	metrics      string
	failFast     bool
	sonobuoy     sonobuoyFlags
	given        *pflag.FlagSet // the flags, to know which were named
	submitter    *report.Submitter
	nothing      *report.Run // what there is to say of a run that has not begun; nil until the configuration is known to be good
	begun        bool        // there is a report, or another process or run makes it
}

func newRun() *cobra.Command {
	f := &runFlags{}
	cmd := &cobra.Command{
		Use:   "run",
		Short: "judge a candidate",
		Long: `Judge a candidate with the checks of the suites.

Exit codes:
  0   every applicable MUST is conformant or a known deviation
  1   a MUST is not met, or an expected failure passed
  2   nothing is non-conformant, but something is unknown or the run was interrupted
  64  wrong usage or configuration
  70  the harness itself broke`,
		Example: `  conformance run
  conformance run --focus 'alloc-*' --service-cidr 10.96.0.0/24
  conformance run --tier lab --kubernetes-version v1.36.3 --report-dir out
  conformance run --tier kind --service-cidr 10.96.0.0/24 --service-cidr 10.96.0.0/20,fd00:10:96::/112
  conformance run --fault lower-band-first`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ending.withReader()
			run := func() error { return f.runOrSay(cmd.Context(), cmd.OutOrStdout()) }
			if f.sonobuoy.on {
				return f.forSonobuoy(cmd.OutOrStdout(), cmd.Flags(), run)
			}
			return run()
		},
	}
	f.given = cmd.Flags()
	f.tierFlags.register(cmd.Flags())
	f.sonobuoy.register(cmd.Flags())
	f.registerSelection(cmd.Flags())
	return cmd
}

// registerSelection registers what is judged, by what, and where the reports go.
func (f *runFlags) registerSelection(flags *pflag.FlagSet) {
	flags.StringSliceVar(&f.Suites, "suite", nil, "suites to run (default all)")
	flags.StringArrayVar(&f.Focus, "focus", nil, "requirement IDs or names of checks, or globs on them, such as 'alloc-*' (default all)")
	flags.StringArrayVar(&f.Skip, "skip", nil, "requirement IDs or names of checks, or globs on them, to leave out")
	flags.BoolVar(&f.failFast, "fail-fast", false, "end the run with the first check that finds a MUST not met which is no known deviation")
	flags.DurationVar(&f.MaxWait, "max-wait", 0, "wait at most this long for a change to take effect, such as 3s while you develop (default: what each demand allows, mostly 30s)")
	flags.StringSliceVar(&f.Features, "feature", nil, "features that the candidate claims (default all)")
	flags.StringSliceVar(&f.profiles, "profile", nil, "profiles that the candidate claims: core, kubernetes-api, kube-proxy and its modes, and optional features (default all)")
	flags.StringArrayVar(&f.ServiceCIDRs, "service-cidr", nil, "Service ranges to run on instead of the matrix; two joined by a comma are dual stack")
	flags.BoolVar(&f.Slow, "slow", false, "also run slow checks, which are not decided otherwise: fill a /16, serve a thousand Services of ten endpoints")
	flags.IntVar(&f.parallel, "parallel", 0, "number of worker processes (default: reference 1, lab with traffic 12 or 6 in user-mode-linux, cluster with traffic 8, else 4)")
	flags.StringVar(&f.reportDir, "report-dir", "conformance-report", "folder for report.json, report.html, report.md, report.yaml, junit_01.xml and logs")
	flags.StringVar(&f.metrics, "metrics", "", "also write verdicts and times to this file, as OpenMetrics text for Prometheus")
	flags.BoolVar(&f.printReport, "print-report", false, "also print report.json, on one line that begins with {\"schemaVersion\": for a pod, whose files are gone when it ends")
	flags.StringVar(&f.expectations, "expectations", "", "file of known deviations (default: the published list for the candidate); \"none\" uses no list")
	flags.BoolVar(&f.strict, "strict", false, "excuse nothing: known deviations count as failures, as with --expectations none")
	flags.StringVar(&f.declared, "implementation", "", "file with the features that an implementation claims, and its choices where the specification leaves room (fixtures/implementation.example.yaml)")
	flags.Int64Var(&f.seed, "seed", 0, "seed of random choices (default: a new one, printed; with --shard 1, for all shards of a run have the same)")
	flags.StringVar(&f.shard, "shard", "", "judge one `part` of the checks: 2/3 is the second of three (conformance report merge joins the reports). index/3 takes the number from "+completionIndex+", as pods of an indexed Job have it")
}

// runOrSay runs, and makes a report that nothing was judged where the run is interrupted before it begins.
func (f *runFlags) runOrSay(ctx context.Context, out io.Writer) error {
	err := f.run(ctx, out)
	if f.begun || f.nothing == nil || interrupted(ctx, err) == nil || err == nil {
		return err
	}
	folder, opened := report.OpenFolder(f.reportDir)
	if opened != nil {
		return err
	}
	r := report.Build(*f.nothing, nil)
	paths, written := folder.Finish(r)
	written = errors.Join(written, f.writeMetrics(r))
	r.WriteSummary(out, report.Palette{})
	if len(paths) > 0 && !f.isPart() {
		fmt.Fprintf(out, "reports: %s\n", reportsLine(paths))
	}
	return errors.Join(err, written)
}

// plan is a run whose configuration is known to be good.
type plan struct {
	*runFlags
	out        io.Writer
	terminal   bool
	palette    report.Palette
	checks     int // results that there will be
	deviations report.Expectations
	selection  *report.Selection
	says       *implementation // nil if no file was named
	others     []string        // requirements of which checks are left out
}

func (f *runFlags) run(ctx context.Context, out io.Writer) error {
	r, err := f.plan(out)
	if err != nil {
		return err
	}
	_, _ = removeLeft() // tiers lab and kind tell what is left of theirs
	return f.chosen().run(ctx, r)
}

// plan finds everything that can be wrong about the configuration, before anything is started or written.
func (f *runFlags) plan(out io.Writer) (*plan, error) {
	if err := f.validate(); err != nil {
		return nil, err
	}
	if f.seed == 0 {
		f.seed = f.NewSeed()
	}
	r := &plan{runFlags: f, out: out, terminal: isTerminal(out)}
	r.palette = paletteOf(r.terminal)
	var err error
	if f.declared != "" {
		if r.says, err = readImplementation(f.declared); err != nil {
			return nil, usage("%w", err)
		}
		if len(f.Features) == 0 {
			f.Features = r.says.Features
		}
		f.Profiles, f.ClaimedSuites, f.submitter = r.says.Profiles, r.says.Suites, r.says.Submitter
	}
	if len(f.profiles) > 0 {
		f.Profiles = nil
		for _, name := range f.profiles {
			f.Profiles = append(f.Profiles, spec.Profile(name))
		}
	}
	if len(f.Features) == 0 {
		f.Features = f.reference.features()
	}
	f.OtherRanges = f.tier == f.kind.name() || f.cluster.ofKind != "" // their API servers of checks have any range
	f.Elsewhere = f.cluster.elsewhere
	for _, s := range f.cluster.sharing {
		f.Sharing = append(f.Sharing, check.Sharing(s))
	}
	f.Focus = splitFocus(f.Focus)
	f.Skip = splitFocus(f.Skip)
	r.count()
	if err := f.Selection.Validate(check.Declarations()); err != nil {
		return nil, usage("%w", err)
	}
	if r.checks == 0 && len(r.others) > 0 {
		return nil, usage("no check is left: those of %s are about other ranges than --service-cidr names; leave it out", strings.Join(r.others, ", "))
	}
	if r.checks == 0 {
		return nil, usage("no check matches the selection; `conformance list` shows the requirements and their checks")
	}
	if r.deviations, err = f.readExpectations(); err != nil {
		return nil, usage("%w", err)
	}
	if err := report.CheckFolder(f.reportDir); err != nil {
		return nil, usage("%w", err)
	}
	f.nothing = &report.Run{
		SuiteVersion: check.BuildVersion(), Candidate: candidate.Description{Tier: f.tier, Capabilities: []spec.Capability{}}, Started: time.Now(), Seed: f.seed, Planned: r.checks, Interrupted: true, Selection: r.selection, Submitter: f.submitter,
	}
	return r, nil
}

// count finds how many results the selection will give, and what the report says of it.
func (r *plan) count() {
	r.checks, r.others = r.planChecks(), leftOut()
	r.selection = r.selected(check.Declarations(), r.others)
}

// judge runs the checks on the candidate of a place, reports, and closes it.
func (r *plan) judge(ctx context.Context, p *place) error {
	defer p.close()
	c := p.Candidate
	if r.says != nil {
		c = declared{c, r.says}
	}
	c = askAdmission(ctx, r.out, c, r.Claims)
	if r.traffic && p.surrounded {
		c = askSurroundings(ctx, r.out, c)
	}
	var err error
	what := c.Describe()
	if r.expectations == "" && len(what.Faults) == 0 {
		if r.deviations, err = report.PublishedExpectations(&what); err != nil {
			return harness("%w", err)
		}
	} else if err := r.deviations.MarkOwn(&what); err != nil {
		return harness("%w", err)
	}
	r.ExpectedToFail = r.deviations.Failing(check.Declarations(), &what)
	if ctx.Err() != nil {
		return interrupted(ctx, context.Cause(ctx))
	}
	folder, err := report.OpenFolder(r.reportDir)
	if err != nil {
		return usage("%w", err)
	}
	r.begun = true
	fmt.Fprintf(r.out, "%s: %d checks, suite %s, seed %d%s\n", title(&what), r.checks, check.BuildVersion(), r.seed, r.ofShard())

	if len(r.others) > 0 {
		fmt.Fprintf(r.out, "left out, for they are about other ranges than --service-cidr names: %s\n", strings.Join(r.others, ", "))
	}

	run := report.Run{SuiteVersion: check.BuildVersion(), Candidate: what, Started: time.Now(), Seed: r.seed, Planned: r.checks, Expectations: r.deviations, Selection: r.selection, Submitter: r.submitter}
	if err := folder.Begin(&run); err != nil {
		return harness("%w", err)
	}
	progress := runner.NewProgress(r.out, r.terminal, r.checks)
	judging, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	ofLab, onLab := p.Candidate.(runsPrograms)
	if onLab {
		ofLab.OnEnd(func(ended lab.Log) {
			progress.Println(fmt.Sprintf("%sended by itself%s  %s: %v\n", r.palette.Red, r.palette.Reset, ended.Program(), ended.Died))
			if ended.BearsAll() {
				enough(fmt.Errorf("no check can go on: %s ended by itself", ended.Program()))
			}
		})
	}
	r.sonobuoy.progress.Expect(r.checks)
	live, log := report.NewLive(run), report.Log{Palette: r.palette}
	var results []check.Result
	var lost error
	id := runner.NewRunID()
	if p.leaves != "" {
		ending.mayLeave(p.leaves)
	}
	r.Beside = p.shared
	err = runner.Run(judging, runner.Options{Selection: r.Selection, Candidate: c, RunID: id, Parallel: r.workers(r.out, r.checks, p.workers), Outlives: p.outlives, SecondAttempt: len(what.Faults) == 0, Seed: r.seed, Version: check.BuildVersion(), Sink: func(e check.Event) {
		progress.Event(e)
		var text strings.Builder
		if e.Postponed != "" {
			log.Postpone(&text, e.DisplayName(), e.Postponed)
			progress.Println(text.String())
		}
		if e.Result == nil {
			return
		}
		results = append(results, *e.Result)
		lost = errors.Join(lost, folder.Add(e.Result))
		if e.Result.Reason == check.Interrupted {
			return
		}
		verdict := live.Judge(*e.Result)
		if verdict.KnownDeviation != nil {
			progress.Known()
		}
		log.Write(&text, verdict)
		r.sonobuoy.told(verdict)
		if r.failFast && verdict.BreaksMust() {
			enough(errEnough)
		}
		if text.Len() > 0 {
			progress.Println(text.String())
		}
	}})
	progress.Stop()
	if onLab {
		run.Ended = keepLogs(r.out, ofLab, filepath.Join(r.reportDir, "logs"))
		run.Programs = spent(p.Candidate)
	}
	run.Duration = time.Since(run.Started)
	// A run that had judged everything when the signal came is as whole as any.
	run.Interrupted = judging.Err() != nil && (len(results) < r.checks || slices.ContainsFunc(results, func(c check.Result) bool { return c.Reason == check.Interrupted }))
	if !run.Interrupted { // an interrupted run reports first, for its time may be over before all is removed
		run.Residue = p.account(id)
	}
	made := report.Build(run, results)
	paths, writeErr := folder.Finish(made)
	writeErr = errors.Join(writeErr, r.writeMetrics(made))
	if run.Interrupted && p.removeRun != nil {
		p.removeRun(id)
	}
	again := r.again
	if r.isPart() { // who started this process knows the command
		again = nil
	}
	made.WriteReasons(r.out, r.palette)
	made.WriteFailures(r.out, r.palette, again)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(r.out, "interrupted: what was decided until then is reported")
	case run.Interrupted && errors.Is(context.Cause(judging), errEnough):
		fmt.Fprintln(r.out, "ended with the first failure (--fail-fast)")
	case run.Interrupted:
		fmt.Fprintf(r.out, "ended early: %v\n", context.Cause(judging))
	}
	made.WriteSummary(r.out, r.palette)
	if len(paths) > 0 && !r.isPart() { // else they are merged and go
		fmt.Fprintf(r.out, "reports: %s\n", reportsLine(paths))
	}
	if r.printReport {
		writeErr = errors.Join(writeErr, json.NewEncoder(r.out).Encode(made))
	}
	if err = errors.Join(err, lost, writeErr); err != nil {
		return harness("%w", err)
	}
	if made.NotRun > 0 && !run.Interrupted {
		return harness("%d of %d checks gave no result: a worker died", made.NotRun, r.checks)
	}
	if code := made.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// leftOut are the requirements of which the run leaves checks out that are about other ranges.
func leftOut() (ids []string) {
	for _, d := range check.Declarations() {
		if id := string(d.Requirements[0]); d.OtherRanges && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// planChecks declares the checks of the run and returns how many results there will be. What the candidate has to offer follows from all shards: else their candidates would differ.
func (f *runFlags) planChecks() int {
	whole := f.Selection
	whole.Shard = candidate.Shard{}
	planned := runner.Plan(whole)
	f.traffic = slices.ContainsFunc(check.Declarations(), func(d check.Declaration) bool { return d.Runs > 0 && d.Traffic })
	if f.Shard.Of > 0 {
		planned = runner.Plan(f.Selection)
	}
	return planned
}

// errEnough ends a run that has seen what --fail-fast waits for.
var errEnough = errors.New("a check is non-conformant")

func (f *runFlags) validate() error {
	if info, err := os.Stat(f.metrics); err == nil && info.IsDir() {
		return usage("--metrics %s is a folder: name a file", f.metrics)
	}
	if f.parallel < 0 || f.parallel == 0 && f.given.Changed("parallel") {
		return usage("--parallel %d: the number of workers must be positive", f.parallel)
	}
	if f.MaxWait < 0 || f.MaxWait == 0 && f.given.Changed("max-wait") {
		return usage("--max-wait %s: name a time such as 3s", f.MaxWait)
	}
	if f.strict {
		if f.expectations != "" && f.expectations != "none" {
			return usage("--strict excuses nothing: leave out --expectations")
		}
		f.expectations = "none"
	}
	if f.shard != "" {
		var err error
		if f.Shard, err = parseShard(f.shard, os.Getenv(completionIndex)); err != nil {
			return usage("--shard %s: %w", f.shard, err)
		}
	}
	for _, entry := range f.ServiceCIDRs {
		if _, err := spec.ParseUsableServiceCIDRs(entry); err != nil {
			return usage("--service-cidr %s: %w", entry, err)
		}
	}
	return f.validateTier()
}

// workers is the number of worker processes: --parallel, or that of the tier. It is at most the number of checks, and
// at most what the machine bears.
func (f *runFlags) workers(out io.Writer, checks, ofTier int) int {
	wanted := cmp.Or(f.parallel, ofTier)
	if most := max(16, 8*runtime.NumCPU()); wanted > most {
		fmt.Fprintf(out, "%d workers instead of %d: this machine bears no more\n", most, wanted)
		wanted = most
	}
	return min(wanted, checks)
}

func (f *runFlags) readExpectations() (report.Expectations, error) {
	if f.expectations == "" || f.expectations == "none" {
		return report.Expectations{}, nil
	}
	return report.ReadExpectations(f.expectations)
}

func title(d *candidate.Description) string {
	text := fmt.Sprintf("%s %s", d.Implementation, d.Version)
	if d.DataPlane.Name != "" && d.DataPlane.Name != d.Implementation {
		text += " with " + d.DataPlane.String()
	}
	text += fmt.Sprintf(" (tier %s)", d.Tier)
	if len(d.Faults) > 0 {
		text += " with fault " + strings.Join(d.Faults, ", ")
	}
	return text
}

// paletteOf is in colours on a terminal whose user has not refused them (https://no-color.org).
func paletteOf(terminal bool) report.Palette {
	if terminal && os.Getenv("NO_COLOR") == "" {
		return report.Colours
	}
	return report.Palette{}
}

func isTerminal(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(int(file.Fd())) && os.Getenv("TERM") != "dumb"
}

// writeMetrics writes the file of --metrics in one step, so that a collector never reads half of it.
func (f *runFlags) writeMetrics(r *report.Report) error {
	if f.metrics == "" {
		return nil
	}
	_, err := r.WriteFaces(filepath.Dir(f.metrics), report.MetricsAs(filepath.Base(f.metrics)))
	return err
}

// reportsLine is where the files of a report are: their folder once, then their names.
func reportsLine(paths []string) string {
	dir := filepath.Dir(paths[0])
	names := make([]string, len(paths))
	for i, path := range paths {
		names[i] = filepath.Base(path)
	}
	return dir + string(filepath.Separator) + " (" + strings.Join(names, ", ") + ")"
}
