package clusterrun

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/spec"
)

// startOutside starts the clients outside of a cluster. It returns the file that tells where they are, empty if there are none, and what removes them.
func (r *Run) startOutside(ctx context.Context, c *made) (file string, remove func()) {
	remove = func() {}
	if r.agent.program == "" {
		return "", remove
	}
	var told cluster.Outside
	o, err := c.StartOutside(ctx, r.agent.program)
	if err == nil {
		remove = func() {
			if err := o.Remove(context.WithoutCancel(ctx)); err != nil {
				r.notRemoved(err)
			}
		}
		told = cluster.Outside{URL: o.URL, Token: o.Token, Gateways: o.Gateways}
	} else {
		fmt.Fprintf(r.Out, "no traffic can be sent from outside of the cluster, checks of it are unknown: %v\n", err)
		told = cluster.Outside{Failed: err.Error()}
	}
	text, err := yaml.Marshal(told)
	if err == nil {
		file = filepath.Join(r.folder.Path, c.Name+".outside.yaml")
		err = os.WriteFile(file, text, 0o600)
	}
	if err != nil {
		r.broken = errors.Join(r.broken, fmt.Errorf("tell where the client outside of cluster %s is: %w", c.Name, err))
		return "", remove
	}
	return file, remove
}

// fence keeps on the nodes what a run sends to addresses that nobody has. It returns what takes the fence down and says whether it held.
func (r *Run) fence(ctx context.Context, i int, c *made) (remove func()) {
	ranges, err := spec.ParseServiceCIDRs(r.cidrs[i])
	var f *kindcluster.Fence
	if err == nil && r.Traffic {
		f, err = c.Fence(ctx, ranges)
	}
	if err != nil {
		fmt.Fprintf(r.Out, "what is sent to addresses that nobody has may leave the cluster: %v\n", err)
	}
	if f == nil || err != nil {
		return func() {}
	}
	return func() {
		left, err := f.Remove(context.WithoutCancel(ctx))
		if left > 0 {
			fmt.Fprintf(r.Out, "%d packets to addresses that nobody has left the cluster\n", left)
		}
		if err != nil {
			r.notRemoved(err)
		}
	}
}
