package clusterrun

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/framework/spec"
)

// judge returns the report of the i-th cluster. If it could not be created or judged, all its results are unknown.
func (r *Run) judge(ctx context.Context, i int, c *made, err error) *report.Report {
	if ctx.Err() != nil {
		if err != nil && !errors.Is(err, context.Canceled) {
			r.notRemoved(err)
		}
		return report.Undecided(r.Checks, check.Interrupted)
	}
	if err != nil {
		on := r.cidrs[i]
		if r.ask {
			if on = r.clusterName(i); r.kept {
				on = c.Name
			}
		}
		fmt.Fprintf(r.Out, "\nno checks on %s: %v\n", on, err)
		return report.Undecided(r.Checks, "no cluster: "+err.Error())
	}
	fmt.Fprintf(r.Out, "\ncluster %s with Service range %s", c.Name, r.cidrs[i])
	if c.took > 0 {
		fmt.Fprintf(r.Out, ", ready after %.0f s", c.took.Seconds())
	}
	fmt.Fprintln(r.Out)
	var preparing sync.WaitGroup
	unfence := func() {}
	if r.onKind {
		preparing.Go(func() { unfence = r.fence(ctx, i, c) })
	}
	outside, remove := r.startOutside(ctx, c)
	preparing.Wait()
	result, err := r.judgeByProcess(ctx, i, c.Cluster, outside)
	r.atEnd(ctx, func() {
		var undoing sync.WaitGroup
		undoing.Go(remove)
		if ctx.Err() == nil || r.kept || r.Keep { // else the fence goes with the nodes
			undoing.Go(unfence)
		}
		undoing.Wait()
	})
	switch {
	case ctx.Err() != nil && err == nil:
		return result
	case ctx.Err() != nil:
		return report.Undecided(r.Checks, check.Interrupted)
	case err != nil:
		return report.Undecided(r.Checks, r.withLogs(ctx, i, c.Cluster, fmt.Errorf("cluster %s could not be judged: %w", c.Name, err)).Error())
	case result.ExitCode() != report.ExitConformant:
		fmt.Fprintln(r.Out, r.withLogs(ctx, i, c.Cluster, fmt.Errorf("cluster %s: %s", c.Name, result.VerdictLine())))
	}
	return result
}

// withLogs exports the logs of a cluster before it goes, and adds to what is said of it where they are.
func (r *Run) withLogs(ctx context.Context, i int, c *kindcluster.Cluster, said error) error {
	if err := c.ExportLogs(ctx, r.logsDir(i)); err != nil {
		return fmt.Errorf("%w; its logs could not be exported: %w", said, err)
	}
	return fmt.Errorf("%w; its logs are in %s", said, r.logsDir(i))
}

// serviceCIDROf asks a cluster for its Service range.
func serviceCIDROf(ctx context.Context, kubeconfig string) (string, error) {
	c, err := cluster.Open(ctx, cluster.Options{Kubeconfig: kubeconfig})
	if err != nil {
		return "", err
	}
	cp, err := c.ControlPlane(ctx, candidate.Request{})
	if err != nil {
		return "", err
	}
	defer cp.Release()
	return spec.ServiceCIDRs(cp.ServiceCIDRs()).String(), nil
}
