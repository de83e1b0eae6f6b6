package clusterrun

import (
	"context"
	"fmt"

	"github.com/service-conformance/conformance/framework/kindcluster"
)

// Existing opens a run on the kind cluster of a name, which stays. The cluster is asked for its Service range if that is empty. The run waits for other runs of this
// user on the cluster. An error is wrong configuration, a *BrokenError, or that of ctx.
func Existing(ctx context.Context, o Options, name, serviceCIDR string) (*Run, error) {
	r, err := open(o, serviceCIDR)
	if err != nil {
		return nil, err
	}
	r.onKind, r.kept, r.ask = true, true, serviceCIDR == ""
	if err := r.takeExisting(ctx, name); err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// takeExisting finds the cluster, and waits for its turn.
func (r *Run) takeExisting(ctx context.Context, name string) error {
	if err := r.agent.prepare(r); err != nil {
		return &BrokenError{err}
	}
	c, err := kindcluster.Existing(name, r.folder.Path)
	if err != nil {
		return err
	}
	end, err := kindcluster.TakeTurn(ctx, name, func() {
		fmt.Fprintf(r.Out, "waiting for the run that judges cluster %s: one run at a time prepares its nodes\n", name)
	})
	if err != nil {
		return err
	}
	r.end = end
	r.create = func(ctx context.Context, i int) (*made, error) {
		var err error
		if r.ask {
			r.cidrs[i], err = serviceCIDROf(ctx, c.Kubeconfig)
		}
		if err == nil {
			if err = r.agent.load(ctx, c, r.AgentImage); err != nil {
				err = r.withLogs(ctx, i, c, err)
			}
		}
		return &made{Cluster: c}, err
	}
	return nil
}
