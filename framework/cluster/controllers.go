package cluster

import (
	"context"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Controllers stop the controllers of a cluster that is for tests alone. A check that does so runs alone.
type Controllers interface {
	// Stop keeps them from running until Start. It may be called for controllers that are stopped.
	Stop(ctx context.Context) error
	// Start has others run in their place. It may be called while they run.
	Start(ctx context.Context) error
}

var _ candidate.ControllerOwner = (*dataPlane)(nil)

// StopControllers implements candidate.ControllerOwner.
func (d *dataPlane) StopControllers(ctx context.Context) error {
	c := d.cluster.options.Controllers
	if c == nil {
		return candidate.UnavailableHere("--tier lab or kind", "the controllers are not ones that a check may end")
	}
	d.controllersStopped.Store(true)
	return c.Stop(ctx)
}

// StartControllers implements candidate.ControllerOwner.
func (d *dataPlane) StartControllers(ctx context.Context) error {
	if !d.controllersStopped.Load() {
		return nil
	}
	err := d.cluster.options.Controllers.Start(ctx)
	if err == nil {
		d.controllersStopped.Store(false)
	}
	return err
}
