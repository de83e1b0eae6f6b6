package main

import (
	"context"
	"runtime"
	"strings"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/internal/clusterrun"
)

// clusterCommands make the clusters of tier cluster, and remove them.
type clusterCommands struct{ create, teardown string }

func (c *clusterCommands) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.create, "cluster-command", "", "shell command that makes the cluster of tier cluster and prints its kubeconfig, once for each --service-cidr. {name} and {service-cidr} are filled in")
	flags.StringVar(&c.teardown, "cluster-teardown-command", "", "command that removes what --cluster-command has made, or a part of it; placeholders as above")
}

// refuse returns wrong usage if there are commands.
func (c *clusterCommands) refuse() error {
	if c.create != "" || c.teardown != "" {
		return usage("--cluster-command and --cluster-teardown-command are for --tier cluster")
	}
	return nil
}

// validate finds what contradicts.
func (c *clusterCommands) validate(f *runFlags) error {
	switch {
	case c.create == "" && c.teardown == "":
		return nil
	case c.create == "":
		return usage("--cluster-teardown-command removes what --cluster-command has made: name both")
	case f.sonobuoy.on:
		return usage("--sonobuoy judges the cluster whose pod it runs in: leave out --cluster-command")
	case f.cluster.kubeconfig != "":
		return usage("--cluster-command prints the kubeconfig of its cluster: leave out --kubeconfig")
	case f.cluster.outside != "":
		return usage("--outside is for one cluster that there is: leave it out with --cluster-command")
	case c.teardown == "" && !f.keep:
		return usage("say by --cluster-teardown-command how what --cluster-command makes is removed, or leave it with --keep")
	case runtime.GOOS == "windows":
		return usage("--cluster-command needs /bin/sh, which Windows has not")
	}
	return f.noPrinting()
}

// namesRange reports whether the command takes a Service range.
func (c *clusterCommands) namesRange() bool { return strings.Contains(c.create, "{service-cidr}") }

// onCommands judges each cluster that the commands make.
func (t *clusterTier) onCommands(ctx context.Context, r *plan) error {
	c := t.commands
	if len(r.ServiceCIDRs) > 1 && !c.namesRange() {
		return usage("--cluster-command has no {service-cidr}: it would make the same cluster for each --service-cidr")
	}
	return r.onClusters(ctx, t, t.how(), func(o clusterrun.Options) (*clusterrun.Run, error) {
		return clusterrun.Command(o, c.create, c.teardown, r.rangesForClusters(), len(r.ServiceCIDRs) == 0 && !c.namesRange())
	})
}

// how a cluster of the commands is judged. A load balancer is not disposable: a cloud keeps it when its cluster has gone.
func (t *clusterTier) how() (flags []string) {
	if t.disruptive {
		flags = append(flags, "--allow-disruptive")
	}
	if t.disposable {
		flags = append(flags, "--disposable")
	}
	return flags
}
