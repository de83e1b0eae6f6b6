package kindcluster

import (
	"errors"
	"fmt"
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/kind/pkg/apis/config/v1alpha4"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// Options say what a cluster looks like: one control plane and some workers.
type Options struct {
	// Name is a DNS label of at most 50 characters.
	Name string
	// NodeImage is the image of the nodes, which has the version of Kubernetes; empty is that of the kind library.
	NodeImage string
	// ServiceCIDRs are one range, or two of different families with the primary first.
	ServiceCIDRs []netip.Prefix
	// PodCIDRs are those of the pods, in the order of the Service ranges; empty takes kind's own.
	PodCIDRs []netip.Prefix
	// ProxyMode is a mode of kube-proxy (candidate.ProxyModes); empty is the default one, and NoProxy leaves kube-proxy out.
	ProxyMode string
	// NoNetwork leaves kind's own network of pods out.
	NoNetwork bool
	// SetUp is a line of a shell that installs what is judged, once the API server answers and before nodes are ready. It has to bring what is left out.
	// {name} and {kubeconfig} are filled in.
	SetUp string
	// Lasting says that the cluster is to outlive a restart of its nodes. Else etcd keeps its data in memory, where a
	// check that fills a range is not bound by a disk.
	Lasting bool
	// Workers is the number of nodes beside the control plane, which takes their part where there are none.
	Workers int
	// Spares is the number of further workers that are for checks alone (candidate.SpareLabel).
	Spares int
}

// NoProxy is the ProxyMode of a cluster without kube-proxy.
const NoProxy = "none"

// Zones are given to the workers in turn; the control plane is in the first one.
var Zones = []string{"zone-a", "zone-b"}

// kind's own ranges of pods, by family.
var (
	podCIDR4 = netip.MustParsePrefix("10.244.0.0/16")
	podCIDR6 = netip.MustParsePrefix("fd00:10:244::/56")
)

// maxWorkers is how many nodes the smaller range of pods has room for. A /56 holds 256 of the /64 of a node, a /16 as
// many /24.
const maxWorkers = 255

// No check reads statistics of pods, which took a third of the processor time of a cluster with 80 pods. containerd 2.3
// collects them each second; older ones do not know the key, and ignore it. The kubelet asks for them every ten seconds
// to limit local storage.
const (
	fewContainerdStats = `[plugins."io.containerd.cri.v1.runtime"]
  stats_collect_period = "1h"
  stats_retention_period = "2h"
`
	fewKubeletStats = `apiVersion: kubelet.config.k8s.io/v1beta1
kind: KubeletConfiguration
localStorageCapacityIsolation: false
`
)

// etcdInMemory has etcd keep its data in a folder that nodes of kind have in memory.
const etcdInMemory = `kind: ClusterConfiguration
etcd:
  local:
    dataDir: /tmp/etcd
`

// unscheduled keeps pods of the cluster off a spare node. Those of checks are bound to their node.
const unscheduled = `kind: JoinConfiguration
nodeRegistration:
  taints:
  - key: ` + candidate.SpareLabel + `
    effect: NoSchedule
`

func (o *Options) kubeadmPatches() []string {
	if o.Lasting {
		return []string{fewKubeletStats}
	}
	return []string{fewKubeletStats, etcdInMemory}
}

// Validate finds what no cluster can be made with. The errors speak of the flags of `conformance run`.
func (o *Options) Validate() error {
	if len(o.ServiceCIDRs) == 0 {
		return errors.New("a cluster needs a Service range")
	}
	pods := o.podCIDRs()
	for _, s := range o.ServiceCIDRs {
		if s.Addr().BitLen()-s.Bits() < 4 {
			return fmt.Errorf("range %s is too small for a cluster of kind, whose DNS has the tenth address: name a /28 (IPv6: /124) or a larger one", s)
		}
		for _, p := range pods {
			if p.Overlaps(s) {
				return fmt.Errorf("range %s overlaps that of the pods, %s: name another", s, p)
			}
		}
	}
	if (o.ProxyMode == NoProxy || o.NoNetwork) && o.SetUp == "" {
		return errors.New("a cluster without kube-proxy or kind's network gets neither by itself: name by --kind-setup what installs another one")
	}
	if o.Workers < 0 || o.Workers > maxWorkers {
		return fmt.Errorf("--workers %d: there can be 0 to %d", o.Workers, maxWorkers)
	}
	return nil
}

func (o *Options) podCIDRs() []netip.Prefix {
	if len(o.PodCIDRs) > 0 {
		return o.PodCIDRs
	}
	var pods []netip.Prefix
	for _, s := range o.ServiceCIDRs { // in the same order: the first family is the primary one of pods too
		if s.Addr().Is4() {
			pods = append(pods, podCIDR4)
		} else {
			pods = append(pods, podCIDR6)
		}
	}
	return pods
}

// config is the cluster in kind's form.
func (o *Options) config() ([]byte, error) {
	family := v1alpha4.IPv4Family
	switch {
	case len(o.ServiceCIDRs) == 2:
		family = v1alpha4.DualStackFamily
	case !o.ServiceCIDRs[0].Addr().Is4():
		family = v1alpha4.IPv6Family
	}
	c := v1alpha4.Cluster{
		TypeMeta: v1alpha4.TypeMeta{Kind: "Cluster", APIVersion: "kind.x-k8s.io/v1alpha4"},
		Name:     o.Name,
		Networking: v1alpha4.Networking{
			IPFamily: family, ServiceSubnet: spec.ServiceCIDRs(o.ServiceCIDRs).String(), PodSubnet: spec.ServiceCIDRs(o.podCIDRs()).String(), KubeProxyMode: v1alpha4.ProxyMode(o.ProxyMode), DisableDefaultCNI: o.NoNetwork,
			// kind listens on [::1] for IPv6 clusters, which a machine need not have.
			APIServerAddress: "127.0.0.1",
		},
		KubeadmConfigPatches:    o.kubeadmPatches(),
		ContainerdConfigPatches: []string{fewContainerdStats},
		Nodes:                   []v1alpha4.Node{o.node(v1alpha4.ControlPlaneRole, 0)},
	}
	for i := range o.Workers {
		c.Nodes = append(c.Nodes, o.node(v1alpha4.WorkerRole, i))
	}
	for i := range o.Spares {
		n := o.node(v1alpha4.WorkerRole, i)
		n.Labels[candidate.SpareLabel] = "true"
		n.KubeadmConfigPatches = []string{unscheduled}
		c.Nodes = append(c.Nodes, n)
	}
	return yaml.Marshal(c)
}

func (o *Options) node(role v1alpha4.NodeRole, i int) v1alpha4.Node {
	return v1alpha4.Node{Role: role, Image: o.NodeImage, Labels: map[string]string{corev1.LabelTopologyZone: Zones[i%len(Zones)]}}
}
