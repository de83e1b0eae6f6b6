package cluster

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/agent"
)

// nodesNeeded is how many nodes checks of traffic need: one with endpoints, one with others, one without any.
const nodesNeeded = 3

// withoutDataPlane tells why the cluster offers no data plane; nil if it does.
func (c *Cluster) withoutDataPlane() error {
	switch {
	case c.options.AgentImage == "":
		return candidate.UnavailableHere("--agent-image", "there is no image for the pods of checks: push one (conformance image push)")
	case len(c.nodes) < nodesNeeded:
		return candidate.UnavailableHere(fmt.Sprintf("a cluster of %d nodes", nodesNeeded), "the cluster has %d nodes that are ready and schedulable, and checks of traffic need %d", len(c.nodes), nodesNeeded)
	}
	return nil
}

// DataPlane implements candidate.Candidate. Pods of the agent run in the namespace of the check, and some are lent from
// check to check. All leases share one in the host network of each node that a client is on.
func (c *Cluster) DataPlane(ctx context.Context, request candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	if err := c.withoutDataPlane(); err != nil {
		return nil, err
	}
	if request.DualStack && len(c.cidrs) < 2 {
		return nil, candidate.UnavailableHere("a cluster of both families, such as --service-cidr 10.96.0.0/16,fd00:10:96::/112", "the cluster is single-stack")
	}
	lent, err := c.spares.lend(ctx, request.OwnNodes)
	if err != nil {
		return nil, err
	}
	share, err := c.turn.share(ctx)
	if err != nil {
		lent.back()
		return nil, err
	}
	unlock := func() {
		share()
		lent.back()
	}
	d := &dataPlane{controlPlane: controlPlane{cluster: c, release: unlock}, lent: lent, id: fmt.Sprintf("%s-%d", c.runID, c.leases.Add(1))}
	if request.LendNamespace {
		if d.namespace, err = c.takeNamespace(ctx); err != nil {
			unlock()
			return nil, err
		}
	}
	if c.options.Outside != nil {
		d.addresses = c.external.Take()
	}
	return d, nil
}

// dataPlane is one lease.
type dataPlane struct {
	controlPlane
	id        string
	addresses []netip.Addr
	namespace string // that was lent; empty if none was
	pods      candidate.LeasedPods[*pod]
	stopped   stoppedProxies
	lent      *lentNodes // nil if none were

	controllersStopped atomic.Bool
}

var _ candidate.DataPlane = (*dataPlane)(nil)

// LentNamespace implements candidate.NamespaceLender.
func (d *dataPlane) LentNamespace() string { return d.namespace }

// Nodes implements candidate.DataPlane.
func (d *dataPlane) Nodes() []candidate.Node { return slices.Clone(d.cluster.nodes) }

// ExternalAddresses implements candidate.DataPlane: none where there is no client outside of the cluster.
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

// Send implements candidate.DataPlane: one request to each agent carries all the probes of its client.
func (d *dataPlane) Send(ctx context.Context, probes []candidate.Probe) ([][]candidate.Outcome, error) {
	batches := map[candidate.Client][]int{}
	for i, p := range probes {
		batches[p.From] = append(batches[p.From], i)
	}
	outcomes := make([][]candidate.Outcome, len(probes))
	var mu sync.Mutex
	var errs []error
	var sent sync.WaitGroup
	for from, indices := range batches {
		sent.Go(func() {
			batch := make([]candidate.Probe, len(indices))
			for k, i := range indices {
				batch[k] = probes[i]
			}
			answers, err := d.sendFrom(ctx, from, batch)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			for k, i := range indices {
				outcomes[i] = answers[k]
			}
		})
	}
	sent.Wait()
	// What the candidate does not offer comes before what failed.
	if i := slices.IndexFunc(errs, candidate.IsUnavailable); i >= 0 {
		return nil, errs[i]
	}
	return outcomes, errors.Join(errs...)
}

func (d *dataPlane) sendFrom(ctx context.Context, from candidate.Client, batch []candidate.Probe) ([][]candidate.Outcome, error) {
	client, err := d.client(ctx, from)
	if err != nil {
		return nil, err
	}
	answers, err := client.Probe(ctx, d.id, batch)
	if err != nil {
		return nil, fmt.Errorf("probe from the %s: %w", from, err)
	}
	if len(answers) != len(batch) {
		return nil, fmt.Errorf("probe from the %s: the agent answered %d of %d probes", from, len(answers), len(batch))
	}
	return answers, nil
}

// client returns the agent that sends for a client.
func (d *dataPlane) client(ctx context.Context, from candidate.Client) (*agent.Client, error) {
	switch {
	case from.Gateway != "":
		if err := d.cluster.withoutOutside(from.Gateway); err != nil {
			return nil, err
		}
		return d.cluster.options.Outside.agent(), nil
	case from.Balanced: // by the address that its machine has, and the way that it knows
		if err := d.cluster.withoutAgentOutside(); err != nil {
			return nil, err
		}
		return d.cluster.options.Outside.agent(), nil
	case from.Node != "":
		return d.cluster.host(ctx, from.Node)
	}
	p, err := d.pods.Sender(from.Pod)
	if err != nil {
		return nil, err
	}
	return p.agent, nil
}

// Resolve implements candidate.DataPlane: an agent asks the name server that its pod was given.
func (d *dataPlane) Resolve(ctx context.Context, questions []candidate.Question) ([]candidate.Resolution, error) {
	client, err := d.cluster.resolver(ctx)
	if err != nil {
		return nil, err
	}
	return client.Resolve(ctx, "", questions) // its pod was told the domain; the API does not tell it
}

// Diagnose implements candidate.DataPlane: the endpoints that the API lists for the Service.
func (d *dataPlane) Diagnose(ctx context.Context, to netip.AddrPort) (string, error) {
	services, err := d.cluster.client.CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	if err != nil {
		return "", err
	}
	s := candidate.ServiceAt(services.Items, to)
	if s == nil {
		return fmt.Sprintf("no Service has %s", to), nil
	}
	var out strings.Builder
	fmt.Fprintf(&out, "Service %s/%s (%s)\n", s.Namespace, s.Name, s.Spec.Type)
	slicesOf, err := d.cluster.client.DiscoveryV1().EndpointSlices(s.Namespace).List(ctx, metav1.ListOptions{LabelSelector: "kubernetes.io/service-name=" + s.Name})
	if err != nil {
		return "", err
	}
	for _, slice := range slicesOf.Items {
		for _, e := range slice.Endpoints {
			fmt.Fprintf(&out, "  %s on %s: %s\n", strings.Join(e.Addresses, ","), ptr.Deref(e.NodeName, "no node"), conditions(e.Conditions.Ready, e.Conditions.Serving, e.Conditions.Terminating))
		}
	}
	return out.String(), nil
}

func conditions(ready, serving, terminating *bool) string {
	var words []string
	for i, b := range []*bool{ready, serving, terminating} {
		if b != nil && *b {
			words = append(words, []string{"ready", "serving", "terminating"}[i])
		}
	}
	if len(words) == 0 {
		return "not ready"
	}
	return strings.Join(words, ", ")
}

// Release implements candidate.ControlPlane: it removes the pods of the lease, and takes back those that were lent.
func (d *dataPlane) Release() {
	defer d.controlPlane.Release()
	d.startStopped()
	starting, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	_ = d.StartControllers(starting) // the cluster is for tests alone
	pods, lent := d.pods.Release()
	ctx, cancel := context.WithTimeout(context.Background(), candidate.InsistTimeout)
	defer cancel()
	var gone sync.WaitGroup
	gone.Go(func() { d.lent.reset(ctx) })
	var back []*pod // into the namespace that was lent
	for _, p := range pods {
		if p.lent && !p.ended.Load() {
			back = append(back, p)
			gone.Go(func() { _ = p.agent.End(ctx, d.id) }) // connections that stay open harm nobody
			continue
		}
		gone.Go(func() { _ = p.remove(ctx) }) // the namespace goes with the check, or is cleaned, and with it what remained
	}
	for _, p := range lent {
		gone.Go(func() {
			_ = p.agent.End(ctx, d.id) // connections that stay open harm nobody
			d.cluster.hosts.idle.Return(p.Node, p)
		})
	}
	gone.Go(func() { d.cluster.endLease(ctx, d.id) })
	gone.Wait()
	if d.namespace != "" {
		d.cluster.giveBack(d.namespace, back)
	}
}

// nodesOf returns the nodes that are ready and schedulable, those that run no control plane first.
func nodesOf(list *corev1.NodeList) []candidate.Node {
	var workers, others []candidate.Node
	for _, n := range list.Items {
		if !usable(&n) {
			continue
		}
		node := candidate.Node{Name: n.Name, Zone: n.Labels[corev1.LabelTopologyZone], Addresses: addressesOf(&n)}
		if _, control := n.Labels["node-role.kubernetes.io/control-plane"]; control {
			others = append(others, node)
		} else {
			workers = append(workers, node)
		}
	}
	return append(workers, others...)
}

// addressesOf are those of a node.
func addressesOf(n *corev1.Node) (all []netip.Addr) {
	for _, a := range n.Status.Addresses {
		if ip, err := netip.ParseAddr(a.Address); err == nil && a.Type == corev1.NodeInternalIP {
			all = append(all, ip)
		}
	}
	return all
}

// nobodyIn are the last addresses of the pod ranges of the last node, one of each family. Pods are given the first
// ones, and a node has room for fewer. What is sent to them is routed within the cluster. They are none where nodes
// have no pod ranges.
func nobodyIn(list *corev1.NodeList) (nobody []netip.Addr) {
	for i := len(list.Items) - 1; i >= 0 && len(nobody) == 0; i-- {
		if !usable(&list.Items[i]) {
			continue
		}
		for _, text := range list.Items[i].Spec.PodCIDRs {
			p, err := netip.ParsePrefix(text)
			if err != nil || p.Addr().BitLen()-p.Bits() < 8 { // a small range may be used up
				continue
			}
			bytes := p.Masked().Addr().AsSlice()
			for bit := p.Bits(); bit < p.Addr().BitLen()-1; bit++ {
				bytes[bit/8] |= 0x80 >> (bit % 8)
			}
			a, _ := netip.AddrFromSlice(bytes) // the one before the last: that of IPv4 is for broadcasts
			nobody = append(nobody, a)
		}
	}
	return nobody
}

// usable reports whether a node stays, as far as can be seen. The taint of a control plane (NoSchedule) does not keep pods of checks away, which are bound to their node.
func usable(n *corev1.Node) bool {
	ready := slices.ContainsFunc(n.Status.Conditions, func(c corev1.NodeCondition) bool {
		return c.Type == corev1.NodeReady && c.Status == corev1.ConditionTrue
	})
	leaves := slices.ContainsFunc(n.Spec.Taints, func(t corev1.Taint) bool { return t.Effect == corev1.TaintEffectNoExecute || t.Key == taintToBeDeleted })
	_, spare := n.Labels[candidate.SpareLabel]
	return ready && !spare && !leaves && !n.Spec.Unschedulable && n.Labels[corev1.LabelOSStable] != "windows"
}

// taintToBeDeleted is what the cluster autoscaler gives a node that it is about to remove.
const taintToBeDeleted = "ToBeDeletedByClusterAutoscaler"
