package clusterrun

import (
	"context"
	"fmt"
	"time"

	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/spec"
)

// Command opens a run on clusters that the user's commands make and remove (kindcluster.Command), one at a time: what they take is not known. There is one cluster for each
// Service range. A command that names no range makes one cluster, which is asked for its range if ask is true. An error is a *BrokenError.
func Command(o Options, create, teardown string, serviceCIDRs []string, ask bool) (*Run, error) {
	r, err := open(o, serviceCIDRs...)
	if err != nil {
		return nil, err
	}
	r.ask = ask
	if !o.Keep {
		r.Leaves = "a cluster: `conformance cleanup` calls its teardown command"
	}
	r.create = func(ctx context.Context, i int) (*made, error) {
		return r.createByCommand(ctx, i, kindcluster.Command{Name: r.clusterName(i), ServiceCIDR: r.cidrs[i], Create: create, Teardown: teardown, Folder: r.folder.Path})
	}
	return r, nil
}

// createByCommand makes the i-th cluster, and sees that it has the Service range that was asked for.
func (r *Run) createByCommand(ctx context.Context, i int, command kindcluster.Command) (*made, error) {
	start := time.Now()
	with := ""
	if !r.ask {
		with = " with Service range " + r.cidrs[i]
	}
	fmt.Fprintf(r.Out, "creating cluster %s%s by --cluster-command\n", command.Name, with)
	c, err := kindcluster.CreateByCommand(ctx, command, r.logsDir(i), func(ctx context.Context, kubeconfig string) (err error) {
		if r.ask {
			r.cidrs[i], err = serviceCIDROf(ctx, kubeconfig)
			return err
		}
		return hasRange(ctx, kubeconfig, r.cidrs[i])
	})
	return &made{c, time.Since(start)}, err
}

// hasRange returns an error if a cluster has another Service range than this one.
func hasRange(ctx context.Context, kubeconfig, serviceCIDR string) error {
	ranges, err := spec.ParseServiceCIDRs(serviceCIDR)
	if err == nil {
		_, err = cluster.Open(ctx, cluster.Options{Kubeconfig: kubeconfig, ServiceCIDRs: ranges})
	}
	return err
}
