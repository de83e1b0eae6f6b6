package programs

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"slices"
)

// ServiceController makes load balancers: it is the controller of k8s.io/cloud-provider, which clouds run, with a cloud of the lab's own. Unlike the other
// components of a release it is no program there.
const ServiceController Component = "service-controller"

// serviceControllerMain is that program. Its cloud has no machines. A load balancer is an entry of a file, which says
// by which nodes and node ports its addresses are reached. The lab reads it when it sends (balancedBy).
const serviceControllerMain = `package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"os/exec"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	cloudprovider "k8s.io/cloud-provider"
	"k8s.io/cloud-provider/controllers/service"
	"k8s.io/component-base/featuregate"
	"k8s.io/component-base/metrics/prometheus/controllers"
)

// balancer is a load balancer.
type balancer struct {
	Addresses []netip.Addr     ` + "`json:\"addresses\"`" + `
	Nodes     []string         ` + "`json:\"nodes\"`" + `
	Ports     []v1.ServicePort ` + "`json:\"ports\"`" + `
}

// cloud makes load balancers.
type cloud struct {
	cloudprovider.Interface
	file  string
	apply string // a command that has what the file says done; empty where its reader looks at it each time

	mu        sync.Mutex
	next      map[v1.IPFamily]netip.Addr
	balancers map[types.UID]*balancer
}

func (c *cloud) ProviderName() string                             { return "lab" }
func (c *cloud) HasClusterID() bool                               { return true }
func (c *cloud) LoadBalancer() (cloudprovider.LoadBalancer, bool) { return c, true }

func (c *cloud) GetLoadBalancerName(_ context.Context, _ string, svc *v1.Service) string {
	return string(svc.UID)
}

func (c *cloud) GetLoadBalancer(_ context.Context, _ string, svc *v1.Service) (*v1.LoadBalancerStatus, bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b, found := c.balancers[svc.UID]
	if !found {
		return nil, false, nil
	}
	return b.status(), true, nil
}

func (c *cloud) EnsureLoadBalancer(_ context.Context, _ string, svc *v1.Service, nodes []*v1.Node) (*v1.LoadBalancerStatus, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.balancers[svc.UID]
	if b == nil {
		b = &balancer{}
		for _, family := range svc.Spec.IPFamilies {
			b.Addresses = append(b.Addresses, c.next[family])
			c.next[family] = c.next[family].Next()
		}
		c.balancers[svc.UID] = b
	}
	b.use(svc, nodes)
	return b.status(), c.write()
}

func (c *cloud) UpdateLoadBalancer(_ context.Context, _ string, svc *v1.Service, nodes []*v1.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	b := c.balancers[svc.UID]
	if b == nil {
		return fmt.Errorf("there is no load balancer for %s/%s", svc.Namespace, svc.Name)
	}
	b.use(svc, nodes)
	return c.write()
}

func (c *cloud) EnsureLoadBalancerDeleted(_ context.Context, _ string, svc *v1.Service) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.balancers, svc.UID)
	return c.write()
}

func (b *balancer) use(svc *v1.Service, nodes []*v1.Node) {
	b.Nodes, b.Ports = []string{}, svc.Spec.Ports
	for _, n := range nodes {
		b.Nodes = append(b.Nodes, n.Name)
	}
}

func (b *balancer) status() *v1.LoadBalancerStatus {
	s := &v1.LoadBalancerStatus{}
	for _, a := range b.Addresses {
		s.Ingress = append(s.Ingress, v1.LoadBalancerIngress{IP: a.String()})
	}
	return s
}

// write replaces the file at once, because others read it meanwhile.
func (c *cloud) write() error {
	all := []*balancer{}
	for _, b := range c.balancers {
		all = append(all, b)
	}
	data, err := json.Marshal(all)
	if err == nil {
		err = os.WriteFile(c.file+".new", data, 0o600)
	}
	if err == nil {
		err = os.Rename(c.file+".new", c.file)
	}
	if err == nil && c.apply != "" {
		cmd := exec.Command("sh", "-c", c.apply)
		cmd.Stdout, cmd.Stderr = os.Stderr, os.Stderr
		err = cmd.Run()
	}
	return err
}

func run() error {
	kubeconfig := flag.String("kubeconfig", "", "how the API server is reached")
	file := flag.String("load-balancers", "", "the file that says which load balancers there are")
	apply := flag.String("apply", "", "a command that is run after each change of the file, before the change counts as done")
	four, six := flag.String("first-ipv4", "", "the first address"), flag.String("first-ipv6", "", "the first address")
	flag.Parse()
	config, err := clientcmd.BuildConfigFromFlags("", *kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	c := &cloud{file: *file, apply: *apply, balancers: map[types.UID]*balancer{}, next: map[v1.IPFamily]netip.Addr{
		v1.IPv4Protocol: netip.MustParseAddr(*four), v1.IPv6Protocol: netip.MustParseAddr(*six),
	}}
	ctx := context.Background()
	// Older controllers ask for a gate that the programs of clouds register (v0.28.15, controllers/service/controller.go line 700).
	_ = utilfeature.DefaultMutableFeatureGate.Add(map[featuregate.Feature]featuregate.FeatureSpec{"StableLoadBalancerNodeSet": {Default: true}})
	known := informers.NewSharedInformerFactory(client, 0)
	controller, err := service.New(c, client, known.Core().V1().Services(), known.Core().V1().Nodes(), "lab", utilfeature.DefaultFeatureGate)
	if err != nil {
		return err
	}
	known.Start(ctx.Done())
	const workers = 5
	controller.Run(ctx, workers, controllers.NewControllerManagerMetrics("service-controller"))
	return nil
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
`

// serviceControllerDigest tells programs of other sources apart.
func serviceControllerDigest() string {
	sum := sha256.Sum256([]byte(serviceControllerMain))
	return hex.EncodeToString(sum[:8])
}

// HasServiceController reports whether it is among the programs.
func HasServiceController(b *Binaries) bool {
	_, err := os.Stat(b.Path(ServiceController))
	return err == nil && !slices.Contains(b.lacking, ServiceController)
}
