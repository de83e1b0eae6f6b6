package controlplane

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/lab/process"
)

// ControlPlane is a lease as the suites see it.
type ControlPlane struct {
	Lease     *apiservers.Lease
	Ranges    apiservers.Ranges
	Exclusive bool
	Server    *APIServer
	// Controller is that of ServiceCIDRs; nil where none was asked for.
	Controller *process.Process
	// Changed is set once the server has other ranges than the pool knows it by.
	Changed bool

	mu      sync.Mutex
	further []*APIServer // on the same storage
}

// Access implements candidate.ControlPlane.
func (c *ControlPlane) Access() candidate.Access { return c.Server.Client.Access }

// ServiceCIDRs implements candidate.ControlPlane.
func (c *ControlPlane) ServiceCIDRs() []netip.Prefix { return c.Ranges.ServiceCIDRs() }

// NodePorts implements candidate.ControlPlane.
func (c *ControlPlane) NodePorts() (first, last int) {
	return c.Ranges.NodePorts.First, c.Ranges.NodePorts.Last
}

// Restart implements candidate.ServerOwner. It needs an exclusive lease: others would see their requests fail.
func (c *ControlPlane) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error {
	if !c.Exclusive {
		return errors.New("restart of a control plane that is not leased exclusively")
	}
	if len(serviceCIDRs) > 0 {
		r, err := apiservers.ParseRanges(candidate.Request{ServiceCIDRs: serviceCIDRs, NodePorts: c.Ranges.NodePorts.String()}, c.Server.Version)
		if err != nil {
			return err
		}
		c.Ranges, c.Server.Ranges, c.Changed = r, r, true
	}
	return c.Server.Restart(ctx)
}

// AnotherServer implements candidate.ServerOwner.
func (c *ControlPlane) AnotherServer(ctx context.Context, gates map[string]bool) (candidate.Access, error) {
	if !c.Exclusive {
		return candidate.Access{}, errors.New("another server for a control plane that is not leased exclusively")
	}
	s, err := c.Server.another(ctx, gates)
	if err != nil {
		return candidate.Access{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.further = append(c.further, s)
	return s.Client.Access, nil
}

// Alive implements candidate.Living.
func (c *ControlPlane) Alive(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.Server.Alive()
	if c.Controller != nil && !c.Controller.Alive() {
		err = errors.Join(err, c.Controller.DiedError())
	}
	for _, s := range c.further {
		err = errors.Join(err, s.Alive())
	}
	return err
}

// Release implements candidate.ControlPlane. The pool starts another server if this one has changed its ranges.
func (c *ControlPlane) Release() {
	if c.Controller != nil {
		c.Controller.Kill()
		c.Server.dir.Forget(c.Controller)
	}
	c.mu.Lock()
	for _, s := range c.further {
		s.Stop()
	}
	c.further = nil
	c.mu.Unlock()
	if c.Changed {
		c.Server.halt() // the pool starts another
	}
	c.Lease.Release()
}
