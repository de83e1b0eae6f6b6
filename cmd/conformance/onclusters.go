package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/clusterrun"
)

// rangesForClusters are the Service ranges that clusters are made with.
func (f *runFlags) rangesForClusters() []string {
	if len(f.ServiceCIDRs) == 0 {
		return []string{spec.DefaultServiceCIDRs[:1].String()}
	}
	return f.ServiceCIDRs
}

// noPrinting refuses --print-report.
func (f *runFlags) noPrinting() error {
	if f.printReport {
		return usage("--print-report is for a candidate that there is: the report of --tier kind, and of --cluster-command, is on this machine")
	}
	return nil
}

// isPart reports whether another process has started this one, and merges its report with others.
func (f *runFlags) isPart() bool { return f.cluster.reportedTier != "" }

// onClusters runs on clusters that are made for the run, which the function opens, and reports. The flags say how a process is to judge a cluster.
func (r *plan) onClusters(ctx context.Context, t tier, how []string, open func(clusterrun.Options) (*clusterrun.Run, error)) error {
	r.begun = true // what is left of the run has reports of its own
	clusters, err := open(clusterrun.Options{
		Keep: r.keep, Checks: check.Declarations(), Traffic: r.traffic, AgentImage: r.agentImage, ReportDir: r.reportDir, Published: r.expectations == "",
		Arguments: func(c clusterrun.Judged) []string { return r.arguments(t, how, c) }, Out: r.out, Err: os.Stderr, Terminal: r.terminal,
	})
	if err != nil {
		if e := interrupted(ctx, err); e != nil {
			return e
		}
		return exitOf(err)
	}
	defer clusters.Close()
	if clusters.Leaves != "" {
		ending.mayLeave(clusters.Leaves)
	}
	folder, err := report.OpenFolder(r.reportDir)
	if err != nil {
		return usage("%w", err)
	}
	run := report.Run{SuiteVersion: check.BuildVersion(), Started: time.Now(), Seed: r.seed, Expectations: r.deviations, Selection: r.selection, Submitter: r.submitter}
	run.Candidate.Tier = t.name()
	merged, broken := clusters.Judge(ctx, run)
	if merged == nil {
		return harness("%w", broken)
	}
	paths, err := folder.Finish(merged)
	err = errors.Join(err, r.writeMetrics(merged))
	if err == nil {
		err = clusters.RemoveParts()
	}
	switch {
	case clusters.Clusters() > 1:
		fmt.Fprintf(r.out, "\nall %d clusters: %s\n", clusters.Clusters(), title(&merged.Candidate))
		merged.WriteSummary(r.out, r.palette)
	case merged.Candidate.Implementation == "": // nobody has shown that nothing was judged
		merged.WriteSummary(r.out, r.palette)
	}
	merged.WriteAgain(r.out, r.again)
	if len(paths) > 0 {
		fmt.Fprintf(r.out, "reports: %s\n", reportsLine(paths))
	}
	if err = errors.Join(err, broken); err != nil {
		return harness("%w", err)
	}
	if code := merged.ExitCode(); code != 0 {
		return &exitError{code: code}
	}
	return nil
}

// exitOf gives an error before clusters are made its exit code.
func exitOf(err error) error {
	if broken := (*clusterrun.BrokenError)(nil); errors.As(err, &broken) {
		return harness("%w", err)
	}
	return usage("%w", err)
}

// arguments are those of a process that judges a cluster, as this run would.
func (f *runFlags) arguments(t tier, how []string, c clusterrun.Judged) []string {
	args := []string{
		"run", "--tier", f.cluster.name(), "--tier-name", t.name(), "--kubeconfig", c.Kubeconfig, "--service-cidr", c.ServiceCIDR,
		"--report-dir", c.ReportDir, "--seed", strconv.FormatInt(f.seed, 10),
	}
	args = append(args, how...)
	add := func(flag string, values ...string) {
		for _, v := range values {
			if v != "" {
				args = append(args, "--"+flag, v)
			}
		}
	}
	add("suite", f.Suites...)
	add("focus", f.Focus...)
	add("skip", f.Skip...)
	add("feature", f.Features...)
	add("profile", f.profiles...)
	add("expectations", f.expectations)
	add("implementation", f.declared)
	add("agent-image", c.AgentImage)
	add("outside", c.Outside)
	add("of-kind", c.OfKind)
	add("elsewhere", c.Elsewhere...)
	for _, s := range c.Sharing {
		add("sharing", string(s))
	}
	if f.Shard.Of > 0 {
		add("shard", f.Shard.String())
	}
	if f.Slow {
		args = append(args, "--slow")
	}
	if f.MaxWait > 0 {
		add("max-wait", f.MaxWait.String())
	}
	if f.parallel > 0 {
		add("parallel", strconv.Itoa(f.parallel))
	}
	return args
}
