// Package reference is the candidate that runs inside the process. It is an API server on a loopback port with the
// reference's own allocator and Service rules. It starts in a few milliseconds for every Service CIDR that a check asks
// for.
package reference

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/netip"
	"runtime"
	"slices"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/spec"
)

// Implementation is the name that the reference has in reports and expectations.
const Implementation = "reference"

// Options configure the reference.
type Options struct {
	// Faults are the deliberate bugs that every control plane has.
	Faults Faults
	// Absent are the features that it is without.
	Absent absent.Set
	// Version is the Kubernetes version that it follows, such as "v1.37.1"; empty is apiserver.DefaultVersion.
	Version string
	// NewAllocator replaces the allocator of the ranges; nil is the reference's own.
	NewAllocator func(netip.Prefix) (allocator.Allocator, error)
	// Apart gives every lease a control plane, or a cluster, of its own. What one check leaves then changes no other one.
	Apart bool
	// Seed makes the choices of dynamic allocation reproducible; 0 seeds them at random.
	Seed uint64
}

// Reference is a candidate.Candidate.
type Reference struct {
	options      Options
	capabilities []spec.Capability
	token        string

	mu     sync.Mutex
	shared map[string]*apiserver.Server // by request
	open   map[*apiserver.Server]bool
	world  *world // nil before the first data plane
	closed bool
}

var _ candidate.Candidate = (*Reference)(nil)

// New makes the reference. Control planes are started when they are asked for; what they share is prepared meanwhile. The error says that the options make no
// sense.
func New(options Options) (*Reference, error) {
	if options.Version == "" {
		options.Version = apiserver.DefaultVersion
	}
	minor, err := apiserver.MinorVersion(options.Version)
	if err != nil {
		return nil, err
	}
	r := &Reference{
		options: options,
		capabilities: []spec.Capability{
			spec.ChosenServiceCIDR, spec.ExhaustibleRange, spec.DualStack, spec.SingleStack, spec.RestartControlPlane, spec.SeveralAPIServers,
			spec.DataPlane, spec.EndpointControllers, spec.RestartControllers, spec.ClusterDNS, spec.LoadBalancer, spec.NarrowLinks, spec.PodObjects, spec.OutsideBackends, spec.SCTP, spec.VirtualClock,
			spec.OwnNodes, spec.ProxyConfiguration, spec.ProxyMetrics, spec.KubeProxy, spec.IPTablesMode, spec.NFTablesMode, spec.IPVS,
			spec.Kubelet,
		},
		token:  rand.Text(),
		shared: map[string]*apiserver.Server{},
		open:   map[*apiserver.Server]bool{},
	}
	if minor >= apiserver.ServiceCIDRMinor {
		r.capabilities = append(r.capabilities, spec.ServiceCIDRAPI, spec.ManageServiceCIDRs, spec.ServiceCIDRController)
	}
	r.capabilities = slices.DeleteFunc(r.capabilities, func(c spec.Capability) bool {
		return slices.ContainsFunc(options.Absent.Features(), func(f string) bool { return slices.Contains(offeredBy[f], c) })
	})
	go apiserver.Prepare()
	return r, nil
}

// offeredBy are the capabilities that go with a feature.
var offeredBy = map[string][]spec.Capability{
	spec.FeatureDualStack:          {spec.DualStack},
	spec.FeatureServiceCIDR:        {spec.ServiceCIDRAPI, spec.ManageServiceCIDRs, spec.ServiceCIDRController},
	spec.FeatureServiceDNS:         {spec.ClusterDNS},
	spec.FeatureServiceEnvironment: {spec.Kubelet},
}

// unless says of a behaviour that an implementation may do without what is declared of it.
func (r *Reference) unless(absent, has, lacks string) string {
	if r.options.Absent.Has(absent) {
		return lacks
	}
	return has
}

// serviceCIDRs are the default ones of the families that the reference has.
func (r *Reference) serviceCIDRs() []netip.Prefix {
	if r.options.Absent.Has(spec.FeatureDualStack) {
		return spec.DefaultServiceCIDRs[:1]
	}
	return spec.DefaultServiceCIDRs
}

// Describe implements candidate.Candidate.
func (r *Reference) Describe() candidate.Description {
	return candidate.Description{
		Implementation: Implementation,
		Version:        r.options.Version,
		DataPlane:      candidate.Implementation{Name: Implementation, Version: r.options.Version},
		Tier:           "reference",
		Capabilities:   slices.Clone(r.capabilities),
		Declarations: map[spec.Declarable]string{
			spec.AffinityScope: "port", spec.AffinityTimer: "refreshed", spec.AffinityTimeout: "settable", spec.UDPFlows: "follow",
			spec.NodelessEndpoints: "remote", spec.ProxyHealth: "port-10256", spec.NoEndpoints: "reject", spec.InternalLocalWithoutEndpoints: "drop",
			spec.ExternalLocalWithoutEndpoints: "drop", spec.UnusedPort: "reject", spec.NodePortLoopback: "served",
			spec.LoadBalancers: r.unless(spec.FeatureLoadBalancer, "service-controller", "none"),
			spec.Hairpin:       r.unless(absent.Hairpin, "every-address", "not-served"), spec.HostAccess: r.unless(absent.HostAccess, "served", "not-served"),
		},
		Components: map[string]string{"go": runtime.Version()},
		Faults:     r.options.Faults.Names(),
	}
}

// ControlPlane implements candidate.Candidate. Every range is offered. Leases that are not exclusive share a server per
// distinct request; an exclusive one gets a server of its own, which ends with the lease. So does every lease
// of Options.Apart. It never blocks.
func (r *Reference) ControlPlane(ctx context.Context, request candidate.Request) (candidate.ControlPlane, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	cidrs := request.ServiceCIDRs
	if len(cidrs) == 0 {
		cidrs = spec.DefaultServiceCIDRs[:1]
		if request.DualStack {
			cidrs = r.serviceCIDRs()
		}
	}
	ports, err := spec.ParsePortRange(request.NodePorts)
	if err != nil {
		return nil, err
	}
	options := apiserver.Options{
		ServiceCIDRs: cidrs,
		NodePorts:    ports,
		Faults:       r.options.Faults,
		Absent:       r.options.Absent,
		Token:        r.token,
		Version:      r.options.Version,
		NewAllocator: r.options.NewAllocator,
		Seed:         r.options.Seed,
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("the reference is closed")
	}
	if request.Exclusive || r.options.Apart {
		server, err := r.startLocked(options)
		if err != nil {
			return nil, err
		}
		return &controlPlane{reference: r, server: server, cidrs: cidrs, ports: ports, release: func() { r.stop(server) }}, nil
	}
	key, err := json.Marshal(request)
	if err != nil {
		return nil, fmt.Errorf("control plane request: %w", err)
	}
	server := r.shared[string(key)]
	if server == nil {
		if server, err = r.startLocked(options); err != nil {
			return nil, err
		}
		r.shared[string(key)] = server
	}
	return &controlPlane{server: server, cidrs: cidrs, ports: ports, release: func() {}}, nil
}

func (r *Reference) startLocked(options apiserver.Options) (*apiserver.Server, error) {
	server, err := apiserver.New(options)
	if err != nil {
		return nil, candidate.Unavailable("the reference has no control plane with the Service range %v: %v", options.ServiceCIDRs, err)
	}
	return server, r.openLocked(server)
}

// openLocked starts a server, which Close stops.
func (r *Reference) openLocked(server *apiserver.Server) error {
	if r.closed {
		return errors.New("the reference is closed")
	}
	if err := server.Start(); err != nil {
		return err
	}
	r.open[server] = true
	return nil
}

func (r *Reference) stop(server *apiserver.Server) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.open, server)
	_ = server.Close() // closing a listener on loopback: nothing is left to do about an error
}

// Close implements candidate.Candidate.
func (r *Reference) Close(context.Context) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	var errs []error
	for server := range r.open {
		errs = append(errs, server.Close())
	}
	r.open, r.shared = nil, nil
	return errors.Join(errs...)
}

// controlPlane is one lease.
type controlPlane struct {
	reference *Reference // nil if the lease is not exclusive
	server    *apiserver.Server
	cidrs     []netip.Prefix
	ports     spec.PortRange
	once      sync.Once
	release   func()

	mu      sync.Mutex
	further []*apiserver.Server // on the same storage
}

func (c *controlPlane) Access() candidate.Access { return accessTo(c.server) }

func accessTo(s *apiserver.Server) candidate.Access {
	return candidate.Access{URL: s.URL(), Token: s.Token(), Direct: s}
}

func (c *controlPlane) ServiceCIDRs() []netip.Prefix { return slices.Clone(c.cidrs) }

func (c *controlPlane) NodePorts() (first, last int) { return c.ports.First, c.ports.Last }

func (c *controlPlane) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error {
	if len(serviceCIDRs) > 0 {
		if c.reference == nil {
			return errors.New("other ranges for a control plane that is not leased exclusively")
		}
		c.cidrs = serviceCIDRs
	}
	return c.server.Restart(ctx, serviceCIDRs...)
}

// AnotherServer implements candidate.ServerOwner.
func (c *controlPlane) AnotherServer(_ context.Context, gates map[string]bool) (candidate.Access, error) {
	if c.reference == nil {
		return candidate.Access{}, errors.New("another server for a control plane that is not leased exclusively")
	}
	server, err := c.server.Another(gates)
	if err != nil {
		return candidate.Access{}, err
	}
	c.reference.mu.Lock()
	err = c.reference.openLocked(server)
	c.reference.mu.Unlock()
	if err != nil {
		return candidate.Access{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.further = append(c.further, server)
	return accessTo(server), nil
}

func (c *controlPlane) Release() {
	c.once.Do(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, s := range c.further {
			c.reference.stop(s)
		}
		c.release()
	})
}
