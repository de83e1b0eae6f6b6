package lab

import (
	"context"
	"errors"
	"net/netip"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate"
)

// controlPlane is a lease as the suites see it.
type controlPlane struct {
	lease     *lease
	ranges    ranges
	exclusive bool
	server    *apiServer
	// controller is that of ServiceCIDRs; nil where none was asked for.
	controller *process
	// changed is set once the server has other ranges than the pool knows it by.
	changed bool

	mu      sync.Mutex
	further []*apiServer // on the same storage
}

func (c *controlPlane) Access() candidate.Access { return c.server.client.access }

func (c *controlPlane) ServiceCIDRs() []netip.Prefix { return c.ranges.serviceCIDRs() }

func (c *controlPlane) NodePorts() (first, last int) {
	return c.ranges.nodePorts.First, c.ranges.nodePorts.Last
}

// Restart implements candidate.ControlPlane. It needs an exclusive lease: others would see their requests fail.
func (c *controlPlane) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error {
	if !c.exclusive {
		return errors.New("restart of a control plane that is not leased exclusively")
	}
	if len(serviceCIDRs) > 0 {
		r, err := parseRanges(candidate.Request{ServiceCIDRs: serviceCIDRs, NodePorts: c.ranges.nodePorts.String()}, c.server.version)
		if err != nil {
			return err
		}
		c.ranges, c.server.ranges, c.changed = r, r, true
	}
	return c.server.restart(ctx)
}

// AnotherServer implements candidate.ControlPlane.
func (c *controlPlane) AnotherServer(ctx context.Context, gates map[string]bool) (candidate.Access, error) {
	if !c.exclusive {
		return candidate.Access{}, errors.New("another server for a control plane that is not leased exclusively")
	}
	s, err := c.server.another(ctx, gates)
	if err != nil {
		return candidate.Access{}, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.further = append(c.further, s)
	return s.client.access, nil
}

// Alive implements candidate.Living.
func (c *controlPlane) Alive(context.Context) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.server.alive()
	if c.controller != nil && !c.controller.alive() {
		err = errors.Join(err, c.controller.diedError())
	}
	for _, s := range c.further {
		err = errors.Join(err, s.alive())
	}
	return err
}

func (c *controlPlane) Release() {
	if c.controller != nil {
		c.controller.kill()
		c.server.dir.forget(c.controller)
	}
	c.mu.Lock()
	for _, s := range c.further {
		s.stop()
	}
	c.further = nil
	c.mu.Unlock()
	if c.changed {
		c.server.halt() // the pool starts another
	}
	c.lease.release()
}
