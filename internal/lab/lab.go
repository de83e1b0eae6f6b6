// Package lab is the tier of real components: etcd and kube-apiserver as processes of the same machine. They are built
// from their Go modules, downloaded as they were released, or taken from a folder. Nothing runs in a container.
package lab

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/certificates"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// Options say what a lab runs.
type Options struct {
	// Version of Kubernetes, for example "v1.37.1". Empty means DefaultVersion, or whatever BinDir holds.
	Version string
	// BinDir is a folder with kube-apiserver and etcd. Empty means to build them, or take them from the cache.
	BinDir string
	// CacheDir is where programs are kept that were built or fetched; empty means DefaultCacheDir.
	CacheDir string
	// MaxServers bounds how many API servers run at a time; zero means as many as memory allows.
	MaxServers int
	// DataPlane asks for nodes too, with a service proxy on each. It needs a process that Isolate has started.
	DataPlane bool
	// Proxy is what the nodes run.
	Proxy dataplane.ProxyOptions
	// Controllers are those of kube-controller-manager, joined by commas, that an exclusive control plane has. A lab with nodes has its own.
	Controllers string
	// Servers replace etcd and kube-apiserver.
	Servers programs.ServerOptions
	// Surroundings is the name of network.Surroundings: what the network around the nodes does with addresses that nobody has; empty is the default.
	Surroundings string
	// Progress is told about a build; it may be nil.
	Progress programs.Progress
	// Compiling is that of BuildOptions.
	Compiling func()
}

// Components are the programs that the options need.
func (o *Options) Components() []programs.Component {
	c := slices.DeleteFunc(slices.Clone(programs.ControlPlaneComponents), func(c programs.Component) bool {
		return c == programs.Etcd && o.Servers.EtcdCommand != "" || c == programs.APIServer && o.Servers.APIServerCommand != ""
	})
	// Without nodes it is there for ServiceCIDRs, so that a run judges the same whatever was built before.
	if o.DataPlane || o.Controllers != "" || o.BinDir == "" && o.Servers.APIServerCommand == "" {
		c = append(c, programs.ControllerManager)
	}
	if o.DataPlane {
		if o.BinDir == "" { // a folder of the user's need not have them: there is then no cluster DNS, and nobody makes load balancers
			c = append(c, programs.CoreDNS, programs.ServiceController)
		}
		if o.Proxy.Command == "" {
			c = append(c, programs.KubeProxy)
		}
	}
	return c
}

// Lab is a candidate that runs real control planes. All methods are safe for concurrent use.
type Lab struct {
	// Version, Binaries and Proxy are what the options mean.
	Version      programs.Version
	Binaries     *programs.Binaries
	pool         *apiservers.Pool
	Proxy        dataplane.ProxyOptions
	surroundings network.Surroundings
	controllers  string
	coreDNS      string // its version; empty if there is none
	// withoutDataPlane is why there is none; nil if there is.
	withoutDataPlane error

	worldMu sync.Mutex // guards what follows, which the first data plane needs
	// World is the cluster of nodes; nil before the first data plane.
	World      *dataplane.World
	worldError error

	endMu sync.Mutex // guards what follows
	onEnd func(Log)

	mu     sync.Mutex // guards what follows, which the first control plane needs
	closed bool
	// Dir is the folder of the lab, and Etcd its storage; nil before the first control plane.
	Dir  *process.RunDir
	ca   *certificates.Authority
	Etcd *controlplane.Etcd
}

var _ candidate.Candidate = (*Lab)(nil)

// New obtains the programs, building them where that is needed (see Build), and removes what killed labs of this
// user have left. No server is started before a control plane is asked for.
func New(ctx context.Context, o Options) (*Lab, error) {
	v, b, err := ProgramsOf(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := process.SweepIn(os.TempDir()); err != nil {
		return nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	o.Proxy.Mode = cmp.Or(o.Proxy.Mode, candidate.DefaultProxyMode)
	surroundings, err := network.ParseSurroundings(o.Surroundings)
	if err != nil {
		return nil, err
	}
	l := &Lab{Version: v, Binaries: b, Proxy: o.Proxy, coreDNS: programs.CoreDNSIn(b), surroundings: surroundings, controllers: o.Controllers}
	switch {
	case !o.DataPlane:
		l.withoutDataPlane = errors.New("the lab was started without nodes")
	case !isolation.Isolated():
		l.withoutDataPlane = errors.New("the lab does not run in network namespaces of its own")
	default:
		l.withoutDataPlane = dataplane.CheckPrograms(o.Proxy)
	}
	servers := o.MaxServers
	if servers <= 0 {
		servers = controlplane.ServersThatFit()
	}
	l.pool = apiservers.NewPool(servers, l.start)
	return l, nil
}

// WithoutDataPlane is why the lab has no data plane; nil if it has one.
func (l *Lab) WithoutDataPlane() error { return l.withoutDataPlane }

// ProgramsOf returns the programs that the options mean. It builds those that the cache does not have.
func ProgramsOf(ctx context.Context, o Options) (programs.Version, *programs.Binaries, error) {
	if err := checkCommands(&o); err != nil {
		return programs.Version{}, nil, err
	}
	if o.BinDir != "" {
		return programs.InFolder(ctx, o.BinDir, o.Version, o.Components(), o.Servers)
	}
	v, err := programs.ParseVersion(o.Version)
	if err != nil {
		return programs.Version{}, nil, err
	}
	b := &programs.Binaries{Version: v.String()}
	if components := o.Components(); len(components) > 0 {
		if b, err = programs.CachedOrBuilt(ctx, programs.BuildOptions{
			Version: o.Version, CacheDir: o.CacheDir, Components: components, Progress: o.Progress, Compiling: o.Compiling,
		}); err != nil {
			return programs.Version{}, nil, err
		}
	}
	b.Servers = o.Servers
	if o.Servers.APIServerCommand != "" {
		b.GoVersion = ""
		v, err = b.ServedVersion(ctx, o.Version)
	}
	if o.Servers.EtcdCommand != "" {
		b.EtcdVersion = ""
	}
	return v, b, err
}

// Describe implements candidate.Candidate.
func (l *Lab) Describe() candidate.Description {
	d := candidate.Description{
		Implementation: "kubernetes",
		Version:        l.Binaries.Version,
		Tier:           "lab",
		Capabilities: []spec.Capability{
			spec.ChosenServiceCIDR, spec.ExhaustibleRange, spec.DualStack, spec.SingleStack, spec.RestartControlPlane,
			spec.SeveralAPIServers,
		},
		Components: map[string]string{},
	}
	if l.Version.ServiceCIDRAPI() {
		d.Capabilities = append(d.Capabilities, spec.ServiceCIDRAPI, spec.ManageServiceCIDRs)
		if l.Binaries.HasServiceCIDRController() {
			d.Capabilities = append(d.Capabilities, spec.ServiceCIDRController)
		}
	}
	if l.withoutDataPlane == nil {
		l.describeDataPlane(&d)
	}
	if c := l.Binaries.Servers.EtcdCommand; c != "" {
		d.Components["storage"] = c
	}
	if c := l.Binaries.Servers.APIServerCommand; c != "" {
		d.Components["kube-apiserver"] = c
	}
	if l.Binaries.Servers.Replaced() {
		d.Admission = &candidate.Admission{}
	}
	if f := l.Binaries.Servers.APIServerFlags; len(f) > 0 {
		d.Components["kube-apiserver flags"] = strings.Join(f, " ")
	}
	if v := l.Binaries.EtcdVersion; v != "" {
		d.Components["etcd"] = strings.TrimPrefix(v, "v")
	}
	if v := l.Binaries.GoVersion; v != "" {
		d.Components["go"] = strings.TrimPrefix(v, "go")
	}
	return d
}

// ControlPlane implements candidate.Candidate. Requests for the same ranges share an API server; an exclusive one has
// it alone, after everything that an earlier user left was removed. A caller that holds a lease and asks for another
// may wait for ever if the servers that may run are all leased.
func (l *Lab) ControlPlane(ctx context.Context, q candidate.Request) (candidate.ControlPlane, error) {
	r, err := apiservers.ParseRanges(q, l.Version)
	if err != nil {
		return nil, err
	}
	le, err := l.pool.Acquire(ctx, r, q.Exclusive)
	if err != nil {
		return nil, err
	}
	c := &controlplane.ControlPlane{Lease: le, Ranges: r, Exclusive: q.Exclusive, Server: le.Server().(*controlplane.APIServer)}
	switch {
	case q.ServiceCIDRController:
		c.Controller, err = c.Server.StartServiceCIDRController(ctx)
	case q.Exclusive && l.controllers != "":
		c.Controller, err = c.Server.StartControllers(l.controllers)
	}
	if err != nil {
		le.Release()
		return nil, err
	}
	return c, nil
}

// start is what the pool starts a server with.
func (l *Lab) start(ctx context.Context, r apiservers.Ranges) (apiservers.Server, error) {
	e, err := l.ensureEtcd(ctx)
	if err != nil {
		return nil, err
	}
	s, err := controlplane.StartAPIServer(ctx, l.Version, l.Binaries, l.Dir, l.ca, e, r, netip.Addr{}, false, nil)
	if err != nil {
		return nil, err // not a nil *APIServer in an interface
	}
	return s, nil
}

// ensureEtcd starts etcd unless it runs. If it has died, the API servers that used it are of no use any more, and
// the pool finds that out.
func (l *Lab) ensureEtcd(ctx context.Context) (*controlplane.Etcd, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, apiservers.ErrClosed
	}
	if l.Etcd != nil && l.Etcd.Process.Alive() {
		return l.Etcd, nil
	}
	var err error
	if l.Dir == nil {
		if l.ca, err = certificates.NewAuthority("conformance-lab"); err != nil {
			return nil, err
		}
		if l.Dir, err = process.NewRunDir(os.TempDir()); err != nil {
			return nil, fmt.Errorf("make a folder for the lab: %w", err)
		}
		l.Dir.Ended = l.tellEnd
	}
	l.Etcd, err = controlplane.StartEtcd(ctx, l.Binaries, l.Dir, false)
	return l.Etcd, err
}

// Close implements candidate.Candidate: it kills all servers and removes their files. It may be called more than once.
func (l *Lab) Close(context.Context) error {
	l.OnEnd(nil)
	l.worldMu.Lock()
	if l.World != nil {
		l.World.Stop()
	}
	l.World, l.worldError = nil, apiservers.ErrClosed
	l.worldMu.Unlock()
	l.pool.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.Etcd != nil {
		l.Etcd.Process.Kill()
		l.Etcd = nil
	}
	if l.Dir == nil {
		return nil
	}
	var err error
	if l.runsCommands() {
		err = process.EndMarked(l.Dir.Path)
	}
	if err = errors.Join(err, l.Dir.Remove()); err == nil {
		l.Dir = nil
	}
	return err
}

// runsCommands reports whether a shell runs commands of the user's.
func (l *Lab) runsCommands() bool {
	return l.Proxy.Command != "" || l.Proxy.Setup != "" || l.Binaries.Servers.EtcdCommand != "" || l.Binaries.Servers.APIServerCommand != ""
}
