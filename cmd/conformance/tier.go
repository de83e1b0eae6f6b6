package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/lab"
	"github.com/service-conformance/conformance/framework/lab/network"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// tierFlags choose and configure what is under test.
type tierFlags struct {
	tier       string
	faults     []string
	without    []string
	version    string
	binDir     string
	kubeconfig string
	agentImage string
	outside    string // file
	disruptive bool
	disposable bool   // nothing needs to be removed at the end: the cluster goes with the run
	tierName   string // in reports; set by tier kind for the process that judges
	around     string // surroundings of the lab
	attach     string // name of a lab that is up
	proxy      lab.ProxyOptions
	servers    lab.ServerOptions
	kind       kindFlags
	commands   clusterCommands
}

func (f *tierFlags) register(flags *pflag.FlagSet) {
	flags.StringVar(&f.tier, "tier", "reference", "where the candidate runs: reference (in this process), lab (real kube-apiserver and etcd), kind (clusters of containers) or cluster (any kubeconfig)")
	flags.StringSliceVar(&f.faults, "fault", nil, "deliberate bugs to start the reference with")
	flags.StringSliceVar(&f.without, "without", nil, "optional features that the reference is started without and does not claim, unless --feature names them; \"proxy:NAME\" takes one from the proxy alone")
	flags.StringVar(&f.version, "kubernetes-version", lab.DefaultVersion, "Kubernetes version of the lab, or whose rules the reference follows")
	flags.StringVar(&f.binDir, "kubernetes-bin-dir", "", "folder with kube-apiserver and etcd for the lab (default: fetched by conformance lab fetch, or built from Go modules, once)")
	registerProxy(flags, &f.proxy)
	registerServers(flags, &f.servers)
	flags.StringVar(&f.around, "surroundings", "", "what the network around the lab does with unused addresses: unreachable, silent, resetting or accepting (default unreachable). Verdicts must not depend on it")
	flags.StringVar(&f.attach, "attach", "", "judge the lab of this name that is up (conformance lab up), for --tier lab; --attach alone means the one without a name")
	flags.Lookup("attach").NoOptDefVal = lab.DefaultName
	flags.StringVar(&f.kubeconfig, "kubeconfig", "", "kubeconfig of the cluster (default in a pod: its service account)")
	flags.StringVar(&f.agentImage, "agent-image", "", "image of the pods that checks of traffic start in a cluster, as its nodes can pull it or have it")
	flags.StringVar(&f.outside, "outside", "", "file that tells where an agent outside of the cluster is, for --tier cluster: its url, token and gateways")
	flags.BoolVar(&f.disruptive, "allow-disruptive", false, "let checks on tier cluster do what others could feel: have the cluster make load balancers")
	flags.StringVar(&f.tierName, "tier-name", "", "name of the tier in reports")
	_ = flags.MarkHidden("tier-name")
	flags.BoolVar(&f.disposable, "disposable", false, "leave what the run has made: the cluster is deleted after it")
	_ = flags.MarkHidden("disposable")
	f.kind.register(flags)
	f.commands.register(flags)
}

func (f *tierFlags) validate() error {
	switch f.tier {
	case "reference", "lab", "kind", "cluster":
	default:
		return usage("unknown tier %q; there are reference, lab, kind and cluster", f.tier)
	}
	if _, err := fault.Parse(f.faults...); err != nil {
		return usage("%w", err)
	}
	if _, err := absent.Parse(f.without...); err != nil {
		return usage("--without: %w", err)
	}
	if err := lab.CheckName(f.attach); err != nil {
		return usage("--attach: %w", err)
	}
	if _, err := network.ParseSurroundings(f.around); err != nil {
		return usage("--surroundings: %w", err)
	}
	switch {
	case len(f.without) > 0 && f.tier != "reference":
		return usage("--without is for --tier reference: with --feature, name the features that others claim")
	case len(f.faults) > 0 && f.tier != "reference":
		return usage("--fault is for --tier reference: a real API server has only its own bugs")
	case f.around != "" && f.tier != "lab":
		return usage("--surroundings is for --tier lab")
	case f.attach != "" && f.tier != "lab":
		return usage("--attach is for --tier lab")
	case f.attach != "" && (f.around != "" || f.binDir != "" || f.version != lab.DefaultVersion || f.proxy != (lab.ProxyOptions{}) || !reflect.ValueOf(f.servers).IsZero()):
		return usage("--attach judges a lab as it was started: give conformance lab up the flags that choose its programs")
	case f.binDir != "" && f.tier != "lab":
		return usage("--kubernetes-bin-dir is for --tier lab")
	case f.version != lab.DefaultVersion && f.tier == "kind":
		return usage("--tier kind has the Kubernetes version of its nodes: name an image of it with --node-image")
	case f.proxy.Mode != "" && f.tier != "lab" && f.tier != "kind":
		return usage("--proxy-mode is for --tier lab and --tier kind")
	case f.proxy.Command != "" && f.tier != "lab":
		return usage("--proxy-command is for --tier lab")
	case f.tier != "lab" && (f.proxy.Setup != "" || f.proxy.Teardown != ""):
		return usage("--node-setup and --node-teardown are for --tier lab")
	case f.tier != "lab" && (f.proxy.PodSetup != "" || f.proxy.PodTeardown != ""):
		return usage("--pod-setup and --pod-teardown are for --tier lab")
	case f.tier != "lab" && (f.servers.EtcdCommand != "" || f.servers.APIServerCommand != "" || len(f.servers.APIServerFlags) > 0):
		return usage("--etcd-command, --kube-apiserver-command and --kube-apiserver-flag are for --tier lab")
	case f.agentImage != "" && f.tier != "cluster" && f.tier != "kind":
		return usage("--agent-image is for --tier cluster and --tier kind")
	case f.disruptive && f.tier != "cluster":
		return usage("--allow-disruptive is for --tier cluster; on the others nobody could feel anything")
	case f.outside != "" && (f.tier != "cluster" || f.agentImage == ""):
		return usage("--outside is for --tier cluster with an --agent-image")
	case f.kubeconfig != "" && f.tier != "cluster":
		return usage("--kubeconfig is for --tier cluster")
	case f.kubeconfig == "" && f.tier == "cluster" && !f.makesClusters() && !inPod():
		return usage("--tier cluster needs --kubeconfig, or --cluster-command, unless it runs in a pod of the cluster")
	}
	if err := f.kind.validate(f.tier, f.proxy.Mode, f.byCommand()); err != nil {
		return err
	}
	if err := f.validateClusterCommands(); err != nil {
		return err
	}
	if err := validateServers(f.servers); err != nil {
		return err
	}
	return validateProxy(f.proxy)
}

// inPod reports whether there may be a service account that leads to a cluster.
func inPod() bool { return os.Getenv("KUBERNETES_SERVICE_HOST") != "" }

// registerProxy adds the flags that choose what runs on the nodes of the lab.
func registerProxy(flags *pflag.FlagSet, o *lab.ProxyOptions) {
	flags.StringVar(&o.Mode, "proxy-mode", "", "mode of kube-proxy: iptables, nftables or ipvs (default iptables)")
	flags.StringVar(&o.Command, "proxy-command", "", "shell command that runs on each node of the lab instead of kube-proxy. {kubeconfig}, {node}, {pod-cidr} and {cgroup} (a folder, or empty) are filled in")
	flags.StringVar(&o.Ready, "proxy-ready", "", "command that succeeds on a node of the lab once the proxy of --proxy-command serves there; checks begin then; placeholders as above")
	flags.StringVar(&o.Setup, "node-setup", "", "command to run on each node of the lab before its proxy starts; placeholders as above")
	flags.StringVar(&o.Teardown, "node-teardown", "", "command to run on each node of the lab after its proxy was stopped, if the one before succeeded; placeholders as above")
	flags.StringVar(&o.PodSetup, "pod-setup", "", "command to run on its node for each pod of the lab before its first use, as a CNI plugin is called. {pod-interface} is the node's end of the cable")
	flags.StringVar(&o.PodTeardown, "pod-teardown", "", "command to run on its node for each pod of the lab before the pod goes; placeholders as for --pod-setup")
}

// registerServers adds the flags that replace what the lab stores in and serves the API with.
func registerServers(flags *pflag.FlagSet, o *lab.ServerOptions) {
	flags.StringVar(&o.EtcdCommand, "etcd-command", "", "shell command that runs in the lab instead of etcd. {endpoint} (the URL to listen on) and {data} (a folder) are filled in")
	flags.StringVar(&o.APIServerCommand, "kube-apiserver-command", "", "shell command that runs in the lab instead of kube-apiserver. It is given the flags of kube-apiserver and must answer --version")
	flags.StringArrayVar(&o.APIServerFlags, "kube-apiserver-flag", nil, "further flag of the lab's API servers, such as --kube-apiserver-flag=--enable-admission-plugins=DenyServiceExternalIPs; may be repeated")
}

func validateServers(o lab.ServerOptions) error {
	for _, f := range o.APIServerFlags {
		if !strings.HasPrefix(f, "--") {
			return usage("--kube-apiserver-flag %q: write the flag as kube-apiserver takes it, with its dashes: --kube-apiserver-flag=--NAME=VALUE", f)
		}
	}
	return nil
}

func validateProxy(o lab.ProxyOptions) error {
	switch {
	case o.Mode != "" && o.Command != "":
		return usage("--proxy-mode is a mode of kube-proxy, which --proxy-command replaces: name one of them")
	case o.Ready != "" && o.Command == "":
		return usage("--proxy-ready is for the program of --proxy-command: when kube-proxy is ready is known")
	case o.Teardown != "" && o.Setup == "":
		return usage("--node-teardown undoes what --node-setup has done: name both")
	case o.PodSetup != "" && o.Command == "":
		return usage("--pod-setup is for the program of --proxy-command: kube-proxy needs to know of no pod")
	case o.PodTeardown != "" && o.PodSetup == "":
		return usage("--pod-teardown undoes what --pod-setup has done: name both")
	}
	if err := candidate.CheckProxyMode(o.Mode); err != nil {
		return usage("%w", err)
	}
	return nil
}

// open makes the candidate. Its errors carry their exit code.
func (f *tierFlags) open(ctx context.Context, out io.Writer, serviceCIDRs []string, seed uint64, traffic bool, shard candidate.Shard) (candidate.Candidate, error) {
	switch f.tier {
	case "lab":
		if f.attach != "" {
			return attachLab(ctx)
		}
		return openLab(ctx, out, f.labOptions(traffic))
	case "cluster":
		o := cluster.Options{Kubeconfig: f.kubeconfig, AgentImage: f.agentImage, AllowDisruptive: f.disruptive, Tier: f.tierName, Shard: shard, Fenced: f.tierName == "kind"}
		if f.outside != "" {
			var err error
			if o.Outside, err = cluster.ReadOutside(f.outside); err != nil {
				return nil, usage("%w", err)
			}
		}
		return openCluster(ctx, out, o, serviceCIDRs, traffic)
	}
	faults, err := fault.Parse(f.faults...)
	if err != nil {
		return nil, usage("%w", err)
	}
	lacks, err := absent.Parse(f.without...)
	if err != nil {
		return nil, usage("--without: %w", err)
	}
	c, err := reference.New(reference.Options{Faults: faults, Absent: lacks, Seed: seed, Version: f.version})
	if err != nil {
		return nil, usage("start the reference: %w", err)
	}
	return c, nil
}

// labOptions are those of a lab, with nodes or without.
func (f *tierFlags) labOptions(traffic bool) lab.Options {
	o := lab.Options{Version: f.version, BinDir: f.binDir, DataPlane: traffic, Proxy: f.proxy, Servers: f.servers, Surroundings: f.around}
	if (f.binDir != "" || f.servers.APIServerCommand != "") && f.version == lab.DefaultVersion {
		o.Version = "" // whatever the folder holds
	}
	return o
}

func openCluster(ctx context.Context, out io.Writer, o cluster.Options, serviceCIDRs []string, traffic bool) (candidate.Candidate, error) {
	if len(serviceCIDRs) > 1 {
		return nil, usage("a cluster has one Service range (or two joined by a comma), not %d", len(serviceCIDRs))
	}
	for _, entry := range serviceCIDRs {
		ranges, err := parseServiceCIDR(entry)
		if err != nil {
			return nil, usage("--service-cidr %s: %w", entry, err)
		}
		o.ServiceCIDRs = ranges
	}
	c, err := cluster.Open(ctx, o)
	if err != nil {
		if e := interrupted(ctx, err); e != nil {
			return nil, e
		}
		return nil, usage("%w", err)
	}
	if o.Tier == "" { // a cluster that was made for the run has nothing of others
		fmt.Fprint(out, c.Plan(traffic))
		sweep(ctx, out, o.Kubeconfig)
	}
	return c, nil
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

// removeRun removes from a cluster what the checks of an interrupted run had no time to remove.
func (f *tierFlags) removeRun(id string) {
	if f.tier != "cluster" || f.disposable {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), removeWithin)
	defer cancel()
	client, err := cluster.Connect(f.kubeconfig)
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

func interrupted(ctx context.Context, err error) error {
	if ctx.Err() != nil || errors.Is(err, context.Canceled) || errors.Is(err, errInterrupted) {
		return &exitError{code: 2, err: errors.New("interrupted")}
	}
	return nil
}
