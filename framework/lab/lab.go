// Package lab is the tier of real components: etcd and kube-apiserver as processes of the same machine, built from
// their Go modules, downloaded as they were released, or taken from a folder. Nothing runs in a container.
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
	"github.com/service-conformance/conformance/framework/certificates"
	"github.com/service-conformance/conformance/framework/lab/network"
	"github.com/service-conformance/conformance/framework/spec"
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
	Proxy ProxyOptions
	// Servers replace etcd and kube-apiserver.
	Servers ServerOptions
	// Surroundings is the name of network.Surroundings: what the network around the nodes does with addresses that nobody has; empty is the default.
	Surroundings string
	// Progress is told about a build; it may be nil.
	Progress Progress
	// Compiling is that of BuildOptions.
	Compiling func()
}

// Components are the programs that the options need.
func (o *Options) Components() []Component {
	c := slices.DeleteFunc(slices.Clone(controlPlaneComponents), func(c Component) bool {
		return c == Etcd && o.Servers.EtcdCommand != "" || c == APIServer && o.Servers.APIServerCommand != ""
	})
	if o.DataPlane {
		c = append(c, ControllerManager)
		if o.BinDir == "" { // a folder of the user's need not have them: there is then no cluster DNS, and nobody makes load balancers
			c = append(c, CoreDNS, ServiceController)
		}
		if o.Proxy.Command == "" {
			c = append(c, KubeProxy)
		}
	}
	return c
}

// Lab is a candidate that runs real control planes. All methods are safe for concurrent use.
type Lab struct {
	version      version
	binaries     *Binaries
	pool         *pool
	proxy        ProxyOptions
	surroundings network.Surroundings
	coreDNS      string // its version; empty if there is none
	// withoutDataPlane is why there is none; nil if there is.
	withoutDataPlane error

	worldMu    sync.Mutex // guards what follows, which the first data plane needs
	world      *world
	worldError error

	endMu sync.Mutex // guards what follows
	onEnd func(Log)

	mu     sync.Mutex // guards what follows, which the first control plane needs
	closed bool
	dir    *runDir
	ca     *certificates.Authority
	etcd   *etcd
}

var _ candidate.Candidate = (*Lab)(nil)

// New obtains the programs, building them where that is needed (see Build), and removes what killed labs of this
// user have left. No server is started before a control plane is asked for.
func New(ctx context.Context, o Options) (*Lab, error) {
	v, b, err := obtain(ctx, o)
	if err != nil {
		return nil, err
	}
	if err := sweep(os.TempDir()); err != nil {
		return nil, fmt.Errorf("remove what an earlier run left: %w", err)
	}
	o.Proxy.Mode = cmp.Or(o.Proxy.Mode, candidate.DefaultProxyMode)
	surroundings, err := network.ParseSurroundings(o.Surroundings)
	if err != nil {
		return nil, err
	}
	l := &Lab{version: v, binaries: b, proxy: o.Proxy, coreDNS: coreDNSIn(b), surroundings: surroundings}
	switch {
	case !o.DataPlane:
		l.withoutDataPlane = errors.New("the lab was started without nodes")
	case !Isolated():
		l.withoutDataPlane = errors.New("the lab does not run in network namespaces of its own")
	default:
		l.withoutDataPlane = checkPrograms(o.Proxy)
	}
	servers := o.MaxServers
	if servers <= 0 {
		servers = serversThatFit()
	}
	l.pool = newPool(servers, l.start)
	return l, nil
}

// WithoutDataPlane is why the lab has no data plane; nil if it has one.
func (l *Lab) WithoutDataPlane() error { return l.withoutDataPlane }

// Obtain builds the programs that the options need unless the cache has them.
func Obtain(ctx context.Context, o Options) error {
	_, _, err := obtain(ctx, o)
	return err
}

// obtain returns the programs that the options mean.
func obtain(ctx context.Context, o Options) (version, *Binaries, error) {
	if err := checkCommands(&o); err != nil {
		return version{}, nil, err
	}
	if o.BinDir != "" {
		return binariesIn(ctx, o.BinDir, o.Version, o.Components(), o.Servers)
	}
	v, err := parseVersion(o.Version)
	if err != nil {
		return version{}, nil, err
	}
	b := &Binaries{Version: v.String()}
	if components := o.Components(); len(components) > 0 {
		if b, err = cachedOrBuilt(ctx, BuildOptions{
			Version: o.Version, CacheDir: o.CacheDir, Components: components, Progress: o.Progress, Compiling: o.Compiling,
		}); err != nil {
			return version{}, nil, err
		}
	}
	b.servers = o.Servers
	if o.Servers.APIServerCommand != "" {
		b.GoVersion = ""
		v, err = b.servedVersion(ctx, o.Version)
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
		Version:        l.binaries.Version,
		Tier:           "lab",
		Capabilities: []spec.Capability{
			spec.ChosenServiceCIDR, spec.ExhaustibleRange, spec.DualStack, spec.SingleStack, spec.RestartControlPlane,
			spec.SeveralAPIServers,
		},
		Components: map[string]string{},
	}
	if l.version.serviceCIDRAPI() {
		d.Capabilities = append(d.Capabilities, spec.ServiceCIDRAPI, spec.ManageServiceCIDRs)
		if l.binaries.hasServiceCIDRController() {
			d.Capabilities = append(d.Capabilities, spec.ServiceCIDRController)
		}
	}
	if l.withoutDataPlane == nil {
		l.describeDataPlane(&d)
	}
	if c := l.binaries.servers.EtcdCommand; c != "" {
		d.Components["storage"] = c
	}
	if c := l.binaries.servers.APIServerCommand; c != "" {
		d.Components["kube-apiserver"] = c
	}
	if l.binaries.servers.replaced() {
		d.Admission = &candidate.Admission{}
	}
	if f := l.binaries.servers.APIServerFlags; len(f) > 0 {
		d.Components["kube-apiserver flags"] = strings.Join(f, " ")
	}
	if v := l.binaries.EtcdVersion; v != "" {
		d.Components["etcd"] = strings.TrimPrefix(v, "v")
	}
	if v := l.binaries.GoVersion; v != "" {
		d.Components["go"] = strings.TrimPrefix(v, "go")
	}
	return d
}

// ControlPlane implements candidate.Candidate. Requests for the same ranges share an API server; an exclusive one
// has it alone, after everything that an earlier user left was removed. Whoever holds a lease and asks for another
// may wait for ever if the servers that may run are all leased.
func (l *Lab) ControlPlane(ctx context.Context, q candidate.Request) (candidate.ControlPlane, error) {
	r, err := parseRanges(q, l.version)
	if err != nil {
		return nil, err
	}
	le, err := l.pool.acquire(ctx, r, q.Exclusive)
	if err != nil {
		return nil, err
	}
	c := &controlPlane{lease: le, ranges: r, exclusive: q.Exclusive, server: le.member.server.(*apiServer)}
	if q.ServiceCIDRController {
		if c.controller, err = c.server.startServiceCIDRController(ctx); err != nil {
			le.release()
			return nil, err
		}
	}
	return c, nil
}

// start is what the pool starts a server with.
func (l *Lab) start(ctx context.Context, r ranges) (server, error) {
	e, err := l.ensureEtcd(ctx)
	if err != nil {
		return nil, err
	}
	s, err := startAPIServer(ctx, l.version, l.binaries, l.dir, l.ca, e, r, netip.Addr{}, false, nil)
	if err != nil {
		return nil, err // not a nil *apiServer in an interface
	}
	return s, nil
}

// ensureEtcd starts etcd unless it runs. If it has died, the API servers that used it are of no use any more, and
// the pool finds that out.
func (l *Lab) ensureEtcd(ctx context.Context) (*etcd, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return nil, errClosed
	}
	if l.etcd != nil && l.etcd.process.alive() {
		return l.etcd, nil
	}
	var err error
	if l.dir == nil {
		if l.ca, err = certificates.NewAuthority("conformance-lab"); err != nil {
			return nil, err
		}
		if l.dir, err = newRunDir(os.TempDir()); err != nil {
			return nil, fmt.Errorf("make a folder for the lab: %w", err)
		}
		l.dir.ended = l.tellEnd
	}
	l.etcd, err = startEtcd(ctx, l.binaries, l.dir, false)
	return l.etcd, err
}

// Close implements candidate.Candidate: it kills all servers and removes their files. It may be called more than once.
func (l *Lab) Close(context.Context) error {
	l.OnEnd(nil)
	l.worldMu.Lock()
	if l.world != nil {
		l.world.stop()
	}
	l.world, l.worldError = nil, errClosed
	l.worldMu.Unlock()
	l.pool.close()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = true
	if l.etcd != nil {
		l.etcd.process.kill()
		l.etcd = nil
	}
	if l.dir == nil {
		return nil
	}
	var err error
	if l.runsCommands() {
		err = endMarked(l.dir.path)
	}
	if err = errors.Join(err, l.dir.remove()); err == nil {
		l.dir = nil
	}
	return err
}

// runsCommands reports whether a shell runs commands of the user's.
func (l *Lab) runsCommands() bool {
	return l.proxy.Command != "" || l.proxy.Setup != "" || l.binaries.servers.EtcdCommand != "" || l.binaries.servers.APIServerCommand != ""
}
