package cluster

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Proxies stop the service proxies of a cluster's nodes, which are those of a DaemonSet of kube-proxy. To start one anew, its pod is deleted: what only ended in its pod would
// be started by the kubelet after a pause that grows each time.
type Proxies interface {
	// Stop keeps the proxy of a node from running until its pod is deleted. It may be called for a proxy that is stopped.
	Stop(ctx context.Context, node string) error
}

// kubeProxyPods selects the pods of kube-proxy, as kubeadm makes them.
const kubeProxyPods = "k8s-app=kube-proxy"

// startProxy deletes the pod of a node's kube-proxy. Its DaemonSet makes another one.
func (c *Cluster) startProxy(ctx context.Context, node string) error {
	pods := c.client.CoreV1().Pods(metav1.NamespaceSystem)
	there, err := pods.List(ctx, metav1.ListOptions{LabelSelector: kubeProxyPods, FieldSelector: "spec.nodeName=" + node})
	if err != nil {
		return fmt.Errorf("list the pods of kube-proxy: %w", err)
	}
	if len(there.Items) == 0 {
		return fmt.Errorf("node %s has no pod of kube-proxy", node)
	}
	second := int64(1)
	for _, p := range there.Items {
		if err := pods.Delete(ctx, p.Name, metav1.DeleteOptions{GracePeriodSeconds: &second}); err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("delete the pod %s of kube-proxy: %w", p.Name, err)
		}
	}
	return nil
}

// stoppedProxies are the nodes whose proxies a lease has stopped.
type stoppedProxies struct {
	mu    sync.Mutex
	nodes []string
}

var _ candidate.NodeOwner = (*dataPlane)(nil)

// notOurs says why the nodes are as they are.
func notOurs() error {
	return candidate.UnavailableHere("--tier lab or kind", "the nodes, and how their proxies are configured, are not a check's")
}

// StopProxy implements candidate.NodeOwner: for a node that was lent, and one that checks share (capability proxy-stops).
func (d *dataPlane) StopProxy(ctx context.Context, node string) error {
	if d.lent.has(node) {
		return d.cluster.options.Spares.Stop(ctx, node)
	}
	if d.cluster.options.Proxies == nil {
		return notOurs()
	}
	d.stopped.mu.Lock()
	defer d.stopped.mu.Unlock()
	d.stopped.nodes = append(d.stopped.nodes, node)
	return d.cluster.options.Proxies.Stop(ctx, node)
}

// StartProxy implements candidate.NodeOwner. The configuration of a node that checks share is that of its proxy.
func (d *dataPlane) StartProxy(ctx context.Context, node string, p candidate.ProxyConfiguration) error {
	if d.lent.has(node) {
		return d.cluster.options.Spares.Start(ctx, node, p)
	}
	if d.cluster.options.Proxies == nil {
		return notOurs()
	}
	d.stopped.mu.Lock()
	defer d.stopped.mu.Unlock()
	err := d.cluster.startProxy(ctx, node)
	if err == nil {
		d.stopped.nodes = slices.DeleteFunc(d.stopped.nodes, func(n string) bool { return n == node })
	}
	return err
}

// startWithin bounds how long it may take to start what a check has left stopped.
const startWithin = 30 * time.Second

// startStopped starts the proxies that a check has left stopped.
func (d *dataPlane) startStopped() {
	d.stopped.mu.Lock()
	defer d.stopped.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), startWithin)
	defer cancel()
	for _, node := range d.stopped.nodes {
		_ = d.cluster.startProxy(ctx, node) // the cluster is for tests alone
	}
	d.stopped.nodes = nil
}
