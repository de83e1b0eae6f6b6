package dataplane

import (
	"context"
	"fmt"
	"sync"

	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/process"
)

// Controllers are the controllers of a world, in one process, which a check may end for a while. All methods are safe for concurrent use.
type Controllers struct {
	mu      sync.Mutex
	names   string // joined by commas
	process *process.Process
	starts  int
	down    bool // because a check has ended them
}

// start runs these controllers and no others.
func (c *Controllers) start(w *World, names string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.names = names
	return c.again(w)
}

func (c *Controllers) again(w *World) error {
	log := "controllers.log"
	if c.starts++; c.starts > 1 { // the earlier log stays
		log = fmt.Sprintf("controllers-%d.log", c.starts)
	}
	p, err := process.Start(controlplane.ControllerManager(w.parts.Binaries, w.Kubeconfig, c.names, w.parts.Dir.File(log)))
	if err != nil {
		return err
	}
	c.process = p
	return w.parts.Dir.Add(p)
}

// run ends the controllers as a crash would, or starts those that were ended.
func (c *Controllers) run(w *World, run bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case run != c.down:
		return nil
	case run:
		c.down = false
		return c.again(w)
	}
	c.down = true
	c.process.Kill()
	w.parts.Dir.Forget(c.process)
	return nil
}

// Alive returns nil while they run, or a check has ended them.
func (c *Controllers) Alive() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down || c.process.Alive() {
		return nil
	}
	return c.process.DiedError()
}

// Process is the one that they run in; nil before they were started.
func (c *Controllers) Process() *process.Process {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.process
}

// StopControllers implements candidate.ControllerOwner.
func (d *dataPlane) StopControllers(context.Context) error {
	d.stoppedControllers.Store(true)
	return d.world.Controllers.run(d.world, false)
}

// StartControllers implements candidate.ControllerOwner.
func (d *dataPlane) StartControllers(context.Context) error {
	return d.world.Controllers.run(d.world, true)
}
