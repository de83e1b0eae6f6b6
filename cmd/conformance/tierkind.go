package main

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/kindcluster"
	"github.com/service-conformance/conformance/framework/runner"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/clusterrun"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// kindTier is clusters of containers that are made for the run, or one that there is.
type kindTier struct {
	nodeImage string
	workers   int // nodes
	most      int // clusters at a time
	reuse     string
	files     []string
	setUp     string
}

const (
	defaultWorkers = 2
	defaultMost    = 2
	spareNodes     = 3 // for checks that have nodes of their own
)

func (*kindTier) name() string { return "kind" }

func (t *kindTier) register(flags *pflag.FlagSet) {
	flags.StringVar(&t.nodeImage, "node-image", "", "image of the nodes of tier kind, of the Kubernetes version that is wanted (default kind's own)")
	flags.StringArrayVar(&t.files, "kind-cluster", nil, "file that describes a kind cluster (fixtures/kind), instead of --service-cidr and --proxy-mode; repeat it for more")
	flags.IntVar(&t.workers, "workers", defaultWorkers, "number of nodes of a kind cluster beside its control plane")
	flags.IntVar(&t.most, "kind-parallel", defaultMost, "largest number of kind clusters at a time. Fewer are made if the memory would not hold them")
	flags.StringVar(&t.setUp, "kind-setup", "", "shell command that installs what is judged on each kind cluster that is made. {name} and {kubeconfig} are filled in")
	flags.StringVar(&t.reuse, "reuse", "", "judge the kind cluster of this name, and leave it")
}

func (t *kindTier) validate(f *runFlags, chosen bool) error {
	shaped := t.nodeImage != "" || t.workers != defaultWorkers || t.most != defaultMost || len(t.files) > 0
	if !chosen {
		if shaped || t.reuse != "" || t.setUp != "" || f.keep && f.cluster.commands.create == "" {
			return usage("--node-image, --workers, --kind-cluster, --kind-parallel, --kind-setup, --keep and --reuse are for --tier kind; --keep also for --cluster-command")
		}
		return nil
	}
	if err := cmp.Or(f.noPod(), f.noPrinting()); err != nil {
		return err
	}
	switch {
	case f.version != programs.DefaultVersion:
		return usage("--tier kind has the Kubernetes version of its nodes: name an image of it with --node-image")
	case t.most < 1:
		return usage("--kind-parallel %d: at least one cluster is needed", t.most)
	case t.reuse != "" && (shaped || f.keep || f.proxyMode != "" || t.setUp != ""):
		return usage("--reuse takes a cluster as it is: leave out --node-image, --workers, --kind-cluster, --proxy-mode, --kind-parallel, --kind-setup and --keep")
	case t.setUp != "" && runtime.GOOS == "windows":
		return usage("--kind-setup needs /bin/sh, which Windows has not")
	case len(t.files) > 0 && f.proxyMode != "":
		return usage("--proxy-mode: with --kind-cluster the files say it (proxyMode)")
	}
	if err := candidate.CheckProxyMode(f.proxyMode); err != nil {
		return usage("%w", err)
	}
	return nil
}

// run has a process for each cluster judge it.
func (t *kindTier) run(ctx context.Context, r *plan) error {
	if t.reuse != "" {
		if len(r.ServiceCIDRs) > 1 {
			return usage("--reuse judges one cluster, which has one Service range (or two joined by a comma), not %d", len(r.ServiceCIDRs))
		}
		return r.onClusters(ctx, t, t.how(r.runFlags), func(o clusterrun.Options) (*clusterrun.Run, error) {
			return clusterrun.Existing(ctx, o, t.reuse, strings.Join(r.ServiceCIDRs, "")) // asked for if none is named
		})
	}
	clusters, err := t.clusters(r.runFlags)
	if err != nil {
		return err
	}
	for i := range clusters {
		if r.traffic && clusters[i].Workers > 0 && clusters[i].ProxyMode != kindcluster.NoProxy { // spare nodes are for kube-proxy
			clusters[i].Spares = spareNodes
		}
	}
	clusters = r.withChecks(clusters)
	return r.onClusters(ctx, t, t.how(r.runFlags), func(o clusterrun.Options) (*clusterrun.Run, error) { return clusterrun.Kind(o, clusters, t.most) })
}

// withChecks leaves out the clusters that no selected check is left for, and tells of them. The first one stays where none has a check.
func (r *plan) withChecks(all []kindcluster.Options) (some []kindcluster.Options) {
	var ranges, without []string
	for _, c := range all {
		ranges = append(ranges, spec.ServiceCIDRs(c.ServiceCIDRs).String())
	}
	for i, c := range all {
		s := r.Selection
		s.ServiceCIDRs, s.Sharing, s.Elsewhere = ranges[i:i+1], clusterrun.Shares(all, i), slices.Delete(slices.Clone(ranges), i, i+1)
		if i == 0 {
			s.Sharing = clusterrun.Alone(all)
		}
		if runner.Plan(s) > 0 {
			some = append(some, c)
		} else {
			without = append(without, ranges[i])
		}
	}
	if len(some) == 0 {
		some, without = all[:1], without[1:]
	}
	r.count() // is that of the whole run again
	if len(without) > 0 {
		fmt.Fprintf(r.out, "no selected check is for a cluster of Service range %s\n", strings.Join(without, " or "))
	}
	return some
}

// clusters are those that are to be made: one for each file or Service range.
func (t *kindTier) clusters(f *runFlags) (clusters []kindcluster.Options, err error) {
	if len(f.ServiceCIDRs) > 0 && len(t.files) > 0 {
		return nil, usage("--service-cidr: with --kind-cluster the files say it (serviceCIDR)")
	}
	var files []kindcluster.File
	for _, path := range t.files {
		file, err := kindcluster.ReadFile(path)
		if err != nil {
			return nil, usage("--kind-cluster: %w", err)
		}
		files = append(files, file)
	}
	if err := kindcluster.Compatible(files); err != nil {
		return nil, usage("--kind-cluster: %w", err)
	}
	switch {
	case len(files) > 0:
	case len(f.ServiceCIDRs) == 0 && t.workers == defaultWorkers:
		for _, file := range kindcluster.Matrix() {
			file.ProxyMode = f.proxyMode
			files = append(files, file)
		}
	default:
		for _, cidr := range f.rangesForClusters() {
			files = append(files, kindcluster.File{ServiceCIDR: cidr, ProxyMode: f.proxyMode})
		}
	}
	for _, file := range files {
		o := kindcluster.Options{NodeImage: cmp.Or(file.NodeImage, t.nodeImage), ProxyMode: file.ProxyMode, NoNetwork: file.NoNetwork(), SetUp: t.setUp, Workers: ptr.Deref(file.Workers, t.workers), Lasting: f.keep}
		if o.ServiceCIDRs, err = spec.ParseServiceCIDRs(file.ServiceCIDR); err == nil {
			err = o.Validate()
		}
		if err != nil {
			return nil, usage("%w", err)
		}
		clusters = append(clusters, o)
	}
	return clusters, nil
}

// how a cluster is judged. It is there for nobody else while the run lasts, so that all is allowed. If it goes then, nothing in it needs to be removed.
func (t *kindTier) how(f *runFlags) []string {
	flags := []string{"--allow-disruptive"}
	if t.reuse == "" || f.cluster.disposable {
		flags = append(flags, "--disposable")
	}
	if t.reuse == "" && !f.keep {
		flags = append(flags, "--deleted-after")
	}
	if t.setUp != "" {
		flags = append(flags, "--set-up")
	}
	return flags
}
