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
	list      bool
	parallel  int
}

func newSelftest() *cobra.Command {
	f := &selftestFlags{}
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "run the checks against every fault and print the score card",
		Long: `Start the reference once with every deliberate bug and show which checks catch it. Then start it without each
optional feature: what is not claimed may turn nothing red, what is claimed nothing of other features.
It fails if a fault is caught by no check of a requirement that the fault names, if the faultless reference is not
conformant, or if a check is never seen to fail.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.Flags().StringSliceVar(&f.faults, "fault", nil, "faults to try (default all)")
	cmd.Flags().StringSliceVar(&f.without, "without", nil, "features to start the reference without (default all, unless --fault names faults)")
	cmd.Flags().StringVar(&f.reportDir, "report-dir", "conformance-report", "folder for selftest.json")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the faults and exit")
	cmd.Flags().IntVar(&f.parallel, "parallel", 2*runtime.NumCPU(), "number of faults that are tried at a time; some checks wait for what a fault keeps from happening")
	return cmd
}

// scoreCard is selftest.json.
type scoreCard struct {
	Faults []faultScore `json:"faults"`
	// NeverFailed are checks that no fault makes fail; filled only when all faults were tried.
	NeverFailed []string `json:"neverFailed"`
	// Ablations are what became of references that are without a feature; only when all faults were tried.
	Ablations []ablation `json:"ablations,omitempty"`
	Caught    int        `json:"caught"`
	Total     int        `json:"total"`
}

type faultScore struct {
	*fault.Fault
	// CaughtBy are the checks of the requirements it breaks that are non-conformant, AlsoFailed those of other requirements.
	CaughtBy   []string `json:"caughtBy"`
	AlsoFailed []string `json:"alsoFailed,omitempty"`
	Problem    string   `json:"problem,omitempty"`
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
		return err
	}
	if bad := failed(sound); len(bad) > 0 || sound.Summary.Checks.Unknown > 0 {
		return &exitError{1, fmt.Errorf("the reference without a fault is not conformant: %s", strings.Join(bad, "; "))}
	}
	card := scoreCard{Faults: make([]faultScore, len(faults)), Total: len(faults), NeverFailed: []string{}}
	var mu sync.Mutex
	f.atATime(len(faults), func(i int) {
		card.Faults[i] = judge(ctx, work, faults[i])
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
	seen := map[string]bool{}
	for _, s := range card.Faults {
		if s.Problem == "" {
			card.Caught++
		}
		for _, name := range append(slices.Clone(s.CaughtBy), s.AlsoFailed...) {
			seen[name] = true
		}
	}
	checks := map[string]bool{}
	for _, c := range sound.Checks {
		if c.Verdict == check.Conformant && !checks[c.Check] {
			checks[c.Check] = true
			if !seen[c.Check] && len(f.faults) == 0 && len(f.without) == 0 {
				card.NeverFailed = append(card.NeverFailed, c.Check)
			}
		}
	}
	slices.Sort(card.NeverFailed)
	data, err := json.MarshalIndent(card, "", "  ")
	if err != nil {
		return harness("%w", err)
	}
	path := filepath.Join(f.reportDir, "selftest.json")
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return usage("report folder: %w", err)
	}
	for _, name := range card.NeverFailed {
		fmt.Fprintf(out, "never seen to fail  %s\n", name)
	}
	fmt.Fprintf(out, "report: %s\n", path)
	if card.Total > 0 {
		fmt.Fprintf(out, "%d of %d faults caught, %d of %d checks seen to fail\n", card.Caught, card.Total, len(seen), len(checks))
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
	if card.Caught < card.Total || len(card.NeverFailed) > 0 || isolated < len(card.Ablations) {
		return &exitError{code: 1}
	}
	return nil
}

func (s *faultScore) print(out io.Writer) {
	if s.Problem != "" {
		fmt.Fprintf(out, "NOT CAUGHT  %-44s %s\n", s.Name, s.Problem)
		return
	}
	fmt.Fprintf(out, "caught      %-44s by %d checks, first %s\n", s.Name, len(s.CaughtBy), s.CaughtBy[0])
}

func judge(ctx context.Context, work string, x *fault.Fault) faultScore {
	s := faultScore{Fault: x}
	args := []string{"--fault", x.Name}
	for _, suite := range suitesOf(x) {
		args = append(args, "--suite", suite)
	}
	r, err := runReference(ctx, work, "fault-"+x.Name, args...)
	if err != nil {
		s.Problem = err.Error()
		return s
	}
	caught, also := map[string]bool{}, map[string]bool{}
	for _, c := range r.Checks {
		if c.Verdict != check.NonConformant {
			continue
		}
		if c.Violates(x.Breaks...) {
			caught[c.Check] = true
		} else {
			also[c.Check] = true
		}
	}
	s.CaughtBy, s.AlsoFailed = keys(caught), keys(also)
	switch {
	case len(caught) == 0 && len(also) == 0:
		s.Problem = "no check fails"
	case len(caught) == 0:
		s.Problem = "only checks of requirements that it does not name fail: " + strings.Join(s.AlsoFailed, "; ")
	}
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
	args := append([]string{"run", "--report-dir", dir, "--parallel", "1"}, arguments...)
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
