package cluster

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
)

// SpareNodes are nodes of the cluster (candidate.SpareLabel) on which no DaemonSet runs kube-proxy. What a check has there is its own: a process of the cluster's
// program, with the cluster's configuration as the check changes it. All methods are safe for concurrent use.
type SpareNodes interface {
	// Secondary are addresses that a node has beside those of its Node object, by name of each node.
	Secondary() map[string][]netip.Addr
	// IPVS reports whether the nodes can have a proxy in ipvs mode.
	IPVS() bool
	// Start starts kube-proxy instead of a running one. With Rewrite it changes the file of a running one. The error is an *UnavailableError if the nodes cannot have such a proxy.
	Start(ctx context.Context, node string, proxy candidate.ProxyConfiguration) error
	// Synchronised returns when the running proxy has written its rules.
	Synchronised(ctx context.Context, node string) error
	// Stop ends the proxy as a crash would.
	Stop(ctx context.Context, node string) error
	// State tells whether the proxy runs, and the end of its log.
	State(ctx context.Context, node string) (candidate.ProxyState, error)
	// Interfere does something to a node behind the proxy's back.
	Interfere(ctx context.Context, node string, what candidate.Interference) error
	// Reset makes the node as it was before a check had it.
	Reset(ctx context.Context, node string) error
}

// spares are the spare nodes. A lease has those that it asks for from its beginning, so that two leases never wait for each other.
type spares struct {
	SpareNodes
	cluster *Cluster
	objects map[string]*corev1.Node // as they were
	door    chan struct{}           // who waits for nodes
	free    chan string
	dirty   sync.Map // names of those that could not be reset
}

// newSpares finds the spare nodes; nil if there are none.
func newSpares(c *Cluster, list *corev1.NodeList, nodes SpareNodes) *spares {
	s := &spares{SpareNodes: nodes, cluster: c, objects: map[string]*corev1.Node{}, door: make(chan struct{}, 1)}
	known := nodes.Secondary()
	for i := range list.Items {
		n := &list.Items[i]
		if _, spare := known[n.Name]; spare { // with further addresses or without
			s.objects[n.Name] = n
		}
	}
	if len(s.objects) == 0 {
		return nil
	}
	s.free = make(chan string, len(s.objects))
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		s.free <- name
	}
	return s
}

// lend waits until so many nodes, or all that there are, are free.
func (s *spares) lend(ctx context.Context, n int) (*lentNodes, error) {
	if s == nil || n == 0 {
		return nil, nil
	}
	select {
	case s.door <- struct{}{}:
		defer func() { <-s.door }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	l := &lentNodes{spares: s, used: map[string]bool{}}
	for range min(n, len(s.objects)) {
		select {
		case name := <-s.free:
			l.names = append(l.names, name)
		case <-ctx.Done():
			l.back()
			return nil, context.Cause(ctx)
		}
	}
	return l, nil
}

// lentNodes are the spare nodes of a lease; nil is none.
type lentNodes struct {
	spares *spares
	names  []string

	mu   sync.Mutex
	used map[string]bool
}

func (l *lentNodes) back() {
	if l == nil {
		return
	}
	for _, name := range l.names {
		l.spares.free <- name
	}
}

// next takes one that the lease has not used yet.
func (l *lentNodes) next() (name string, err error) {
	if l == nil {
		return "", notOurs()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, name := range l.names {
		if !l.used[name] {
			l.used[name] = true
			return name, nil
		}
	}
	return "", candidate.UnavailableHere("--tier lab", "the cluster has %d nodes for checks alone", len(l.spares.objects))
}

// has reports whether the lease uses the node.
func (l *lentNodes) has(name string) bool {
	if l == nil {
		return false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.used[name]
}

// reset makes the nodes that were used as they had been.
func (l *lentNodes) reset(ctx context.Context) {
	if l == nil {
		return
	}
	var done sync.WaitGroup
	for name := range l.used {
		was := l.spares.objects[name]
		done.Go(func() {
			_ = l.spares.cluster.asItWas(ctx, was, was.Labels[corev1.LabelTopologyZone]) // AddNode does so again
			if l.spares.Reset(ctx, name) != nil {
				l.spares.dirty.Store(name, true)
			}
		})
	}
	done.Wait()
}

// AddNode implements candidate.NodeOwner: it lends one of the spare nodes.
func (d *dataPlane) AddNode(ctx context.Context, as candidate.Node, proxy candidate.ProxyConfiguration) (candidate.Node, error) {
	name, err := d.lent.next()
	if err != nil {
		return candidate.Node{}, err
	}
	spares := d.cluster.spares
	if _, dirty := spares.dirty.Load(name); dirty { // what an earlier check has left must not be taken for what the proxy does
		if err := spares.Reset(ctx, name); err != nil {
			return candidate.Node{}, fmt.Errorf("reset node %s: %w", name, err)
		}
		spares.dirty.Delete(name)
	}
	if err := d.cluster.asItWas(ctx, spares.objects[name], as.Zone); err != nil {
		return candidate.Node{}, err
	}
	if !proxy.Absent {
		err := spares.Start(ctx, name, proxy)
		if err == nil {
			err = spares.Synchronised(ctx, name)
		}
		if err != nil {
			return candidate.Node{}, fmt.Errorf("kube-proxy on %s: %w", name, err)
		}
	}
	return candidate.Node{Name: name, Zone: as.Zone, Addresses: addressesOf(spares.objects[name]), SecondaryAddresses: spares.Secondary()[name]}, nil
}

// asItWas gives a Node object the labels and taints that it had when the run began, but for the zone.
func (c *Cluster) asItWas(ctx context.Context, was *corev1.Node, zone string) error {
	nodes := c.client.CoreV1().Nodes()
	now, err := nodes.Get(ctx, was.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("read node %s: %w", was.Name, err)
	}
	labels := map[string]any{}
	for key := range now.Labels {
		labels[key] = nil
	}
	for key, value := range was.Labels {
		labels[key] = value
	}
	labels[corev1.LabelTopologyZone] = zone
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}, "spec": map[string]any{"taints": was.Spec.Taints, "unschedulable": was.Spec.Unschedulable}})
	if err != nil {
		return err
	}
	if err := candidate.Patch(ctx, nodes, was.Name, types.MergePatchType, string(patch)); err != nil {
		return fmt.Errorf("restore node %s: %w", was.Name, err)
	}
	return nil
}

// ProxyState implements candidate.NodeOwner.
func (d *dataPlane) ProxyState(ctx context.Context, node string) (candidate.ProxyState, error) {
	if !d.lent.has(node) {
		return candidate.ProxyState{}, notOurs()
	}
	return d.cluster.options.Spares.State(ctx, node)
}

// Interfere implements candidate.NodeOwner.
func (d *dataPlane) Interfere(ctx context.Context, node string, what candidate.Interference) error {
	if !d.lent.has(node) {
		return notOurs()
	}
	return d.cluster.options.Spares.Interfere(ctx, node, what)
}
