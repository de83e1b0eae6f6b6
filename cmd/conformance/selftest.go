package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/selftest"
)

type selftestFlags struct {
	faults    []string
	without   []string
	reportDir string
	write     string
	list      bool
	quick     bool
	complete  bool
	parallel  int
}

func newSelftest() *cobra.Command {
	f := &selftestFlags{}
	cmd := &cobra.Command{
		Use:   "selftest",
		Short: "run the checks against every fault and print the score card",
		Long: `Start the reference once with every deliberate bug, and show which requirements turn red. What goes back to a red requirement is blocked,
not red. Then start the reference without each optional feature: nothing may turn red.

A fault edits rules of the reference. A run without faults records which checks use which rule. A fault is tried against the checks that it
can change; the others find what they find without it. --complete tries every fault against every check, and tells where a use was not seen.
Faults that --fault names are tried against every check.

It fails if no check of a requirement that a fault names catches the fault. It fails if the reference without faults is not conformant, or if
a check never fails. It fails if faults name too few of the requirements that they turn red.`,
		Example: `  conformance selftest
  conformance selftest --complete
  conformance selftest --fault lower-band-first,no-affinity
  conformance selftest --write docs/scorecard.md`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return f.run(cmd.Context(), cmd.OutOrStdout()) },
	}
	cmd.Flags().StringSliceVar(&f.faults, "fault", nil, "faults to try (default all)")
	cmd.Flags().StringSliceVar(&f.without, "without", nil, "features to start the reference without (default all, unless --fault names faults)")
	cmd.Flags().BoolVar(&f.quick, "quick", false, "run only the checks of the requirements that a fault breaks: whether it is caught, not what else turns red")
	cmd.Flags().BoolVar(&f.complete, "complete", false, "try every fault against every check, and compare what it changes with what it seemed to reach")
	cmd.Flags().StringVar(&f.write, "write", "", "also write the score card, as Markdown, to this file")
	cmd.Flags().StringVar(&f.reportDir, "report-dir", "conformance-report", "folder for selftest.json")
	cmd.Flags().BoolVar(&f.list, "list", false, "list the faults and exit")
	cmd.Flags().IntVar(&f.parallel, "parallel", 4*runtime.NumCPU(), "number of faults that are tried at a time; some checks wait for what a fault keeps from happening")
	cmd.AddCommand(&cobra.Command{
		Use:    "worker",
		Short:  "judge the references that standard input names (the self-test starts it)",
		Hidden: true,
		Args:   cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			collectSeldom()
			if err := selftest.Work(cmd.Context(), cmd.InOrStdin(), cmd.OutOrStdout()); err != nil {
				return harness("%w", err)
			}
			return nil
		},
	})
	return cmd
}

func (f *selftestFlags) run(ctx context.Context, out io.Writer) error {
	if f.list {
		w := tabwriter.NewWriter(out, 0, 4, 2, ' ', 0)
		for _, x := range fault.All() {
			fmt.Fprintf(w, "%s\t%s\n", x.Name, x.Description)
		}
		return w.Flush()
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	o.Out = out
	if err := os.MkdirAll(f.reportDir, 0o755); err != nil {
		return usage("report folder: %w; name another with --report-dir", err)
	}
	program, err := os.Executable()
	if err != nil {
		return harness("%w", err)
	}
	o.Worker = []string{program, "selftest", "worker"}
	card, err := selftest.Run(ctx, *o)
	if err != nil {
		if e := interrupted(ctx, err); e != nil {
			return e
		}
		if unsound := (*selftest.UnsoundError)(nil); errors.As(err, &unsound) {
			return &exitError{report.ExitNonConformant, unsound}
		}
		return harness("%w", err)
	}
	data, err := card.JSON()
	if err != nil {
		return harness("%w", err)
	}
	path := filepath.Join(f.reportDir, "selftest.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		return usage("report folder: %w", err)
	}
	if f.write != "" && len(card.NotTried) == 0 {
		if err := os.WriteFile(f.write, []byte(card.Markdown()), 0o644); err != nil {
			return usage("score card: %w; name another file with --write", err)
		}
	}
	card.WriteSummary(out, path)
	if len(card.NotTried) > 0 {
		return &exitError{code: report.ExitUnknown}
	}
	if !card.Passed() {
		return &exitError{code: report.ExitNonConformant}
	}
	return nil
}

// options say what the flags ask for: everything, unless they name faults or features.
func (f *selftestFlags) options() (*selftest.Options, error) {
	o := &selftest.Options{All: len(f.faults) == 0 && len(f.without) == 0, Without: f.without, Quick: f.quick, Complete: f.complete, Parallel: f.parallel}
	o.Selected = o.All && !f.complete // to record takes longer than to try a few faults against everything
	if o.All {
		o.Faults, o.Without = fault.All(), absent.Names()
	}
	set, err := namedFaults(f.faults)
	if err != nil {
		return nil, err
	}
	if len(f.faults) > 0 {
		o.Faults = slices.DeleteFunc(fault.All(), func(x *fault.Fault) bool { return !set.On(x) })
	}
	if _, err := absent.Parse(f.without...); err != nil {
		return nil, usage("--without: %w", err)
	}
	switch {
	case f.complete && f.quick:
		return nil, usage("--complete runs every check and --quick few of them: leave out one")
	case f.complete && len(f.faults) > 0:
		return nil, usage("--complete tries all faults: leave out --fault, or leave out --complete, as named faults are tried against every check anyway")
	case f.complete && len(f.without) > 0:
		return nil, usage("--complete tries all faults and features: leave out --without")
	}
	if f.write != "" && (f.quick || !o.All) {
		return nil, usage("--write wants every fault and every suite: leave out --quick, --fault and --without")
	}
	if f.parallel < 1 {
		return nil, usage("--parallel %d: the number must be positive", f.parallel)
	}
	return o, nil
}
