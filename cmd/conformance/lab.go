package main

import (
	"context"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/programs"
	"github.com/service-conformance/conformance/internal/lab/standing"
)

func newLab() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "lab",
		Short: "the real components by themselves: build, fetch, up, list, shell, restart-proxy, down",
		Args:  noArguments,
		RunE:  func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newLabBuild(), newLabFetch(), newLabUp(), newLabList(), newLabShell(), newLabRestartProxy(), newLabDown())
	return cmd
}

func newLabBuild() *cobra.Command {
	version := programs.DefaultVersion
	cmd := &cobra.Command{
		Use:   "build",
		Short: "build all programs of the lab from Go modules into the cache",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			shown := newBuildProgress(cmd.OutOrStdout())
			b, err := programs.Build(cmd.Context(), programs.BuildOptions{Version: version, Components: (&lab.Options{DataPlane: true}).Components(), Progress: shown.show})
			shown.end()
			if err != nil {
				return labError(cmd.Context(), err)
			}
			fmt.Fprintf(cmd.OutOrStdout(), "Kubernetes %s, etcd %s: %s\n", b.Version, b.EtcdVersion, b.Dir)
			return nil
		},
	}
	cmd.Flags().StringVar(&version, "kubernetes-version", version, "Kubernetes version")
	return cmd
}

func newLabDown() *cobra.Command {
	var name string
	cmd := &cobra.Command{
		Use:   "down",
		Short: "stop a lab that is up and remove every trace of it",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			running, err := standing.Down(cmd.Context(), "", name)
			if err != nil {
				return labError(cmd.Context(), err)
			}
			if running == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "%v\n", standing.NotUp("", name))
				return nil
			}
			fmt.Fprintf(cmd.OutOrStdout(), "the lab %q (Kubernetes %s at %s) is down\n", running.Name, running.Version, running.URL)
			return nil
		},
	}
	registerLabName(cmd, &name)
	return cmd
}

func newLabList() *cobra.Command {
	return &cobra.Command{
		Use:   "list",
		Short: "list the labs that are up, and which of their programs have ended",
		Args:  noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error {
			up, err := standing.List("")
			if err != nil {
				return usage("%w", err)
			}
			out := cmd.OutOrStdout()
			if len(up) == 0 {
				fmt.Fprintln(out, "no lab is up")
				return nil
			}
			table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
			fmt.Fprintln(table, "NAME\tKUBERNETES\tNODES\tPROXY\tSERVICE RANGE\tKUBECONFIG")
			for _, r := range up {
				proxy := r.Proxy
				if proxy == "" {
					proxy = "-"
				}
				fmt.Fprintf(table, "%s\t%s\t%d\t%s\t%s\t%s\n", r.Name, r.Version, len(r.Nodes), proxy, strings.Join(r.ServiceCIDRs, ","), r.Kubeconfig)
			}
			if err := table.Flush(); err != nil {
				return harness("%w", err)
			}
			for _, r := range up {
				if died := r.Died(); died != "" {
					fmt.Fprintf(out, "in %s: %s\n", r.Name, died)
				}
			}
			return nil
		},
	}
}

// registerLabName adds the flag that names a lab.
func registerLabName(cmd *cobra.Command, name *string) {
	cmd.Flags().StringVar(name, "name", standing.DefaultName, "name of the lab; labs of several names can be up at the same time")
}

// noTraffic refuses a run: checks of traffic that were asked for and cannot be made are no pass of the rest.
func noTraffic(reason error) error {
	return usage("no traffic can be sent here: %w; without it, judge the API server alone: --suite allocation,apischema", reason)
}

// openLab makes a lab. One with nodes is made in namespaces of its own, see isolate.
func openLab(ctx context.Context, out io.Writer, o lab.Options) (candidate.Candidate, error) {
	shown := newBuildProgress(out)
	o.Progress, o.Compiling = shown.show, fetchHint(out)
	l, err := lab.New(ctx, o)
	shown.end()
	if err != nil {
		return nil, labError(ctx, err)
	}
	if reason := l.WithoutDataPlane(); o.DataPlane && reason != nil {
		_ = l.Close(ctx) // nothing has started
		return nil, noTraffic(reason)
	}
	return l, nil
}

// keepLogs keeps the logs of programs that are none of the lab's own, and of those that ended by themselves, and returns the latter.
func keepLogs(out io.Writer, l runsPrograms, folder string) (ended []report.EndedProgram) {
	logs, err := l.KeepLogs(folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance: keeping the logs:", err)
	}
	for _, one := range logs {
		if one.Died != nil {
			ended = append(ended, report.EndedProgram{Program: one.Program(), How: one.Died.Error(), Log: filepath.ToSlash(filepath.Join(filepath.Base(folder), one.File))})
		}
	}
	if len(logs) > 0 {
		fmt.Fprintf(out, "logs: %s\n", folder)
	}
	return ended
}

// spent is what the programs of a lab of the run's own took.
func spent(c candidate.Candidate) (programs []report.Program) {
	l, own := c.(*lab.Lab)
	if !own {
		return nil
	}
	for _, s := range l.Spent() {
		programs = append(programs, report.Program{Program: s.Program, Processes: s.Processes, ProcessorSeconds: math.Round(100*s.Processor.Seconds()) / 100})
	}
	return programs
}

// isolate runs this program anew in namespaces of its own, unless it runs there already. It reports whether it did, and returns what the other process ends with. The programs are built before: in the namespaces there is no network.
func isolate(ctx context.Context, out io.Writer, o lab.Options) (done bool, err error) {
	if isolation.Isolated() {
		return false, nil
	}
	if err := dataplane.NodesWork(o.Proxy); err != nil { // what a build of minutes would not help
		return false, noTraffic(err)
	}
	shown := newBuildProgress(out)
	o.Progress, o.Compiling = shown.show, fetchHint(out)
	_, _, err = lab.ProgramsOf(ctx, o)
	shown.end()
	if err != nil {
		return false, labError(ctx, err)
	}
	if o.Proxy.NeedsGuest() {
		fmt.Fprintln(out, "this machine's kernel has no IPVS: the lab boots itself in user-mode-linux, where everything takes many times as long")
		code, err := passingSignals(ctx, isolation.RunInGuest)
		if err != nil {
			return false, labError(ctx, err)
		}
		return true, &exitError{code: code}
	}
	code, err := passingSignals(ctx, isolation.Isolate)
	if err != nil {
		if e := interrupted(ctx, err); e != nil {
			return false, e
		}
		return false, harness("%w", err)
	}
	return true, &exitError{code: code}
}

// passingSignals has another process do the work of this one, and heed its signals.
func passingSignals(ctx context.Context, run func(<-chan os.Signal) (int, error)) (int, error) {
	signals, done, ok := ending.passOn()
	if !ok {
		return 0, context.Cause(ctx)
	}
	defer done()
	return run(signals)
}

// labError gives an error of the lab its exit code: a tier that cannot run is a matter of configuration.
func labError(ctx context.Context, err error) error {
	if e := interrupted(ctx, err); e != nil {
		return e
	}
	return usage("%w", err)
}

// buildProgress shows a build: one line drawn anew on a terminal, one line a stage in a pipe.
type buildProgress struct {
	out      io.Writer
	terminal bool
	stage    string
	start    time.Time
}

func newBuildProgress(out io.Writer) *buildProgress {
	return &buildProgress{out: out, terminal: isTerminal(out), start: time.Now()}
}

func (p *buildProgress) show(stage string, done, total int) {
	if !p.terminal {
		if stage != p.stage {
			fmt.Fprintln(p.out, stage)
		}
		p.stage = stage
		return
	}
	p.stage = stage
	count := ""
	if total > 0 {
		count = fmt.Sprintf(" %d/%d", done, total)
	}
	fmt.Fprintf(p.out, "\r\x1b[K%s%s, %.0f s", stage, count, time.Since(p.start).Seconds())
}

func (p *buildProgress) end() {
	if p.terminal && p.stage != "" {
		fmt.Fprint(p.out, "\r\x1b[K")
	}
}
