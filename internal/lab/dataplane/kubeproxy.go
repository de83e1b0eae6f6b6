package dataplane

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/ownproxy"
)

// ProxyOptions say which service proxy the nodes of a lab run.
type ProxyOptions struct {
	// Mode of kube-proxy (candidate.ProxyModes); empty is the default one.
	Mode string
	// Configuration is a part of a KubeProxyConfiguration (candidate.KubeProxyChanges), in YAML: it changes that of every kube-proxy of the lab. A check that
	// configures a proxy of its own changes it further.
	Configuration string
	// Command, if set, runs instead of kube-proxy in the network namespace of each node, by a shell. {kubeconfig} and
	// {node} in it stand for the path of a kubeconfig and the name of the node. {pod-cidr} stands for the ranges of all
	// pods, joined by a comma. {cgroup} stands for the folder of the cgroup (version 2) that the processes and sockets
	// of the node and its pods are in; it is empty where a node can have none.
	Command string
	// Ready, if set, is run in the network namespace of a node, again and again, until it succeeds: the proxy of Command serves then. The
	// placeholders of this and of the following are those of Command.
	Ready string
	// UsesIPVS is whether Command needs IPVS in the kernel, as mode ipvs of kube-proxy does.
	UsesIPVS bool
	// Setup, if set, is run in the network namespace of each node before its proxy starts, Teardown after it was stopped.
	Setup, Teardown string
	// PodSetup, if set, is run in the network namespace of a node for each pod, as a CNI plugin is called. It runs once
	// the pod's network stands and before anything is sent; PodTeardown runs before its network goes. {pod-interface}
	// is the name of the node's end of the cable to the pod, {pod-namespace} and {pod-name} are those of the Pod object,
	// which comes after that.
	PodSetup, PodTeardown string
	// PodInterfaces is what the names of such ends begin with, for a program that knows pods by them (podInterfaces). Empty is "pod".
	PodInterfaces string
}

// podInterfaces are the prefixes that leave room for a number of three digits in the name of an interface, which has 15 characters at most.
var podInterfaces = regexp.MustCompile(`^[a-z][a-z0-9_-]{0,11}$`)

// CheckPodInterfaces says what is wrong with PodInterfaces.
func (o ProxyOptions) CheckPodInterfaces() error {
	if o.PodInterfaces != "" && (!podInterfaces.MatchString(o.PodInterfaces) || o.PodInterfaces == "eth") {
		return fmt.Errorf("%q is no prefix for the interfaces of pods: it has 1 to 12 small letters, digits, - or _, begins with a letter, and is not eth, which the uplinks of nodes have", o.PodInterfaces)
	}
	return nil
}

// NeedsGuest reports whether such proxies cannot run on this machine's kernel.
func (o ProxyOptions) NeedsGuest() bool {
	return isolation.NeedsGuest(o.UsesIPVS || o.Mode == candidate.IPVS)
}

// proxyPrograms are the programs that kube-proxy calls in each of candidate.ProxyModes, and the Debian package that has
// them. Those that it needs in any case are not among them.
var proxyPrograms = map[string]map[string]string{
	candidate.IPTables: {"iptables": "iptables", "iptables-restore": "iptables", "ip6tables": "iptables"},
	candidate.NFTables: {"nft": "nftables"},
	candidate.IPVS:     {"iptables": "iptables", "iptables-restore": "iptables", "ipset": "ipset", "ipvsadm": "ipvsadm"},
}

// CheckPrograms finds what kube-proxy needs of the machine.
func CheckPrograms(o ProxyOptions) error {
	if o.Command != "" {
		return nil
	}
	needed := proxyPrograms[o.Mode]
	for _, program := range slices.Sorted(maps.Keys(needed)) {
		if !process.OnSystemPath(program) {
			return fmt.Errorf("kube-proxy in %s mode calls the program %s, which this machine does not have: install it (Debian: apt-get install %s)", o.Mode, program, needed[program])
		}
	}
	return nil
}

// The minSyncPeriod of nodes. It is short, because a check waits for each change. It is long enough to leave time to
// other nodes while hundreds of Services change. A proxy follows what all checks change: on a node of a check's own,
// where that serves one, less often. In a guest a sync of ipvs mode, which runs a program for each change of an address
// set, takes seconds.
const (
	sharedSyncPeriod = "500ms"
	ownSyncPeriod    = "1s"
	guestSyncPeriod  = "8s"
)

// SharedProxy is the configuration of the proxies that all checks share.
func SharedProxy() candidate.ProxyConfiguration {
	if isolation.InGuest() {
		return candidate.ProxyConfiguration{MinSyncPeriod: guestSyncPeriod}
	}
	return candidate.ProxyConfiguration{MinSyncPeriod: sharedSyncPeriod}
}

// kubeProxyConfiguration is the configuration file of kube-proxy on a node.
func kubeProxyConfiguration(node, kubeconfig string, o ProxyOptions, pods []netip.Prefix, p candidate.ProxyConfiguration) ([]byte, error) {
	var ranges []string
	for _, r := range pods {
		ranges = append(ranges, r.String())
	}
	config := map[string]any{
		"apiVersion":         "kubeproxy.config.k8s.io/v1alpha1",
		"kind":               "KubeProxyConfiguration",
		"hostnameOverride":   node,
		"clientConnection":   map[string]any{"kubeconfig": kubeconfig, "qps": 200, "burst": 400},
		"clusterCIDR":        strings.Join(ranges, ","),
		"detectLocalMode":    "ClusterCIDR",
		"conntrack":          map[string]any{"maxPerCore": 0, "min": 0}, // the limit is that of the whole machine
		"metricsBindAddress": fmt.Sprintf("127.0.0.1:%d", candidate.ProxyMetricsPort),
		"healthzBindAddress": fmt.Sprintf("0.0.0.0:%d", candidate.ProxyHealthPort),
	}
	if o.Configuration != "" {
		changes, err := candidate.KubeProxyChanges(o.Configuration)
		if err != nil {
			return nil, err
		}
		merge(config, changes)
	}
	period := ownSyncPeriod
	if isolation.InGuest() && p.SyncPeriod == "" { // kube-proxy refuses one that is longer than the other
		period = guestSyncPeriod
	}
	ownproxy.Configure(config, o.Mode, period, p)
	return yaml.Marshal(config)
}

// merge changes a mapping, and those in it.
func merge(into, changes map[string]any) {
	for name, value := range changes {
		section, deep := value.(map[string]any)
		if own, has := into[name].(map[string]any); deep && has {
			merge(own, section)
			continue
		}
		into[name] = value
	}
}

// proxyCommand fills the placeholders of a command.
func proxyCommand(command, node, kubeconfig, cgroup string, pods []netip.Prefix) string {
	var ranges []string
	for _, r := range pods {
		ranges = append(ranges, r.String())
	}
	return process.Fill(command, "{kubeconfig}", kubeconfig, "{node}", node, "{pod-cidr}", strings.Join(ranges, ","), "{cgroup}", cgroup)
}

// NodesWork returns nil if this machine lets this user have nodes with such proxies, else why it does not.
func NodesWork(o ProxyOptions) error {
	o.Mode = cmp.Or(o.Mode, candidate.DefaultProxyMode)
	if !o.NeedsGuest() {
		if err := isolation.Works(); err != nil {
			return err
		}
	}
	return CheckPrograms(o)
}

// IPVSWorks reports whether the kernel has IPVS, and this machine the programs that kube-proxy calls in ipvs mode.
func IPVSWorks() bool {
	return isolation.KernelHasIPVS() && CheckPrograms(ProxyOptions{Mode: candidate.IPVS}) == nil
}
