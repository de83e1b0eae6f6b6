package reference

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// DataPlane implements candidate.Candidate. All leases share one world, but for Options.Apart; each has a clock of its own.
func (r *Reference) DataPlane(ctx context.Context, _ candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errors.New("the reference is closed")
	}
	if r.world == nil || r.options.Apart {
		server, err := r.startLocked(apiserver.Options{
			ServiceCIDRs: r.serviceCIDRs(), NodePorts: spec.DefaultNodePorts, Faults: r.options.Faults, Absent: r.options.Absent, Token: r.token, Version: r.options.Version, Seed: r.options.Seed, Controllers: true,
		})
		if err != nil {
			return nil, err
		}
		if r.world, err = newWorld(server, r.options.Faults, r.options.Absent, r.options.Seed); err != nil {
			return nil, err
		}
	}
	release := func() {}
	if r.options.Apart {
		server := r.world.server
		release = func() { r.stop(server) }
	}
	d := &dataPlane{
		controlPlane: &controlPlane{server: r.world.server, cidrs: r.serviceCIDRs(), ports: spec.DefaultNodePorts, release: release},
		world:        r.world, now: r.world.epoch, pods: map[candidate.PodName]*pod{}, lent: map[candidate.PodName]*pod{}, nodes: map[string]*host{}, flows: map[flowKey]*flow{}, ended: map[flowKey]*flow{}, healthAsked: map[flowKey]bool{}, missed: map[string]time.Time{}, reversed: map[string]candidate.Resolution{},
	}
	d.addresses = d.world.external.Take()
	return d, nil
}

// dataPlane is one lease.
type dataPlane struct {
	*controlPlane
	world     *world
	addresses []netip.Addr

	// What follows is guarded by the lock of the world.
	now         time.Time
	pods        map[candidate.PodName]*pod
	lent        map[candidate.PodName]*pod
	nodes       map[string]*host // of its own
	flows       map[flowKey]*flow
	ended       map[flowKey]*flow               // connections from a port that the check has chosen
	healthAsked map[flowKey]bool                // connections on which the health of a Service was asked, and told
	missed      map[string]time.Time            // names that did not exist when they were first asked for
	reversed    map[string]candidate.Resolution // the first PTR records of each address
	ports       uint16                          // counts source ports
	once        sync.Once
}

var _ candidate.DataPlane = (*dataPlane)(nil)

// Nodes implements candidate.DataPlane.
func (d *dataPlane) Nodes() (out []candidate.Node) {
	for _, h := range d.world.shared {
		out = append(out, h.Node.Node)
	}
	return out
}

// ExternalAddresses implements candidate.DataPlane.
func (d *dataPlane) ExternalAddresses() []netip.Addr { return d.addresses }

// Release implements candidate.ControlPlane.
func (d *dataPlane) Release() {
	d.once.Do(func() {
		defer d.controlPlane.Release()
		w := d.world
		w.mu.Lock()
		defer w.mu.Unlock()
		w.server.RunControllers(true)
		for _, p := range d.pods {
			_ = w.removePod(p) // that it is gone already is no matter
		}
		for _, p := range d.lent {
			w.idle.Return(p.Node, p)
		}
		d.lent = nil
		for _, h := range d.nodes {
			_ = w.removeNode(h)
		}
	})
}

// Resolve implements candidate.DataPlane.
func (d *dataPlane) Resolve(_ context.Context, questions []candidate.Question) ([]candidate.Resolution, error) {
	_, services, endpoints := d.world.server.ProxySnapshot()
	zone := d.world.dns.Zone(services, endpoints)
	said := make([]candidate.Resolution, len(questions))
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	for i, q := range questions {
		said[i] = zone.Resolve(q)
		if q.Type == candidate.PTR && said[i].Said == candidate.Found {
			if before, asked := d.reversed[q.Name]; asked {
				said[i] = d.world.book.reverseForgotten.Do(before, said[i])
			} else {
				d.reversed[q.Name] = said[i]
			}
		}
		if at, before := d.missed[q.Name]; before && said[i].Said == candidate.Found && !d.world.book.missForgotten.Do(d.now.Sub(at)) {
			said[i] = candidate.Resolution{Said: candidate.NoName}
		}
		if _, before := d.missed[q.Name]; !before && said[i].Said == candidate.NoName {
			d.missed[q.Name] = d.now
		}
	}
	return said, nil
}

// Pass implements candidate.DataPlane.
func (d *dataPlane) Pass(_ context.Context, t time.Duration) error {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	d.pass(t)
	return nil
}

// pass lets the proxies of the lease's own nodes work while time passes, as often as they may have something to do.
func (d *dataPlane) pass(t time.Duration) {
	end := d.now.Add(t)
	if len(d.nodes) > 0 {
		const step = 100 * time.Millisecond
		for n := 0; d.now.Add(step).Before(end) && n < 3000; n++ {
			d.now = d.now.Add(step)
			d.advance()
		}
	}
	d.now = end
	d.advance()
}

// advance brings all proxies that the lease may meet up to date.
func (d *dataPlane) advance() {
	current := d.world.current()
	for _, h := range d.world.shared {
		h.Advance(d.now, current)
	}
	for _, h := range d.nodes {
		object := d.world.server.Node(h.Name)
		d.world.book.zoneFollowed.Do(h, object)
		if d.world.book.servesBeforeNode.Do(object) {
			h.Advance(d.now, current)
		}
		h.Draining = d.world.draining(object)
	}
}

// A node is in the zone that its object says at the moment.
var zoneFollowed = rule.New("node-zone-followed", func(h *host, object *corev1.Node) {
	if object != nil {
		h.Zone = object.Labels[corev1.LabelTopologyZone]
	}
}, spec.ProxyNodeZoneFollowed)

// Cluster IPs are served whatever is known of the node: who gives it its addresses may need them.
var servesBeforeNode = rule.New("proxy-serves-before-node", func(*corev1.Node) bool { return true }, spec.ProxyStartBeforeNode)

// draining reports whether a node is about to be removed (KEP-3836).
func (w *world) draining(n *corev1.Node) bool {
	if n == nil || w.book.deletedNodeDrains.Do(n) {
		return true
	}
	for _, t := range n.Spec.Taints {
		if t.Key == "ToBeDeletedByClusterAutoscaler" {
			return true
		}
	}
	return false
}

// StartPod implements candidate.DataPlane.
func (d *dataPlane) StartPod(_ context.Context, as candidate.Pod) (candidate.Pod, error) {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	p, err := d.world.startPod(as)
	if err != nil {
		return candidate.Pod{}, err
	}
	d.pods[p.PodName] = p
	d.advance()
	return p.Pod, nil
}

// LendPod implements candidate.DataPlane.
func (d *dataPlane) LendPod(_ context.Context, node string, ports []candidate.PodPort) (candidate.Pod, error) {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	if d.lent == nil {
		return candidate.Pod{}, errors.New("the data plane was released")
	}
	p, number, found := d.world.idle.Take(node)
	if !found {
		name := candidate.PodName{Namespace: metav1.NamespaceDefault, Name: fmt.Sprintf("%s-client-%d", node, number)}
		var err error
		if p, err = d.world.startPod(candidate.Pod{PodName: name, Node: node, Ports: ports}); err != nil {
			return candidate.Pod{}, err
		}
	}
	d.lent[p.PodName] = p
	return p.Pod, nil
}

// withPod does something with a pod of the lease.
func (d *dataPlane) withPod(name candidate.PodName, do func(*pod) error) error {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	p := d.pods[name]
	if p == nil {
		return fmt.Errorf("there is no pod %s of this lease", name)
	}
	d.advance() // what was programmed before
	if err := do(p); err != nil {
		return err
	}
	d.advance()
	return nil
}

// SetReady implements candidate.DataPlane.
func (d *dataPlane) SetReady(_ context.Context, name candidate.PodName, ready bool) error {
	return d.withPod(name, func(p *pod) error {
		return d.world.changePod(p, func(o *corev1.Pod) { o.Status.Conditions = readiness(ready) })
	})
}

// AnswerReadiness implements candidate.DataPlane: the kubelet notices at once.
func (d *dataPlane) AnswerReadiness(ctx context.Context, name candidate.PodName, ready bool) error {
	return d.SetReady(ctx, name, d.world.book.probeDecides.Do(ready))
}

// Environment implements candidate.DataPlane.
func (d *dataPlane) Environment(_ context.Context, name candidate.PodName) (told []string, err error) {
	err = d.withPod(name, func(p *pod) error {
		told = slices.Clone(p.environment)
		return nil
	})
	return told, err
}

// gracePeriod of a pod that terminates, in seconds: longer than any check.
const gracePeriod = 3600

// Terminate implements candidate.DataPlane.
func (d *dataPlane) Terminate(_ context.Context, name candidate.PodName) error {
	return d.withPod(name, func(p *pod) error {
		p.life = d.world.book.terminatingLives.Do(p.life)
		return d.world.changePod(p, func(o *corev1.Pod) {
			end := metav1.NewTime(d.now.Add(gracePeriod * time.Second))
			grace := int64(gracePeriod)
			o.DeletionTimestamp, o.DeletionGracePeriodSeconds = &end, &grace
		})
	})
}

// Kill implements candidate.DataPlane.
func (d *dataPlane) Kill(_ context.Context, name candidate.PodName) error {
	return d.withPod(name, func(p *pod) error {
		p.killed = true
		p.life++
		return nil
	})
}

// Remove implements candidate.DataPlane.
func (d *dataPlane) Remove(_ context.Context, name candidate.PodName) error {
	return d.withPod(name, func(p *pod) error {
		delete(d.pods, name)
		return d.world.removePod(p)
	})
}

// Diagnose implements candidate.DataPlane: a fault of the reference needs no diagnosis.
func (d *dataPlane) Diagnose(context.Context, netip.AddrPort) (string, error) { return "", nil }

// Restart implements candidate.ServerOwner.
func (d *dataPlane) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error {
	if err := d.controlPlane.Restart(ctx, serviceCIDRs...); err != nil {
		return err
	}
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	for _, h := range d.nodes {
		h.MeetServerAgain()
	}
	d.advance()
	return nil
}

// AddNode implements candidate.NodeOwner.
func (d *dataPlane) AddNode(_ context.Context, as candidate.Node, config candidate.ProxyConfiguration) (candidate.Node, error) {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	h, err := d.world.addNode(as, true)
	if err != nil {
		return candidate.Node{}, err
	}
	d.nodes[h.Name] = h
	if !config.Absent {
		h.Start(config)
	}
	d.advance()
	return h.Node.Node, nil
}

// withNode does something with a node of the lease's own.
func (d *dataPlane) withNode(name string, do func(*host)) error {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	h := d.nodes[name]
	if h == nil {
		return fmt.Errorf("there is no node %q of this lease", name)
	}
	d.advance()
	do(h)
	d.advance()
	return nil
}

// StartProxy implements candidate.NodeOwner.
func (d *dataPlane) StartProxy(_ context.Context, node string, config candidate.ProxyConfiguration) error {
	return d.withNode(node, func(h *host) {
		if config.Rewrite {
			h.Rewrite(config)
			return
		}
		h.Stop()
		h.Start(config)
	})
}

// StopProxy implements candidate.NodeOwner.
func (d *dataPlane) StopProxy(_ context.Context, node string) error {
	return d.withNode(node, func(h *host) { h.Stop() })
}

// ProxyState implements candidate.NodeOwner.
func (d *dataPlane) ProxyState(_ context.Context, node string) (state candidate.ProxyState, err error) {
	err = d.withNode(node, func(h *host) { state.Running = h.Running() })
	return state, err
}

// StopControllers implements candidate.ControllerOwner.
func (d *dataPlane) StopControllers(context.Context) error {
	d.world.server.RunControllers(false)
	return nil
}

// StartControllers implements candidate.ControllerOwner.
func (d *dataPlane) StartControllers(context.Context) error {
	d.world.mu.Lock()
	defer d.world.mu.Unlock()
	d.world.server.RunControllers(true)
	d.advance()
	return nil
}

// Interfere implements candidate.NodeOwner.
func (d *dataPlane) Interfere(_ context.Context, node string, what candidate.Interference) error {
	return d.withNode(node, func(h *host) { h.Interfere(what) })
}
