// Package cluster is the tier for any API server that a kubeconfig reaches. It offers its one, shared Service range: checks that
// fill a range, need one of their own or change ServiceCIDR objects do not apply there.
package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// Options configure the tier.
type Options struct {
	// Kubeconfig is the path of the file; its current context is used.
	Kubeconfig string
	// ServiceCIDRs are the cluster's ranges, for clusters that do not tell (before Kubernetes 1.33).
	ServiceCIDRs []netip.Prefix
}

// Cluster implements candidate.Candidate.
type Cluster struct {
	access      candidate.Access
	cidrs       []netip.Prefix
	description candidate.Description
}

// ErrNoServiceCIDR says that the cluster does not tell its Service ranges.
var ErrNoServiceCIDR = errors.New("the cluster does not tell its Service range (it has no ServiceCIDR objects): name it with --service-cidr")

// reachTimeout bounds the first contact with the server.
const reachTimeout = 10 * time.Second

// Open reads the kubeconfig and asks the server for its version and Service ranges. Nothing is created.
func Open(ctx context.Context, o Options) (*Cluster, error) {
	config, err := load(o.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config.Timeout = reachTimeout
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("kubeconfig %s: %w", o.Kubeconfig, err)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		return nil, fmt.Errorf("no Kubernetes API server answers at %s (kubeconfig %s): %w", config.Host, o.Kubeconfig, err)
	}
	c := &Cluster{access: candidate.Access{Kubeconfig: o.Kubeconfig, URL: config.Host}, cidrs: o.ServiceCIDRs}
	c.description = candidate.Description{Implementation: "kubernetes", Version: version.GitVersion, Tier: "cluster", Components: map[string]string{"go": version.GoVersion}}
	told, err := serviceCIDRs(ctx, client)
	switch {
	case err == nil:
		c.description.Capabilities = append(c.description.Capabilities, spec.ServiceCIDRAPI)
		if len(c.cidrs) == 0 {
			c.cidrs = told
		} else if !slices.Equal(c.cidrs, told) {
			return nil, fmt.Errorf("the cluster's Service ranges are %v, not %v", told, c.cidrs)
		}
	case apierrors.IsNotFound(err):
		if len(c.cidrs) == 0 {
			return nil, ErrNoServiceCIDR
		}
	default:
		return nil, fmt.Errorf("read the Service ranges: %w", err)
	}
	stack := spec.SingleStack
	if len(c.cidrs) == 2 {
		stack = spec.DualStack
	}
	c.description.Capabilities = append(c.description.Capabilities, stack)
	return c, nil
}

func load(path string) (*rest.Config, error) {
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

// serviceCIDRs returns the ranges of the default ServiceCIDR object, the primary family first.
func serviceCIDRs(ctx context.Context, client kubernetes.Interface) ([]netip.Prefix, error) {
	object, err := client.NetworkingV1().ServiceCIDRs().Get(ctx, "kubernetes", metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	var cidrs []netip.Prefix
	for _, c := range object.Spec.CIDRs {
		p, err := netip.ParsePrefix(c)
		if err != nil {
			return nil, err
		}
		cidrs = append(cidrs, p)
	}
	// The object does not tell which family is the primary one; the Service "kubernetes" always has it.
	if svc, err := client.CoreV1().Services(corev1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{}); err == nil && len(cidrs) == 2 {
		if ip, err := netip.ParseAddr(svc.Spec.ClusterIP); err == nil && ip.Is4() != cidrs[0].Addr().Is4() {
			slices.Reverse(cidrs)
		}
	}
	return cidrs, nil
}

// Describe implements candidate.Candidate.
func (c *Cluster) Describe() candidate.Description { return c.description }

// Close implements candidate.Candidate. The cluster is not ours.
func (c *Cluster) Close(context.Context) error { return nil }

// ControlPlane implements candidate.Candidate: the shared range, and nothing else.
func (c *Cluster) ControlPlane(_ context.Context, request candidate.Request) (candidate.ControlPlane, error) {
	switch {
	case request.Exclusive:
		return nil, candidate.Unavailable("a cluster in use has no range that a check may have for itself")
	case request.NodePorts != "":
		return nil, candidate.Unavailable("the node-port range of a cluster in use cannot be chosen")
	case len(request.ServiceCIDRs) > 0 && !slices.Equal(request.ServiceCIDRs, c.cidrs):
		return nil, candidate.Unavailable("the cluster's Service range is %v", c.cidrs)
	case request.DualStack && len(c.cidrs) < 2:
		return nil, candidate.Unavailable("the cluster is single-stack")
	}
	return &controlPlane{c}, nil
}

type controlPlane struct{ cluster *Cluster }

func (cp *controlPlane) Access() candidate.Access     { return cp.cluster.access }
func (cp *controlPlane) ServiceCIDRs() []netip.Prefix { return cp.cluster.cidrs }

// NodePorts is the default range: the API does not tell another.
func (cp *controlPlane) NodePorts() (first, last int) { return 30000, 32767 }
func (cp *controlPlane) Release()                     {}
func (cp *controlPlane) Restart(context.Context) error {
	return candidate.Unavailable("a cluster in use is not restarted")
}
