package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/kindcluster"
)

// clusterCommands make the clusters of tier cluster, and remove them.
type clusterCommands struct{ create, teardown string }

func (c *clusterCommands) register(flags *pflag.FlagSet) {
	flags.StringVar(&c.create, "cluster-command", "", "shell command that makes the cluster of tier cluster and prints its kubeconfig, once for each --service-cidr. {name} and {service-cidr} are filled in")
	flags.StringVar(&c.teardown, "cluster-teardown-command", "", "command that removes what --cluster-command has made, or a part of it; placeholders as above")
}

// byCommand reports whether commands of the user's make the clusters.
func (f *tierFlags) byCommand() bool { return f.commands.create != "" }

// makesClusters reports whether the run is on clusters that are made for it.
func (f *tierFlags) makesClusters() bool { return f.tier == "kind" || f.byCommand() }

// tierOfClusters is the tier that reports on clusters that are made for the run name.
func (f *tierFlags) tierOfClusters() string {
	if f.byCommand() {
		return "cluster"
	}
	return "kind"
}

// validateClusterCommands finds what contradicts.
func (f *tierFlags) validateClusterCommands() error {
	c := f.commands
	switch {
	case c.create == "" && c.teardown == "":
		return nil
	case f.tier != "cluster":
		return usage("--cluster-command and --cluster-teardown-command are for --tier cluster")
	case c.create == "":
		return usage("--cluster-teardown-command removes what --cluster-command has made: name both")
	case f.kubeconfig != "":
		return usage("--cluster-command prints the kubeconfig of its cluster: leave out --kubeconfig")
	case f.outside != "":
		return usage("--outside is for one cluster that there is: leave it out with --cluster-command")
	case c.teardown == "" && !f.kind.keep:
		return usage("say by --cluster-teardown-command how what --cluster-command makes is removed, or leave it with --keep")
	case runtime.GOOS == "windows":
		return usage("--cluster-command needs /bin/sh, which Windows has not")
	}
	return nil
}

// namesRange reports whether the command takes a Service range.
func (c *clusterCommands) namesRange() bool { return strings.Contains(c.create, "{service-cidr}") }

// createByCommand makes the i-th cluster by the user's command, and sees that it has the Service range that was asked for.
func (r *kindRun) createByCommand(ctx context.Context, i int) (made, error) {
	start := time.Now()
	name, with := r.clusterName(i), ""
	if r.rangeKnown() {
		with = " with Service range " + r.cidrs[i]
	}
	fmt.Fprintf(r.out, "creating cluster %s%s by --cluster-command\n", name, with)
	command := kindcluster.Command{Name: name, ServiceCIDR: r.cidrs[i], Create: r.commands.create, Teardown: r.commands.teardown, Folder: r.dir}
	c, err := kindcluster.CreateByCommand(ctx, command, r.logsDir(i), func(ctx context.Context, kubeconfig string) error {
		if !r.rangeKnown() {
			var err error
			r.cidrs[i], err = serviceCIDROf(ctx, kubeconfig)
			return err
		}
		return r.hasRange(ctx, i, kubeconfig)
	})
	return made{c, time.Since(start)}, err
}

// rangeKnown reports whether it is known which Service ranges clusters will have, before they are there.
func (r *kindRun) rangeKnown() bool {
	return !r.byCommand() || len(r.ServiceCIDRs) > 0 || r.commands.namesRange()
}

// hasRange returns an error if the i-th cluster has another Service range than the one that was asked for.
func (r *kindRun) hasRange(ctx context.Context, i int, kubeconfig string) error {
	ranges, err := parseServiceCIDR(r.cidrs[i])
	if err == nil {
		_, err = cluster.Open(ctx, cluster.Options{Kubeconfig: kubeconfig, ServiceCIDRs: ranges})
	}
	return err
}

// tellLeft says which clusters no teardown command has removed, and reports whether there are any: the folder that tells of them is then left to the next start.
func tellLeft(folder string) bool {
	names, err := kindcluster.Commands(folder)
	if len(names) > 0 {
		fmt.Fprintf(os.Stderr, "conformance: clusters may be left: %s; `conformance cleanup` calls the teardown command again\n", strings.Join(names, ", "))
	}
	return err != nil || len(names) > 0
}
