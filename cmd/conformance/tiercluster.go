package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
)

// clusterTier is any cluster that a kubeconfig reaches, or clusters of the user's commands.
type clusterTier struct {
	kubeconfig string
	outside    string // file
	disruptive bool
	commands   clusterCommands

	// Hidden flags, for a process that judges one of several clusters.
	reportedTier string
	deletedAfter bool
	setUp        bool   // a command has installed what is judged
	ofKind       string // name of the cluster
	sharing      []string
	elsewhere    []string

	disposable bool
}

func (*clusterTier) name() string { return "cluster" }

func (t *clusterTier) register(flags *pflag.FlagSet) {
	flags.StringVar(&t.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default in a pod: its service account)")
	flags.StringVar(&t.outside, "outside", "", "file that tells where an agent outside of the cluster is, for --tier cluster: its url, token and gateways")
	flags.BoolVar(&t.disruptive, "allow-disruptive", false, "let checks on tier cluster do what others could feel: have the cluster make load balancers")
	t.commands.register(flags)
	flags.StringVar(&t.reportedTier, "tier-name", "", "name of the tier in reports")
	flags.BoolVar(&t.disposable, "disposable", false, "the cluster of --tier cluster, --cluster-command or --reuse is for tests alone: fill its Service range, and set its DNS aside meanwhile")
	flags.BoolVar(&t.deletedAfter, "deleted-after", false, "leave what the run has made: the cluster is deleted after it")
	flags.BoolVar(&t.setUp, "set-up", false, "the user has installed in the cluster what may make load balancers")
	flags.StringVar(&t.ofKind, "of-kind", "", "the cluster is the one of kind of this name, whose nodes answer for addresses that nobody has")
	flags.StringSliceVar(&t.sharing, "sharing", nil, "what checks need of this cluster that run on it: any, nodes, both, own, other (check.Sharing)")
	flags.StringArrayVar(&t.elsewhere, "elsewhere", nil, "Service range of another cluster that shares the work; repeat it for more")
	for _, name := range []string{"tier-name", "deleted-after", "set-up", "of-kind", "sharing", "elsewhere"} {
		_ = flags.MarkHidden(name)
	}
}

func (t *clusterTier) validate(f *runFlags, chosen bool) error {
	switch {
	case t.disruptive && !chosen:
		return usage("--allow-disruptive is for --tier cluster; on the others nobody could feel anything")
	case t.disposable && !chosen && f.kind.reuse == "":
		return usage("--disposable is for a cluster that there is: --tier cluster, or --tier kind with --reuse")
	case t.outside != "" && (!chosen || f.agentImage == ""):
		return usage("--outside is for --tier cluster with an --agent-image")
	case t.kubeconfig != "" && !chosen:
		return usage("--kubeconfig is for --tier cluster")
	case !chosen:
		return t.commands.refuse()
	case f.proxyMode != "":
		return f.noProxyMode()
	case t.kubeconfig == "" && t.commands.create == "" && !inPod():
		return usage("--tier cluster needs --kubeconfig, or --cluster-command, unless it runs in a pod of the cluster")
	}
	return t.commands.validate(f)
}

// inPod reports whether there may be a service account that leads to a cluster.
func inPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

// run judges the cluster, or has a process for each cluster of the user's commands judge it.
func (t *clusterTier) run(ctx context.Context, r *plan) error {
	if t.commands.create != "" {
		return t.onCommands(ctx, r)
	}
	p, err := t.open(ctx, r)
	if err != nil {
		return err
	}
	return r.judge(ctx, p)
}

func (t *clusterTier) open(ctx context.Context, r *plan) (*place, error) {
	o := cluster.Options{Kubeconfig: t.kubeconfig, AgentImage: r.agentImage, AllowDisruptive: t.disruptive, Tier: t.reportedTier, Shard: r.Shard, Fenced: t.ofKind != "", Disposable: t.disposable, NoLoadBalancers: t.ofKind != "" && t.deletedAfter && !t.setUp}
	if t.outside != "" {
		var err error
		if o.Outside, err = cluster.ReadOutside(t.outside); err != nil {
			return nil, usage("%w", err)
		}
	}
	if len(r.ServiceCIDRs) > 1 {
		return nil, usage("a cluster has one Service range (or two joined by a comma), not %d", len(r.ServiceCIDRs))
	}
	for _, entry := range r.ServiceCIDRs {
		ranges, err := spec.ParseUsableServiceCIDRs(entry)
		if err != nil {
			return nil, usage("--service-cidr %s: %w", entry, err)
		}
		o.ServiceCIDRs = ranges
	}
	if t.ofKind != "" {
		// Without them some checks are not judged, and the report says so.
		servers, err := kindcluster.OpenServers(ctx, t.ofKind, runner.NewRunID(), filepath.Dir(t.kubeconfig))
		if err == nil {
			o.Servers = servers
		} else {
			fmt.Fprintf(r.out, "no API servers for checks alone: %v\n", err)
		}
		if links, err := kindcluster.OpenLinks(t.ofKind); err == nil {
			o.Links = links
		} else {
			fmt.Fprintf(r.out, "no link can be made narrow: %v\n", err)
		}
		if t.disposable {
			t.openProxies(ctx, r, &o)
			if controllers, err := kindcluster.OpenControllers(ctx, t.ofKind); err == nil {
				o.Controllers = controllers
			} else {
				fmt.Fprintf(r.out, "no controller can be stopped: %v\n", err)
			}
		}
	}
	c, err := cluster.Open(ctx, o)
	if err != nil {
		if e := interrupted(ctx, err); e != nil {
			return nil, e
		}
		return nil, usage("%w", err)
	}
	if len(r.ServiceCIDRs) == 0 { // checks that run on any range run on the one that it has
		r.ServiceCIDRs, r.OtherRanges = []string{spec.ServiceCIDRs(c.ServiceCIDRs()).String()}, true
		r.count()
	}
	p := &place{Candidate: c, workers: fewWorkers, shared: !t.deletedAfter, outlives: !t.deletedAfter, disposable: t.deletedAfter, surrounded: true}
	if r.traffic && r.agentImage != "" {
		p.workers = 8 // they wait for the pods of the cluster
	}
	if !t.deletedAfter {
		p.removeRun = t.removeRun
	}
	if !r.isPart() { // a cluster that was made for the run has nothing of others
		p.leaves = "namespaces: `conformance cleanup` removes them"
		fmt.Fprint(r.out, c.Plan(r.traffic))
		sweep(ctx, r.out, t.kubeconfig)
	}
	return p, nil
}

// openProxies finds what checks may do with proxies: have nodes of their own, or stop those of nodes that all share.
func (t *clusterTier) openProxies(ctx context.Context, r *plan, o *cluster.Options) {
	spares, err := kindcluster.OpenSpares(ctx, t.ofKind)
	switch {
	case err != nil:
		fmt.Fprintf(r.out, "no node for a check alone: %v\n", err)
	case spares != nil:
		o.Spares = spares
		return
	}
	proxies, err := kindcluster.OpenProxies(ctx, t.ofKind)
	if err != nil {
		fmt.Fprintf(r.out, "no proxy can be stopped: %v\n", err)
		return
	}
	o.Proxies = proxies
}

// sweep removes what a killed run has left a day ago. What resists does not keep another run from its work.
func sweep(ctx context.Context, out io.Writer, kubeconfig string) {
	ctx, cancel := context.WithTimeout(ctx, sweepWithin)
	defer cancel()
	client, err := cluster.Connect(kubeconfig)
	var left []string
	if err == nil {
		left, err = cluster.Cleanup(ctx, client, cluster.NoRunLasts)
	}
	switch {
	case err != nil:
		fmt.Fprintf(out, "what a killed run has left could not be removed: %v\n", err)
	case len(left) > 0:
		fmt.Fprintf(out, "removed %d namespaces that a killed run had left\n", len(left))
	}
}

// removeRun removes from the cluster what the checks of an interrupted run had no time to remove.
func (t *clusterTier) removeRun(id string) {
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	client, err := cluster.Connect(t.kubeconfig)
	if err == nil {
		err = cluster.RemoveRun(ctx, client, id)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "conformance: the interrupted run may have left namespaces, `conformance cleanup` removes them: %v\n", err)
	}
}

const (
	sweepWithin  = time.Minute
	removeWithin = 2 * time.Second
)
