package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
)

// A pod is cheap to keep and dear to start. A lease that asks for it is lent a namespace with the pods that earlier
// leases have started there. Services select pods by labels, and labels can be changed.

// backends are the namespaces that are lent to one lease after the other, and the pods in them that nobody has.
type backends struct {
	mu      sync.Mutex
	changed chan struct{} // closed when a namespace becomes idle, or will not
	idle    []string      // namespaces
	busy    int           // how many namespaces are being cleaned
	made    []string      // all namespaces that may exist

	cleaning sync.WaitGroup
	pods     candidate.IdlePods[*pod] // by namespace and node
}

// lentLabel marks the pods that stay in a namespace that is lent.
const lentLabel = "service-conformance/lent"

// cleanWait is how long a lease waits for a namespace that is being cleaned. Then it gets a new one, whose pods must
// start first.
const cleanWait = 3 * time.Second

// cleanTimeout bounds the cleaning of a namespace. One that does not get clean is deleted.
const cleanTimeout = 20 * time.Second

// takeNamespace returns a namespace that nobody has.
func (c *Cluster) takeNamespace(ctx context.Context) (string, error) {
	b := &c.backends
	waited := time.NewTimer(cleanWait)
	defer waited.Stop()
	b.mu.Lock()
	for len(b.idle) == 0 && b.busy > 0 {
		if b.changed == nil {
			b.changed = make(chan struct{})
		}
		changed, late := b.changed, false
		b.mu.Unlock()
		select {
		case <-changed:
		case <-waited.C:
			late = true
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
		b.mu.Lock()
		if late {
			break
		}
	}
	if n := len(b.idle); n > 0 {
		name := b.idle[0]
		b.idle = b.idle[1:]
		b.mu.Unlock()
		return name, nil
	}
	name := fmt.Sprintf("conformance-%s-lent-%d", c.runID, len(b.made)+1)
	b.made = append(b.made, name) // before it exists: whatever becomes of the request, Close looks for it
	b.mu.Unlock()
	// An interruption must not cut the request off: the server could carry it out after Close has been here.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), candidate.InsistTimeout)
	defer cancel()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{candidate.RunLabel: c.runID}}}
	if _, err := candidate.Create(ctx, c.client.CoreV1().Namespaces(), ns); err != nil {
		return "", fmt.Errorf("create a namespace to lend: %w", err)
	}
	return name, nil
}

// giveBack cleans a namespace in the background, and lends it again. Its pods are unlabelled before: nothing of a later lease may select them by chance.
func (c *Cluster) giveBack(name string, pods []*pod) {
	b := &c.backends
	b.mu.Lock()
	b.busy++
	b.mu.Unlock()
	b.cleaning.Go(func() {
		ctx, cancel := context.WithTimeout(context.Background(), cleanTimeout)
		defer cancel()
		err := c.cleanNamespace(ctx, name, pods)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.busy--
		if err == nil {
			b.idle = append(b.idle, name)
		}
		if b.changed != nil {
			close(b.changed)
			b.changed = nil
		}
	})
}

// cleanNamespace removes what a lease has left, and returns its pods to those that are lent. Services are gone: the check has deleted them.
func (c *Cluster) cleanNamespace(ctx context.Context, name string, pods []*pod) error {
	zero := int64(0)
	now := metav1.DeleteOptions{GracePeriodSeconds: &zero}
	errs := make([]error, len(pods)+3)
	var done sync.WaitGroup
	for i, p := range pods {
		done.Go(func() { errs[i] = p.relabel(ctx, nil) })
	}
	for i, remove := range []func() error{
		func() error {
			return c.client.CoreV1().Pods(name).DeleteCollection(ctx, now, metav1.ListOptions{LabelSelector: "!" + lentLabel})
		},
		func() error {
			return c.client.CoreV1().Endpoints(name).DeleteCollection(ctx, now, metav1.ListOptions{})
		},
		func() error { return c.noSlices(ctx, name) },
	} {
		done.Go(func() { errs[len(pods)+i] = remove() })
	}
	done.Wait()
	if err := errors.Join(errs...); err != nil {
		for _, p := range pods {
			_ = p.remove(ctx) // the namespace goes with the run
		}
		return err
	}
	for _, p := range pods {
		if p.readyAgain(ctx) != nil {
			_ = p.remove(ctx) // what does not get ready is lent to nobody
			continue
		}
		c.backends.pods.Return(name+"/"+p.Node, p)
	}
	return nil
}

// noSlices deletes the EndpointSlices of a namespace until there are none. Their controller deletes those of deleted
// Services in its own time; the others are those of checks.
func (c *Cluster) noSlices(ctx context.Context, name string) error {
	slices := c.client.DiscoveryV1().EndpointSlices(name)
	for {
		if err := slices.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
			return err
		}
		left, err := slices.List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		if len(left.Items) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// lendBackend returns a pod of the lease's namespace that is as a check wants it, under a name of its own.
func (d *dataPlane) lendBackend(ctx context.Context, as candidate.Pod) (candidate.Pod, error) {
	key := as.Namespace + "/" + as.Node
	for {
		if err := ctx.Err(); err != nil {
			return candidate.Pod{}, err
		}
		p, number, found := d.cluster.backends.pods.Take(key)
		if !found {
			p = &pod{Pod: as, cluster: d.cluster, readyBy: readyByGate, lent: true}
			p.Name = fmt.Sprintf("backend-%s-%d", as.Node, number)
			if err := d.pods.AddOwn(p.PodName, p); err != nil { // also while it starts, so that Release finds it
				return candidate.Pod{}, err
			}
			err := p.start(ctx)
			return p.Pod, err
		}
		if err := d.pods.AddOwn(p.PodName, p); err != nil {
			d.cluster.backends.pods.Return(key, p)
			return candidate.Pod{}, err
		}
		if !p.stillAnswers(ctx) || p.relabel(ctx, as.Labels) != nil { // somebody has ended it
			d.pods.Forget(p.PodName)
			_ = p.remove(ctx)
			continue
		}
		p.Labels = as.Labels
		return p.Pod, nil
	}
}

// relabel gives a pod that is lent the labels that a check wants, and takes those of earlier ones away.
func (p *pod) relabel(ctx context.Context, labels map[string]string) error {
	all := map[string]string{candidate.RunLabel: p.cluster.runID, lentLabel: "true"}
	maps.Copy(all, labels)
	value, err := json.Marshal([]map[string]any{{"op": "replace", "path": "/metadata/labels", "value": all}})
	if err != nil {
		return err
	}
	return candidate.Patch(ctx, p.cluster.client.CoreV1().Pods(p.Namespace), p.Name, types.JSONPatchType, string(value))
}

// removeBackends deletes the namespaces that were lent, and what is in them.
func (c *Cluster) removeBackends(ctx context.Context) error {
	c.backends.cleaning.Wait()
	c.backends.mu.Lock()
	made := c.backends.made
	c.backends.mu.Unlock()
	errs := make([]error, len(made))
	var done sync.WaitGroup
	for i, name := range made {
		done.Go(func() { errs[i] = c.removeShared(ctx, name) })
	}
	done.Wait()
	return errors.Join(errs...)
}

// removeShared deletes a namespace of pods that leases share. What is wrong with the pods does not let the namespace stay.
func (c *Cluster) removeShared(ctx context.Context, name string) error {
	zero := int64(0)
	remove := func(what string, ask func() error) error {
		if err := candidate.Insist(ctx, func(bool) error { return ask() }); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete %s: %w", what, err)
		}
		return nil
	}
	return errors.Join(
		remove("the pods of namespace "+name, func() error {
			return c.client.CoreV1().Pods(name).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &zero}, metav1.ListOptions{})
		}),
		remove("namespace "+name, func() error { return c.client.CoreV1().Namespaces().Delete(ctx, name, metav1.DeleteOptions{}) }))
}
