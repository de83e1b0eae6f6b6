// Package cluster is the tier for any cluster that a kubeconfig reaches. It offers its one, shared Service range: checks that
// fill a range, need one of their own or change ServiceCIDR objects are judged only where nobody else uses the cluster, or where servers can be started beside its own. Backends and clients are pods of the agent.
package cluster

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	mathrand "math/rand/v2"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/framework/spec"
)

// Options configure the tier.
type Options struct {
	// Kubeconfig is the path of the file; its current context is used. Without one the service account of the pod is, which the program then runs in.
	Kubeconfig string
	// ServiceCIDRs are the cluster's ranges, for clusters that do not tell.
	ServiceCIDRs []netip.Prefix
	// AgentImage is the image of the pods that checks of traffic start (conformance image); empty is a cluster without a data plane.
	AgentImage string
	// Outside is an agent outside of the cluster; nil is a cluster without clients there.
	Outside *Outside
	// AllowDisruptive lets checks do what others who use the cluster could feel.
	AllowDisruptive bool
	// Tier is the name of the tier in reports; empty is "cluster".
	Tier string
	// Shard is which of several shards the run is, which may be at work on the cluster at the same time.
	Shard candidate.Shard
	// Disposable says that nobody else uses the cluster: a check may have its ranges for itself, and fill them.
	Disposable bool
	// NoLoadBalancers says that nothing makes load balancers in the cluster: it was made for the run, of parts that do not.
	NoLoadBalancers bool
	// Servers start API servers for checks that need ranges, or a server, of their own; nil where nothing does.
	Servers Servers
	// Proxies stop the service proxies of nodes, where nobody else uses the cluster; nil where nothing does.
	Proxies Proxies
	// Controllers stop the controllers, where nobody else uses the cluster; nil where nothing does.
	Controllers Controllers
	// Spares are nodes that are lent to checks, each with a kube-proxy of the check's own; nil where there are none.
	Spares SpareNodes
	// Links make the links of pods narrow, and that of one client outside is (candidate.NarrowAddress); nil where nothing does.
	Links Links
	// Fenced says that the nodes answer for addresses that nobody has, and have the witnesses, see kindcluster.Fence.
	Fenced bool
}

// Servers start API servers of the cluster's kind beside its own, for checks that need ranges, or a server, of their own.
type Servers interface {
	// Capabilities are what a cluster can be asked for with them.
	Capabilities() []spec.Capability
	// ControlPlane leases a server with the ranges of a request. The errors are those of candidate.Candidate.
	ControlPlane(ctx context.Context, request candidate.Request) (candidate.ControlPlane, error)
	// Close ends all servers.
	Close(ctx context.Context) error
}

// Cluster implements candidate.Candidate.
type Cluster struct {
	options     Options
	access      candidate.Access
	client      apiclient.Interface
	cidrs       []netip.Prefix
	nodePorts   spec.PortRange
	nodes       []candidate.Node // that are ready and schedulable
	otherProxy  string           // why kube-proxy, which is configured, is not taken for the service proxy
	description candidate.Description

	runID, token string
	leases       atomic.Int64
	turn         turn
	hostPort     atomic.Int64 // counts the ports of agents in host networks
	external     candidate.ExternalAddresses
	hosts        hosts
	backends     backends
	spares       *spares // nil where there are none
}

// patience is more than that of a lab: the nodes have other work, and containers take their time.
const patience = 2

// reachTimeout bounds the first contact with the server.
const reachTimeout = 10 * time.Second

// Open reads the kubeconfig and asks the server for its version, Service ranges and node ports. Nothing is created.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	config, err := load(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = reachTimeout
	client, err := apiclient.New(config)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", source(o.Kubeconfig), err)
	}
	server, err := versionOf(ctx, client)
	if err != nil {
		return nil, fmt.Errorf("no Kubernetes API server answers at %s (%s): %w", config.Host, source(o.Kubeconfig), err)
	}
	access, err := accessOf(o.Kubeconfig, config)
	if err != nil {
		return nil, err
	}
	c := &Cluster{
		options: o, access: access, cidrs: o.ServiceCIDRs,
		runID: strings.ToLower(rand.Text()[:6]), token: rand.Text(),
	}
	c.hostPort.Store(int64(mathrand.IntN(hostPorts))) // another run may be at work on the same nodes
	c.external.Among(o.Shard)
	c.description = candidate.Description{
		Implementation: "kubernetes", Version: server.GitVersion, Tier: cmp.Or(o.Tier, "cluster"), Careful: !o.AllowDisruptive, Admission: &candidate.Admission{}, Patience: patience, Components: map[string]string{"go": server.GoVersion},
	}
	if err := c.discoverRanges(ctx, client); err != nil {
		return nil, err
	}
	if c.nodePorts, err = refusedNodePorts(ctx, client); err != nil {
		return nil, err
	}
	stack := spec.SingleStack
	if len(c.cidrs) == 2 {
		stack = spec.DualStack
	}
	c.description.Capabilities = append(c.description.Capabilities, stack)
	c.describeOwn()
	unhurried := rest.CopyConfig(config)
	unhurried.Timeout, unhurried.QPS, unhurried.UserAgent = 0, -1, "conformance"
	if c.client, err = apiclient.New(unhurried); err != nil {
		return nil, fmt.Errorf("%s: %w", source(o.Kubeconfig), err)
	}
	if o.Disposable {
		if err := c.putBack(ctx); err != nil {
			return nil, err
		}
	}
	if o.AgentImage != "" {
		if err := c.discoverDataPlane(ctx); err != nil {
			return nil, err
		}
	}
	return c, nil
}

// versionOf asks the API server for its version.
func versionOf(ctx context.Context, client apiclient.Interface) (told version.Info, err error) {
	response, err := client.CoreV1().RESTClient().Get().AbsPath("/version").Do(ctx).Raw()
	if err != nil {
		return told, err
	}
	if err := json.Unmarshal(response, &told); err != nil {
		return told, fmt.Errorf("read its version: %w", err)
	}
	return told, nil
}

// discoverDataPlane finds the nodes, and what can be seen of the service proxy.
func (c *Cluster) discoverDataPlane(ctx context.Context) error {
	list, err := c.client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("list the nodes: %w", err)
	}
	c.nodes = nodesOf(list)
	if c.options.Spares != nil {
		c.spares = newSpares(c, list, c.options.Spares)
	}
	if c.withoutDataPlane() != nil {
		return nil //nolint:nilerr // a cluster without one is judged all the same
	}
	c.description.Witnesses = c.options.Fenced
	if !c.options.Fenced { // somebody else's network is around it
		c.description.Nobody = nobodyIn(list)
	}
	c.description.Capabilities = append(c.description.Capabilities, spec.DataPlane, spec.EndpointControllers, spec.Kubelet)
	if c.options.Controllers != nil {
		c.description.Capabilities = append(c.description.Capabilities, spec.RestartControllers)
	}
	if c.options.Outside != nil {
		c.description.Capabilities = append(c.description.Capabilities, spec.LoadBalancer, spec.OutsideBackends)
		if c.options.Links != nil {
			c.description.Capabilities = append(c.description.Capabilities, spec.NarrowLinks)
		}
	}
	_, err = c.client.CoreV1().Services(metav1.NamespaceSystem).Get(ctx, "kube-dns", metav1.GetOptions{})
	if err != nil && !refused(err) {
		return fmt.Errorf("look for the Service kube-dns: %w", err)
	}
	if err == nil {
		c.description.Capabilities = append(c.description.Capabilities, spec.ClusterDNS)
	}
	visible, err := c.proxyCapabilities(ctx)
	c.description.Capabilities = append(c.description.Capabilities, visible...)
	if c.options.NoLoadBalancers {
		if c.description.Declarations == nil {
			c.description.Declarations = map[spec.Declarable]string{}
		}
		c.description.Declarations[spec.LoadBalancers] = "none"
	}
	return err
}

// proxyCapabilities reads the configuration of kube-proxy where kubeadm puts it, and looks whether kube-proxy runs. A cluster that does not show both is judged
// by what all proxies have in common.
func (c *Cluster) proxyCapabilities(ctx context.Context) ([]spec.Capability, error) {
	stored, err := c.client.CoreV1().ConfigMaps(metav1.NamespaceSystem).Get(ctx, "kube-proxy", metav1.GetOptions{})
	if err != nil {
		if refused(err) {
			return nil, nil
		}
		return nil, fmt.Errorf("read the configuration of kube-proxy: %w", err)
	}
	configuration, err := candidate.ParseKubeProxyConfiguration(stored.Data["config.conf"])
	if err != nil {
		return nil, nil //nolint:nilerr // then the proxy is judged by what all proxies have in common
	}
	name := cmp.Or(configuration.Mode, candidate.DefaultProxyMode)
	mode := candidate.ProxyModeCapability(name)
	if mode == "" {
		return nil, nil
	}
	if c.otherProxy, err = c.runsKubeProxy(ctx); err != nil || c.otherProxy != "" {
		return nil, err
	}
	c.description.ProxyMode = name
	c.description.DataPlane.Name = "kube-proxy" // of which version is not known: another than that of the API server may run
	c.description.Declarations = configuration.Declarations(name)
	visible := []spec.Capability{spec.KubeProxy, mode}
	if a := configuration.MetricsBindAddress; a == "" || strings.HasSuffix(a, fmt.Sprintf(":%d", candidate.ProxyMetricsPort)) {
		visible = append(visible, spec.ProxyMetrics)
	}
	if c.spares != nil {
		visible = append(visible, spec.OwnNodes, spec.ProxyConfiguration)
		if c.options.Spares.IPVS() && mode != spec.IPVS { // a check can add a node of that mode
			visible = append(visible, spec.IPVS)
		}
	}
	return visible, nil
}

// load reads the kubeconfig. Without one it takes the service account of the pod.
func load(path string) (*rest.Config, error) {
	if path == "" {
		return loadServiceAccount()
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read kubeconfig: %w", err)
	}
	if len(data) == 0 {
		return nil, fmt.Errorf("kubeconfig %s is empty", path)
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return config, nil
}

// ServiceCIDRs are the Service ranges that were named or found, that of the primary family first.
func (c *Cluster) ServiceCIDRs() []netip.Prefix { return slices.Clone(c.cidrs) }

// Describe implements candidate.Candidate.
func (c *Cluster) Describe() candidate.Description { return c.description }

// Close implements candidate.Candidate: it removes the agents that leases shared, and ends the servers of checks.
func (c *Cluster) Close(ctx context.Context) error {
	err := errors.Join(c.removeBackends(ctx), c.removeHosts(ctx))
	if c.options.Servers != nil {
		err = errors.Join(err, c.options.Servers.Close(ctx))
	}
	return err
}

// ControlPlane implements candidate.Candidate: the range that all share, to which a check may have the right alone on a cluster that nobody else uses. What has other
// ranges, or a server that may end, is one of the Servers.
func (c *Cluster) ControlPlane(ctx context.Context, request candidate.Request) (candidate.ControlPlane, error) {
	ranges := (len(request.ServiceCIDRs) == 0 || slices.Equal(request.ServiceCIDRs, c.cidrs)) && (!request.DualStack || len(c.cidrs) == 2) && (!request.SingleStack || len(request.ServiceCIDRs) > 0 || len(c.cidrs) == 1)
	ports := request.NodePorts == "" || request.NodePorts == c.nodePorts.String()
	switch {
	case ranges && ports && !request.OwnServer && !request.Exclusive:
		return c.share(ctx)
	case ranges && ports && !request.OwnServer && c.options.Disposable:
		return c.whole(ctx)
	case c.options.Servers != nil:
		return c.options.Servers.ControlPlane(ctx, request)
	case request.OwnServer:
		return nil, candidate.UnavailableHere("--tier lab or kind", "the API server is not one that a check may end or start")
	case !ranges && len(request.ServiceCIDRs) > 0:
		return nil, candidate.UnavailableHere("--tier lab or kind, or a cluster of the range "+spec.ServiceCIDRs(request.ServiceCIDRs).String(), "the cluster's Service range is %s", spec.ServiceCIDRs(c.cidrs))
	case !ranges && request.SingleStack:
		return nil, candidate.UnavailableHere("a cluster of one family, such as --service-cidr 10.96.0.0/16", "the cluster is dual-stack")
	case !ranges:
		return nil, candidate.UnavailableHere("a cluster of both families, such as --service-cidr 10.96.0.0/16,fd00:10:96::/112", "the cluster is single-stack")
	case !ports:
		return nil, candidate.UnavailableHere("--tier lab or kind", "the node-port range of the cluster is %s", c.nodePorts)
	}
	return nil, candidate.UnavailableHere("--disposable for a test cluster", "a cluster in use has no range that a check may have for itself")
}

// controlPlane is a lease of the cluster's own.
type controlPlane struct {
	cluster *Cluster
	release func()
}

func (cp *controlPlane) Access() candidate.Access     { return cp.cluster.access }
func (cp *controlPlane) ServiceCIDRs() []netip.Prefix { return cp.cluster.cidrs }

func (cp *controlPlane) NodePorts() (first, last int) {
	return cp.cluster.nodePorts.First, cp.cluster.nodePorts.Last
}
func (cp *controlPlane) Release() {
	if cp.release != nil {
		cp.release()
	}
}
