package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/scratch"
	"github.com/service-conformance/conformance/framework/spec"
)

type selftestFlags struct {
	faults    []string
	without   []string
	reportDir string
	write     string
	list      bool
	quick     bool
	parallel  int
}

func newSelftest() *cobra.Command {
	f := &selftestFlags{}
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "run the checks against every fault and print the score card",
		Long: `Start the reference once with every deliberate bug, run all suites, and show which requirements turn red. What goes back to a red requirement
is blocked, not red. Then start the reference without each optional feature: nothing may turn red.

It fails if no check of a requirement that a fault names catches the fault. It fails if the reference without faults is not conformant, or if
a check never fails. It fails if faults name too few of the requirements that they turn red.`,
		Example: `  conformance selftest
  conformance selftest --fault lower-band-first,no-affinity
  conformance selftest --write docs/scorecard.md`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.Flags().StringSliceVar(&f.faults, "fault", nil, "faults to try (default all)")
	cmd.Flags().StringSliceVar(&f.without, "without", nil, "features to start the reference without (default all, unless --fault names faults)")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "run only the suites with checks of the requirements that a fault breaks: whether it is caught, not what else turns red")
	cmd.Flags().StringVar(&f.write, "write", "", "also write the score card, as Markdown, to this file")
	cmd.Flags().StringVar(&f.reportDir, "report-dir", "conformance-report", "folder for selftest.json")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the faults and exit")
	cmd.Flags().IntVar(&f.parallel, "parallel", 2*runtime.NumCPU(), "number of faults that are tried at a time; some checks wait for what a fault keeps from happening")
	return cmd
}

func (f *selftestFlags) run(ctx context.Context, out io.Writer) error {
	faults := fault.All()
	if f.list {
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		for _, x := range faults {
			fmt.Fprintf(w, "%s\t%s\n", x.Name, x.Description)
		}
		return w.Flush()
	}
	if len(f.faults) > 0 {
		set, err := fault.Parse(f.faults...)
		if err != nil {
			return usage("%w", err)
		}
		faults = slices.DeleteFunc(faults, func(x *fault.Fault) bool { return !set.On(x) })
	}
	if len(f.without) > 0 && len(f.faults) == 0 {
		faults = nil
	}
	if _, err := absent.Parse(f.without...); err != nil {
		return usage("--without: %w", err)
	}
	if f.write != "" && (f.quick || len(f.faults) > 0 || len(f.without) > 0) {
		return usage("--write wants every fault and every suite: leave out --quick, --fault and --without")
	}
	if f.parallel < 1 {
		return usage("--parallel %d: the number must be positive", f.parallel)
	}
	if err := os.MkdirAll(f.reportDir, 0o755); err != nil {
		return usage("report folder: %w; name another with --report-dir", err)
	}
	check.Preview() // for suitesOf
	dir, err := scratch.New("selftest")
	if err != nil {
		return harness("%w", err)
	}
	defer dir.Remove()
	work := dir.Path

	sound, err := runReference(ctx, work, "sound")
	if err != nil {
		if e := interrupted(ctx, err); e != nil {
			return e
		}
		return err
	}
	if bad := failed(sound); len(bad) > 0 || sound.Summary.Checks.Unknown > 0 {
		return &exitError{1, fmt.Errorf("the reference without a fault is not conformant: %s", strings.Join(bad, "; "))}
	}
	card := scoreCard{Faults: make([]faultScore, len(faults))}
	var mu sync.Mutex
	f.atATime(len(faults), func(i int) {
		card.Faults[i] = f.judge(ctx, work, faults[i])
		mu.Lock()
		defer mu.Unlock()
		if ctx.Err() == nil {
			card.Faults[i].print(out)
		}
	})
	card.Ablations = f.ablations(ctx, work, out)
	if ctx.Err() != nil {
		return interrupted(ctx, ctx.Err())
	}
	return f.score(out, sound, card)
}

// atATime does n things, as many at a time as the flag says, and returns when all are done.
func (f *selftestFlags) atATime(n int, do func(i int)) {
	var wait sync.WaitGroup
	slots := make(chan struct{}, f.parallel)
	for i := range n {
		wait.Go(func() {
			slots <- struct{}{}
			defer func() { <-slots }()
			do(i)
		})
	}
	wait.Wait()
}

func (f *selftestFlags) score(out io.Writer, sound *report.Report, card scoreCard) error {
	all := len(f.faults) == 0 && len(f.without) == 0
	card.add(sound, f.quick, all)
	data, err := json.MarshalIndent(card, "", "  ")
	if err != nil {
		return harness("%w", err)
	}
	path := filepath.Join(f.reportDir, "selftest.json")
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return usage("report folder: %w", err)
	}
	if f.write != "" {
		if err := os.WriteFile(f.write, []byte(card.markdown()), 0o644); err != nil {
			return usage("score card: %w; name another file with --write", err)
		}
	}
	for _, name := range card.NeverFailed {
		fmt.Fprintf(out, "never seen to fail  %s\n", name)
	}
	fmt.Fprintf(out, "report: %s\n", path)
	imprecise := all && !f.quick && card.Precision < minPrecision
	if card.Total > 0 && !f.quick {
		fmt.Fprintln(out, card.precisionLine())
	}
	if imprecise {
		fmt.Fprintf(out, "the precision is below %s: a check is red for what its requirement does not say, or fixtures/spec/builds-on.yaml lacks what it builds on\n", percent(minPrecision))
	}
	if card.Total > 0 {
		fmt.Fprintf(out, "%d of %d faults caught, %d of %d checks seen to fail\n", card.Caught, card.Total, card.seen, card.checks)
	}
	isolated := 0
	for _, a := range card.Ablations {
		if a.Problem == "" {
			isolated++
		}
	}
	if len(card.Ablations) > 0 {
		fmt.Fprintf(out, "%d of %d features isolated\n", isolated, len(card.Ablations))
	}
	if card.Caught < card.Total || len(card.NeverFailed) > 0 || isolated < len(card.Ablations) || imprecise {
		return &exitError{code: 1}
	}
	return nil
}

func (s *faultScore) print(out io.Writer) {
	if s.Problem != "" {
		fmt.Fprintf(out, "NOT CAUGHT  %-44s %s\n", s.Name, s.Problem)
		return
	}
	besides := ""
	if others := s.others(); len(others) > 0 {
		besides = "; red besides: " + joined(others)
	}
	fmt.Fprintf(out, "caught      %-44s by %d checks, first %s%s\n", s.Name, len(s.CaughtBy), s.CaughtBy[0], besides)
}

func (f *selftestFlags) judge(ctx context.Context, work string, x *fault.Fault) faultScore {
	s := faultScore{Fault: x}
	args := []string{"--fault", x.Name}
	if x.Slow {
		args = append(args, "--slow")
	}
	if f.quick {
		for _, suite := range suitesOf(x) {
			args = append(args, "--suite", suite)
		}
	}
	r, err := runReference(ctx, work, "fault-"+x.Name, args...)
	if err != nil {
		s.Problem = err.Error()
		return s
	}
	s.judge(r)
	return s
}

// suitesOf are the suites with checks of the requirements that a fault breaks: no others can catch it.
func suitesOf(x *fault.Fault) (suites []string) {
	for _, d := range check.Declarations() {
		if !slices.Contains(suites, d.Suite) && slices.ContainsFunc(d.Requirements, func(id spec.ID) bool { return slices.Contains(x.Breaks, id) }) {
			suites = append(suites, d.Suite)
		}
	}
	return suites
}

// runReference judges the reference with further arguments, in a process of its own. The label names the run.
func runReference(ctx context.Context, work, label string, arguments ...string) (*report.Report, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, harness("%w", err)
	}
	dir := filepath.Join(work, strings.ReplaceAll(label, ":", "-"))
	args := append([]string{"run", "--report-dir", dir, "--parallel", "1", "--seed", "1"}, arguments...) // the same seed, so that two score cards agree
	output, err := exec.CommandContext(ctx, self, args...).CombinedOutput()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != report.ExitNonConformant && exit.ExitCode() != report.ExitUnknown) {
		lines := strings.Split(strings.TrimSpace(string(output)), "\n")
		return nil, harness("%s: %w: %s", label, err, lines[len(lines)-1])
	}
	data, err := os.ReadFile(filepath.Join(dir, report.JSONFile))
	if err != nil {
		return nil, harness("%s: %w", label, err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		return nil, harness("%s: %w", label, err)
	}
	return &r, nil
}

func failed(r *report.Report) (names []string) {
	for _, c := range r.Checks {
		if c.Verdict == check.NonConformant {
			names = append(names, c.DisplayName())
		}
	}
	return names
}

func keys(m map[string]bool) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}
