package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/lab"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
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
	flags.DurationVar(&f.MaxWait, "max-wait", 0, "wait at most this long for what the candidate is to follow, for who develops it: 3s (default: what each demand allows, mostly 30s)")
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
	if len(paths) > 0 && f.tierName == "" {
		fmt.Fprintf(out, "reports: %s\n", reportsLine(paths))
	}
	return errors.Join(err, written)
}

func (f *runFlags) run(ctx context.Context, out io.Writer) error {
	if err := f.validate(); err != nil {
		return err
	}
	if f.seed == 0 {
		f.seed = f.NewSeed()
	}
	var says *implementation
	if f.declared != "" {
		var err error
		if says, err = readImplementation(f.declared); err != nil {
			return usage("%w", err)
		}
		if len(f.Features) == 0 {
			f.Features = says.Features
		}
		f.Profiles, f.ClaimedSuites, f.submitter = says.Profiles, says.Suites, says.Submitter
	}
	if len(f.profiles) > 0 {
		f.Profiles = nil
		for _, name := range f.profiles {
			f.Profiles = append(f.Profiles, spec.Profile(name))
		}
	}
	if lacks, err := absent.Parse(f.without...); err == nil && len(f.Features) == 0 && len(lacks) > 0 {
		f.Features = spec.Default().FeaturesWithout(lacks.Features()...)
	}
	f.Focus = splitFocus(f.Focus)
	f.Skip = splitFocus(f.Skip)
	planned := f.planChecks()
	if err := f.Selection.Validate(check.Declarations()); err != nil {
		return usage("%w", err)
	}
	others := leftOut()
	if planned == 0 && len(others) > 0 {
		return usage("no check is left: those of %s are about other ranges than --service-cidr names; leave it out", strings.Join(others, ", "))
	}
	if planned == 0 {
		return usage("no check matches the selection; `conformance list` shows the requirements and their checks")
	}
	terminal := isTerminal(out)
	palette := paletteOf(terminal)
	// Everything that can be wrong about the configuration is found before anything is started or written.
	expectations, err := f.readExpectations()
	if err != nil {
		return usage("%w", err)
	}
	selection := f.selected(check.Declarations(), leftOut())
	if err := report.CheckFolder(f.reportDir); err != nil {
		return usage("%w", err)
	}
	f.nothing = &report.Run{
		SuiteVersion: check.BuildVersion(), Candidate: candidate.Description{Tier: f.tier, Capabilities: []spec.Capability{}}, Started: time.Now(), Seed: f.seed, Planned: planned, Interrupted: true, Selection: selection, Submitter: f.submitter,
	}
	_, _ = removeLeft() // tiers lab and kind tell what is left of theirs
	if f.makesClusters() {
		f.begun = true
		return f.runKind(ctx, out, palette, expectations, selection)
	}
	if f.attach != "" {
		if err := enterLab(ctx, f.attach); err != nil {
			if e := (*exitError)(nil); errors.As(err, &e) && e.err == nil {
				f.begun = true // it is the exit code of a run in the lab
			}
			return err
		}
	} else if f.tier == "lab" && f.traffic {
		if err := isolate(ctx, out, f.labOptions(true)); err != nil {
			if e := (*exitError)(nil); errors.As(err, &e) && e.err == nil {
				f.begun = true // it is the exit code of a run in namespaces of its own
			}
			return err
		}
	}
	if _, set := os.LookupEnv("GOGC"); f.tier == "reference" && !set {
		debug.SetGCPercent(400) // the reference runs in this process, for two seconds: a seventh of them would go into collecting
	}
	c, err := f.tierFlags.open(ctx, out, f.ServiceCIDRs, uint64(f.seed), f.traffic, f.Shard)
	if err != nil {
		return err
	}
	opened := c
	defer func() {
		if f.disposable {
			return
		}
		closing, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := c.Close(closing); err != nil {
			fmt.Fprintln(os.Stderr, "conformance: cleaning up:", err)
		}
	}()
	if says != nil {
		c = declared{c, says}
	}
	c = askAdmission(ctx, out, c, f.Selection.Claims)
	if f.traffic && (f.tier == "cluster" || f.around != "") { // that of the lab is known
		c = askSurroundings(ctx, out, c)
	}
	what := c.Describe()
	if f.expectations == "" && len(what.Faults) == 0 {
		if expectations, err = report.PublishedExpectations(&what); err != nil {
			return harness("%w", err)
		}
	} else if err := expectations.MarkOwn(&what); err != nil {
		return harness("%w", err)
	}
	f.ExpectedToFail = expectations.Failing(check.Declarations(), &what)
	if ctx.Err() != nil {
		return interrupted(ctx, context.Cause(ctx))
	}
	folder, err := report.OpenFolder(f.reportDir)
	if err != nil {
		return usage("%w", err)
	}
	f.begun = true
	fmt.Fprintf(out, "%s: %d checks, suite %s, seed %d%s\n", title(&what), planned, check.BuildVersion(), f.seed, f.ofShard())

	if len(others) > 0 {
		fmt.Fprintf(out, "left out, for they are about other ranges than --service-cidr names: %s\n", strings.Join(others, ", "))
	}

	run := report.Run{SuiteVersion: check.BuildVersion(), Candidate: what, Started: time.Now(), Seed: f.seed, Planned: planned, Expectations: expectations, Selection: selection, Submitter: f.submitter}
	if err := folder.Begin(&run); err != nil {
		return harness("%w", err)
	}
	progress := runner.NewProgress(out, terminal, planned)
	ofLab, onLab := opened.(programs)
	if onLab {
		ofLab.OnEnd(func(ended lab.Log) {
			progress.Println(fmt.Sprintf("%sended by itself%s  %s: %v\n", palette.Red, palette.Reset, ended.Program(), ended.Died))
		})
	}
	judging, enough := context.WithCancelCause(ctx)
	defer enough(nil)
	f.sonobuoy.progress.Expect(planned)
	live, log := report.NewLive(run), report.Log{Palette: palette}
	var results []check.Result
	var lost error
	id := runner.NewRunID()
	if f.tier == "cluster" && f.tierName == "" {
		ending.mayLeave("namespaces: `conformance cleanup` removes them")
	}
	err = runner.Run(judging, runner.Options{Selection: f.Selection, Candidate: c, RunID: id, Parallel: f.workers(out, planned), Seed: f.seed, Version: check.BuildVersion(), Sink: func(e check.Event) {
		progress.Event(e)
		if e.Result == nil {
			return
		}
		results = append(results, *e.Result)
		lost = errors.Join(lost, folder.Add(e.Result))
		if e.Result.Reason == check.Interrupted {
			return
		}
		var text strings.Builder
		verdict := live.Judge(*e.Result)
		if verdict.KnownDeviation != nil {
			progress.Known()
		}
		log.Write(&text, verdict)
		f.sonobuoy.told(verdict)
		if f.failFast && verdict.BreaksMust() {
			enough(errEnough)
		}
		if text.Len() > 0 {
			progress.Println(text.String())
		}
	}})
	progress.Stop()
	if onLab {
		run.Ended = keepLogs(out, ofLab, filepath.Join(f.reportDir, "logs"))
	}
	run.Duration = time.Since(run.Started)
	// A run that had judged everything when the signal came is as whole as any.
	run.Interrupted = judging.Err() != nil && (len(results) < planned || slices.ContainsFunc(results, func(r check.Result) bool { return r.Reason == check.Interrupted }))
	r := report.Build(run, results)
	paths, writeErr := folder.Finish(r)
	writeErr = errors.Join(writeErr, f.writeMetrics(r))
	if run.Interrupted {
		f.removeRun(id)
	}
	again := f.again
	if f.tierName != "" { // who started this process knows the command
		again = nil
	}
	r.WriteReasons(out, palette)
	r.WriteFailures(out, palette, again)
	switch {
	case ctx.Err() != nil:
		fmt.Fprintln(out, "interrupted: what was decided until then is reported")
	case run.Interrupted:
		fmt.Fprintln(out, "ended with the first failure (--fail-fast)")
	}
	r.WriteSummary(out, palette)
	if len(paths) > 0 && f.tierName == "" { // else they are merged and go
		fmt.Fprintf(out, "reports: %s\n", reportsLine(paths))
	}
	if f.printReport {
		writeErr = errors.Join(writeErr, json.NewEncoder(out).Encode(r))
	}
	if err = errors.Join(err, lost, writeErr); err != nil {
		return harness("%w", err)
	}
	if r.NotRun > 0 && !run.Interrupted {
		return harness("%d of %d checks gave no result: a worker died", r.NotRun, planned)
	}
	if code := r.ExitCode(); code != 0 {
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
		f.Beside = f.tier == "cluster" && !f.disposable || f.attach != ""
	}
	for _, entry := range f.ServiceCIDRs {
		if _, err := parseServiceCIDR(entry); err != nil {
			return usage("--service-cidr %s: %w", entry, err)
		}
	}
	if f.printReport && f.makesClusters() {
		return usage("--print-report is for a candidate that there is: the report of --tier kind, and of --cluster-command, is on this machine")
	}
	return f.tierFlags.validate()
}

// workers is the number of worker processes: no more than there are checks, nor than the machine bears.
func (f *runFlags) workers(out io.Writer, planned int) int {
	wanted := f.wanted()
	if most := max(16, 8*runtime.NumCPU()); wanted > most {
		fmt.Fprintf(out, "%d workers instead of %d: this machine bears no more\n", most, wanted)
		wanted = most
	}
	return min(wanted, planned)
}

func (f *runFlags) wanted() int {
	switch {
	case f.parallel > 0:
		return f.parallel
	case f.tier == "reference":
		return 1
	case f.tier == "lab" && f.traffic:
		return lab.TrafficWorkers()
	case f.tier == "cluster" && f.agentImage != "" && f.traffic:
		return 8 // they wait for the pods of the cluster
	}
	return 4
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

// writeMetrics writes the file of --metrics in one step: who collects it never reads half of it.
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
