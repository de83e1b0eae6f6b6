package clusterrun

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/memory"
)

// Kind opens a run on clusters that kind makes, at most some of them at a time. Their names are the run's. An error is wrong
// configuration or a *BrokenError.
func Kind(o Options, clusters []kindcluster.Options, most int) (*Run, error) {
	if err := kindcluster.Available(); err != nil {
		return nil, err
	}
	var serviceCIDRs []string
	for _, c := range clusters {
		serviceCIDRs = append(serviceCIDRs, spec.ServiceCIDRs(c.ServiceCIDRs).String())
	}
	r, err := open(o, serviceCIDRs...)
	if err != nil {
		return nil, err
	}
	r.onKind = true
	r.shares = func(i int) []check.Sharing { return Shares(clusters, i) }
	r.create = func(ctx context.Context, i int) (*made, error) {
		c := clusters[i]
		c.Name = r.clusterName(i)
		return r.createKind(ctx, i, c)
	}
	if !o.Keep {
		r.Leaves = fmt.Sprintf("clusters conformance-%s-N: `kind get clusters` shows them, `kind delete cluster --name` removes one", r.id)
	}
	if err := r.agent.prepare(r); err != nil {
		r.Close()
		return nil, &BrokenError{err}
	}
	workers := 0
	for _, c := range clusters {
		workers = max(workers, c.Workers+c.Spares)
	}
	available, _ := memory.Available() // 0 if it is not known
	fit, why := fitting(min(most, len(clusters)), workers, available)
	if why != "" {
		fmt.Fprintln(o.Out, why)
	}
	r.most = fit
	return r, nil
}

// Shares are the checks that run on the i-th cluster. All run on the first one, which has the API servers of checks that need others. On a further one
// run those that its range is for, and those that no cluster before it could decide: of both families, and with traffic.
func Shares(clusters []kindcluster.Options, i int) []check.Sharing {
	if i == 0 {
		return nil
	}
	here := clusters[i]
	before := func(had func(o *kindcluster.Options) bool) bool {
		return slices.ContainsFunc(clusters[:i], func(o kindcluster.Options) bool { return had(&o) })
	}
	all := []check.Sharing{check.OwnRange}
	if len(here.ServiceCIDRs) > 1 && !before(func(o *kindcluster.Options) bool { return len(o.ServiceCIDRs) > 1 && o.Workers > 0 }) {
		all = append(all, check.BothFamilies)
	}
	if here.Workers > 0 && !before(func(o *kindcluster.Options) bool { return o.Workers > 0 }) {
		all = append(all, check.WithNodes)
	}
	return all
}

// Alone are the checks that the first cluster alone decides. All run there, and the others are decided by a further one, too.
func Alone(clusters []kindcluster.Options) []check.Sharing {
	alone := []check.Sharing{check.AnyCluster, check.OtherServer, check.OwnRange, check.BothFamilies, check.WithNodes}
	for i := 1; i < len(clusters); i++ {
		further := Shares(clusters, i)
		alone = slices.DeleteFunc(alone, func(s check.Sharing) bool { return s != check.OwnRange && slices.Contains(further, s) })
	}
	return alone
}

// createKind makes the i-th cluster.
func (r *Run) createKind(ctx context.Context, i int, o kindcluster.Options) (*made, error) {
	start := time.Now()
	over := ""
	if r.Terminal {
		over = "\r\x1b[K" // the progress of the cluster that is judged
	}
	fmt.Fprintf(r.Out, "%screating cluster %s with Service range %s\n", over, o.Name, r.cidrs[i])
	c, err := kindcluster.Create(ctx, o, r.folder.Path, r.logsDir(i))
	if err != nil {
		return nil, err
	}
	if err := r.agent.load(ctx, c, r.AgentImage); err != nil {
		return nil, errors.Join(r.withLogs(ctx, i, c, err), c.Delete(context.WithoutCancel(ctx)))
	}
	return &made{c, time.Since(start)}, nil
}
