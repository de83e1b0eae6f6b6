package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/candidate/apiclient"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/traffic"
	"github.com/service-conformance/conformance/internal/wholefile"
)

// World is the cluster that all data planes of a lab are leased from. It has an API server of its own, the endpoint
// controllers, a network of namespaces and a proxy on every node.
type World struct {
	parts       Parts
	fabric      *network.Fabric
	Server      *controlplane.APIServer
	Controllers Controllers
	Balancers   *process.Process // the service controller; nil if there is none
	Api         apiclient.Interface
	Kubeconfig  string
	Path        string // where proxies find programs
	Shared      []*Node
	complete    bool   // all shared nodes are there
	clients     string // the namespace of the pods that are lent
	dns         dnsServer

	mu       sync.Mutex
	outside  map[*Node]*network.Outside
	external candidate.ExternalAddresses
	idle     candidate.IdlePods[*pod]
	ports    traffic.Ports
}

// StartWorld starts a cluster, and returns once its nodes serve. An error leaves nothing running.
func StartWorld(ctx context.Context, p Parts, c Cluster) (_ *World, err error) {
	w := &World{parts: p, clients: metav1.NamespaceDefault, outside: map[*Node]*network.Outside{}}
	defer func() {
		if err != nil {
			w.Stop()
		}
	}()
	if w.Path, err = programPath(p.Dir); err != nil {
		return nil, err
	}
	if w.fabric, err = network.NewFabric(); err != nil {
		return nil, err
	}
	w.fabric.PodInterfaces = p.Proxy.PodInterfaces
	if p.Proxy.Command != "" { // kube-proxy hangs nothing on cgroups
		w.fabric.NodeCgroups = true
	}
	if _, err := w.fabric.Surround(p.Surroundings, w.Path); err != nil { // a machine without either program runs a proxy that needs none: it says so less often
		return nil, err
	}
	gateway := w.fabric.Gateway(c.Ranges.Primary.Addr().Is6()) // kube-apiserver wants to be reached by the family of its Services
	_, err = controlplane.StartAPIServer(ctx, p.Version, p.Binaries, p.Dir, p.CA, p.Etcd, c.Ranges, gateway, false, func(s *controlplane.APIServer) error {
		w.Server = s
		if err := w.connect(); err != nil {
			return err
		}
		return w.startNodes(ctx, c.Zones)
	})
	if err != nil {
		return nil, err
	}
	// The controllers end at once when the server is not ready, unlike proxies.
	if err := w.Controllers.start(w, c.Controllers); err != nil {
		return nil, err
	}
	if err := w.startBalancers(); err != nil {
		return nil, err
	}
	w.complete = true
	return w, nil
}

// startNodes starts the nodes that all leases share, and their proxies.
func (w *World) startNodes(ctx context.Context, zones []string) error {
	w.Shared = make([]*Node, len(zones))
	errs := make([]error, len(zones))
	var started sync.WaitGroup
	for i, zone := range zones {
		started.Go(func() {
			w.Shared[i], errs[i] = w.addNode(ctx, candidate.Node{Name: fmt.Sprintf("node-%d", i+1), Zone: zone}, SharedProxy())
		})
	}
	started.Wait()
	return errors.Join(errs...)
}

// connect makes the clients of the API server: one for this process, and a kubeconfig for those in the namespaces.
func (w *World) connect() error {
	access := w.Server.Client.Access
	api, err := apiclient.New(&rest.Config{
		Host: access.URL, BearerToken: access.Token, TLSClientConfig: rest.TLSClientConfig{CAData: access.CA}, QPS: -1, UserAgent: "conformance-lab",
	})
	if err != nil {
		return err
	}
	w.Api = api
	access.URL = fmt.Sprintf("https://%s", netip.AddrPortFrom(w.Server.Reach, uint16(w.Server.Port)))
	content, err := controlplane.Kubeconfig(access)
	if err != nil {
		return err
	}
	w.Kubeconfig = w.parts.Dir.File("nodes.kubeconfig")
	return wholefile.Write(w.Kubeconfig, content, 0o600)
}

// Alive returns nil while everything runs that leases share.
func (w *World) Alive() error {
	if err := w.Server.Alive(); err != nil {
		return err
	}
	if err := w.Controllers.Alive(); err != nil {
		return err
	}
	if w.Balancers != nil && !w.Balancers.Alive() {
		return w.Balancers.DiedError()
	}
	for _, n := range w.Shared {
		if err := n.proxyDied(); err != nil {
			return err
		}
	}
	return nil
}

// Stop ends everything. It may be called on a world that is not complete.
func (w *World) Stop() {
	for _, n := range w.Shared {
		if n != nil {
			n.StopProxy()
			n.tearDown()
		}
	}
	for _, p := range w.idle.TakeAll() {
		p.kill()
		p.network.Close() // its cable goes with it, and nobody waits for that
	}
	w.dns.stop(w.parts.Dir)
	for _, p := range []*process.Process{w.Controllers.Process(), w.Balancers} {
		if p != nil {
			p.Kill()
			w.parts.Dir.Forget(p)
		}
	}
	if w.Server != nil {
		w.Server.Stop()
	}
	for _, o := range w.outside {
		o.Remove()
	}
	for _, n := range w.Shared {
		if n != nil {
			n.network.Remove()
		}
	}
	if w.fabric != nil {
		_ = w.fabric.Close() // it goes with this process
	}
}

// outsideOf returns the client outside of the cluster whose gateway is the node.
func (w *World) outsideOf(n *Node) (*network.Outside, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.outside[n]; o != nil {
		return o, nil
	}
	o, err := w.fabric.AddOutside(n.network, candidate.ClientAddresses)
	if err != nil {
		return nil, err
	}
	if err := o.Narrow(candidate.NarrowAddress, candidate.NarrowMTU); err != nil {
		o.Remove()
		return nil, err
	}
	w.outside[n] = o
	return o, nil
}

// forgetOutside removes the client outside of the cluster whose gateway is the node.
func (w *World) forgetOutside(n *Node) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if o := w.outside[n]; o != nil {
		o.Remove()
		delete(w.outside, n)
	}
}

// Lease lends the cluster to one user more.
func (w *World) Lease(q candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	if q.DualStack && !w.Server.Ranges.Secondary.IsValid() {
		return nil, candidate.Unavailable("the lab that is up has the one Service range %s", w.Server.Ranges)
	}
	return &dataPlane{
		ControlPlane: controlplane.ControlPlane{Ranges: w.Server.Ranges, Server: w.Server}, world: w,
		extra:     map[string]*Node{},
		addresses: w.external.Take(), prober: traffic.Prober{Ports: &w.ports},
	}, nil
}

// dataPlane is one lease.
type dataPlane struct {
	controlplane.ControlPlane
	world     *World
	addresses []netip.Addr

	prober traffic.Prober

	pods candidate.LeasedPods[*pod]

	mu    sync.Mutex
	extra map[string]*Node // nil once released

	stoppedControllers atomic.Bool
}

var _ candidate.DataPlane = (*dataPlane)(nil)

// Nodes implements candidate.DataPlane.
func (d *dataPlane) Nodes() []candidate.Node {
	var out []candidate.Node
	for _, n := range d.world.Shared {
		out = append(out, n.Described())
	}
	return out
}

// Alive implements candidate.Living. A proxy on a node of the lease's own may have been told to end, unless it cannot
// be told anything. None is told to crash.
func (d *dataPlane) Alive(context.Context) error {
	if err := d.world.Alive(); err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, n := range d.extra {
		if err := n.proxyDied(); err != nil {
			return err
		}
	}
	return nil
}

// ExternalAddresses implements candidate.DataPlane.
func (d *dataPlane) ExternalAddresses() []netip.Addr { return d.addresses }

// Pass implements candidate.DataPlane.
func (d *dataPlane) Pass(ctx context.Context, t time.Duration) error {
	select {
	case <-time.After(t):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Release implements candidate.ControlPlane: it removes the pods and nodes of the lease, and takes back those that were lent.
func (d *dataPlane) Release() {
	pods, lent := d.pods.Release()
	d.mu.Lock()
	extra := d.extra
	d.extra = nil
	d.mu.Unlock()
	d.prober.Close()
	if d.stoppedControllers.Load() {
		_ = d.world.Controllers.run(d.world, true) // whether they live is looked at where they are needed
	}
	for _, p := range lent {
		d.world.idle.Return(p.Node, p)
	}
	ctx := context.Background()
	var gone sync.WaitGroup
	for _, p := range pods {
		gone.Go(func() { _ = p.remove(ctx) }) // the API server goes with the run, and nobody else uses these names
	}
	gone.Wait()
	for _, n := range extra {
		gone.Go(func() { _ = n.remove(ctx) })
	}
	gone.Wait()
}

// node finds a node that the lease may use.
func (d *dataPlane) node(name string) (*Node, error) {
	for _, n := range d.world.Shared {
		if n.Name == name {
			return n, nil
		}
	}
	return d.ownNode(name)
}

// ownNode finds a node that the lease has added.
func (d *dataPlane) ownNode(name string) (*Node, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if n := d.extra[name]; n != nil {
		return n, nil
	}
	return nil, fmt.Errorf("there is no node %q of this lease", name)
}

var _ candidate.ServerOwner = (*dataPlane)(nil)

// Restart implements candidate.ServerOwner, for a check that runs alone: all data planes share the server.
func (d *dataPlane) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error {
	if len(serviceCIDRs) > 0 {
		return errors.New("other ranges for a control plane that is not leased exclusively")
	}
	return d.world.Server.Restart(ctx)
}

// AddNode implements candidate.NodeOwner.
func (d *dataPlane) AddNode(ctx context.Context, as candidate.Node, proxy candidate.ProxyConfiguration) (candidate.Node, error) {
	if err := d.world.parts.canConfigure(proxy); err != nil {
		return candidate.Node{}, err
	}
	n, err := d.world.addNode(ctx, as, proxy)
	if err != nil {
		return candidate.Node{}, err
	}
	d.mu.Lock()
	released := d.extra == nil
	if !released {
		d.extra[n.Name] = n
	}
	d.mu.Unlock()
	if released {
		_ = n.remove(ctx) // the error that matters is the first one
		return candidate.Node{}, candidate.ErrReleased
	}
	return n.Described(), nil
}

// canConfigure tells whether the proxy of this lab is one that reads such a configuration.
func (s *Parts) canConfigure(p candidate.ProxyConfiguration) error {
	if s.Proxy.Command != "" && !p.Absent && !reflect.ValueOf(p).IsZero() {
		return candidate.Unavailable("the proxy is a program of its own, whose configuration is not known")
	}
	if p.WithoutIPVS && isolation.KernelHasIPVS() {
		return candidate.Unavailable("the kernel of the nodes has IPVS")
	}
	if p.Mode != "" {
		if err := CheckPrograms(ProxyOptions{Mode: p.Mode}); err != nil && p.Mode != candidate.IPVS {
			return candidate.Unavailable("%v", err)
		}
		if p.Mode == candidate.NFTables && !nftablesWork() {
			return candidate.Unavailable("the kernel of the nodes has no nftables of IPv4")
		}
	}
	return nil
}

// StartProxy implements candidate.NodeOwner.
func (d *dataPlane) StartProxy(_ context.Context, name string, proxy candidate.ProxyConfiguration) error {
	n, err := d.ownNode(name)
	if err != nil {
		return err
	}
	if err := d.world.parts.canConfigure(proxy); err != nil {
		return err
	}
	if proxy.Rewrite {
		return n.configure(proxy)
	}
	n.StopProxy()
	return n.StartProxy(proxy)
}

// StopProxy implements candidate.NodeOwner.
func (d *dataPlane) StopProxy(_ context.Context, name string) error {
	n, err := d.ownNode(name)
	if err != nil {
		return err
	}
	n.StopProxy()
	return nil
}

// ProxyState implements candidate.NodeOwner.
func (d *dataPlane) ProxyState(_ context.Context, name string) (candidate.ProxyState, error) {
	n, err := d.ownNode(name)
	if err != nil {
		return candidate.ProxyState{}, err
	}
	return n.proxyState(), nil
}

// leaveNothing removes a file; that there is none is no error.
func leaveNothing(path string) { _ = os.Remove(path) }
