package dataplane

import (
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/traffic"
)

// pod is a pod of a lease. It has a network namespace behind its node, a backend in it, and the Pod object, which is
// kept as a kubelet would.
type pod struct {
	candidate.Pod
	node    *Node
	network *network.Pod // nil on the host network and outside
	outside *network.Outside
	// plugged is set while what the pod-setup command did stands.
	plugged bool

	mu      sync.Mutex
	backend *traffic.Server // nil once it was killed
}

// namespace is where the pod's sockets are.
func (p *pod) namespace() *network.Namespace {
	switch {
	case p.network != nil:
		return p.network.Namespace
	case p.outside != nil:
		return p.outside.Namespace
	}
	return p.node.network.Namespace
}

// StartPod implements candidate.DataPlane.
func (d *dataPlane) StartPod(ctx context.Context, as candidate.Pod) (_ candidate.Pod, err error) {
	n, err := d.node(as.Node)
	if err != nil {
		return candidate.Pod{}, err
	}
	p, err := n.startPod(as)
	if err != nil {
		return candidate.Pod{}, err
	}
	defer func() {
		if err != nil {
			_ = p.remove(ctx) // the error that matters is the first one
		}
	}()
	if !p.Outside {
		if err := p.register(ctx); err != nil {
			return candidate.Pod{}, err
		}
	}
	if err := d.pods.AddOwn(p.PodName, p); err != nil {
		return candidate.Pod{}, err
	}
	return p.Pod, nil
}

// LendPod implements candidate.DataPlane. The pods end with the lab.
func (d *dataPlane) LendPod(ctx context.Context, node string, ports []candidate.PodPort) (_ candidate.Pod, err error) {
	p, number, found := d.world.idle.Take(node)
	if !found {
		n, err := d.node(node)
		if err != nil {
			return candidate.Pod{}, err
		}
		name := candidate.PodName{Namespace: d.world.clients, Name: fmt.Sprintf("%s-client-%d", node, number)}
		if p, err = n.startPod(candidate.Pod{PodName: name, Node: node, Ports: ports}); err != nil {
			return candidate.Pod{}, err
		}
		if err := p.register(ctx); err != nil {
			_ = p.remove(ctx) // the error that matters is the first one
			return candidate.Pod{}, err
		}
	}
	if err := d.pods.AddLent(p.PodName, p); err != nil {
		d.world.idle.Return(node, p)
		return candidate.Pod{}, err
	}
	return p.Pod, nil
}

// startPod makes the network of a pod and a backend in it. The API does not know of it yet.
func (n *Node) startPod(as candidate.Pod) (_ *pod, err error) {
	p := &pod{Pod: as, node: n}
	p.Ports = slices.Clone(as.Ports)
	defer func() {
		if err != nil {
			p.stop()
		}
	}()
	p.Addresses = n.network.Addresses
	switch {
	case as.Outside:
		if p.outside, err = n.world.outsideOf(n); err != nil {
			return nil, err
		}
		p.Addresses = nil
		for _, own := range p.outside.Addresses {
			p.Addresses = append(p.Addresses, own[candidate.OutsideBackend])
		}
	case !as.HostNetwork:
		if p.network, err = n.network.AddPod(); err != nil {
			return nil, err
		}
		p.Addresses = p.network.Addresses
		if as.Narrow {
			if err := p.network.Narrow(candidate.NarrowMTU); err != nil {
				return nil, err
			}
		}
		if p.plugged, err = n.setUpPod(p); err != nil {
			return nil, err
		}
	}
	if p.backend, err = traffic.Serve(p.PodName, p.Ports, p.namespace().Do); err != nil {
		return nil, err
	}
	for i, port := range p.backend.Ports() {
		p.Ports[i].Number = port.Number // where any would do
	}
	return p, nil
}

// startedAnnotation marks the pods that a run has started and will end: the pod agent of a lab that stays leaves them alone.
const startedAnnotation = "service-conformance/started"

// register makes the Pod object and says that it runs.
func (p *pod) register(ctx context.Context) error {
	container := corev1.Container{Name: "backend", Image: "backend"}
	for _, port := range p.Ports {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: port.Name, Protocol: port.Protocol, ContainerPort: int32(port.Number)})
	}
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: p.Name, Namespace: p.Namespace, Labels: p.Labels, Annotations: map[string]string{startedAnnotation: "true"},
		},
		Spec: corev1.PodSpec{
			NodeName: p.node.Name, Containers: []corev1.Container{container}, HostNetwork: p.HostNetwork, Hostname: p.Hostname, Subdomain: p.Subdomain,
		},
	}
	pods := p.node.world.Api.CoreV1().Pods(p.Namespace)
	created, err := candidate.Create(ctx, pods, object)
	if err != nil {
		return fmt.Errorf("create pod %s: %w", p.PodName, err)
	}
	created.Status = p.status()
	if err := candidate.SetStatus(ctx, pods, created); err != nil {
		return fmt.Errorf("set the status of pod %s: %w", p.PodName, err)
	}
	return nil
}

// status is that of a pod that runs.
func (p *pod) status() corev1.PodStatus {
	now := metav1.Now()
	s := corev1.PodStatus{Phase: corev1.PodRunning, Conditions: readiness(!p.Unready), StartTime: &now}
	s.HostIP = p.node.network.Addresses[0].String()
	for _, a := range p.node.network.Addresses {
		s.HostIPs = append(s.HostIPs, corev1.HostIP{IP: a.String()})
	}
	for _, a := range p.Addresses {
		s.PodIPs = append(s.PodIPs, corev1.PodIP{IP: a.String()})
	}
	s.PodIP = p.Addresses[0].String()
	return s
}

func readiness(ready bool) []corev1.PodCondition {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	now := metav1.Now()
	return []corev1.PodCondition{
		{Type: corev1.PodScheduled, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.PodInitialized, Status: corev1.ConditionTrue, LastTransitionTime: now},
		{Type: corev1.ContainersReady, Status: status, LastTransitionTime: now},
		{Type: corev1.PodReady, Status: status, LastTransitionTime: now},
	}
}

// SetReady implements candidate.DataPlane.
func (d *dataPlane) SetReady(ctx context.Context, name candidate.PodName, ready bool) error {
	if _, err := d.pods.Own(name); err != nil {
		return err
	}
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":"Ready","status":%q},{"type":"ContainersReady","status":%q}]}}`, status, status)
	err := candidate.Patch(ctx, d.world.Api.CoreV1().Pods(name.Namespace), name.Name, types.StrategicMergePatchType, patch, "status")
	if err != nil {
		return fmt.Errorf("set the readiness of pod %s: %w", name, err)
	}
	return nil
}

// gracePeriod of a pod that terminates, in seconds: longer than any check.
const gracePeriod = 3600

// Pods of the lab are network namespaces: no kubelet starts a container in them, or probes it.

var errNoKubelet = candidate.Unavailable("the pods of the lab are run by no kubelet")

// AnswerReadiness implements candidate.DataPlane.
func (d *dataPlane) AnswerReadiness(context.Context, candidate.PodName, bool) error {
	return errNoKubelet
}

// Environment implements candidate.DataPlane.
func (d *dataPlane) Environment(context.Context, candidate.PodName) ([]string, error) {
	return nil, errNoKubelet
}

// Terminate implements candidate.DataPlane.
func (d *dataPlane) Terminate(ctx context.Context, name candidate.PodName) error {
	if _, err := d.pods.Own(name); err != nil {
		return err
	}
	grace := int64(gracePeriod)
	err := candidate.Delete(ctx, d.world.Api.CoreV1().Pods(name.Namespace), name.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// Kill implements candidate.DataPlane.
func (d *dataPlane) Kill(_ context.Context, name candidate.PodName) error {
	p, err := d.pods.Own(name)
	if err != nil {
		return err
	}
	p.kill()
	return nil
}

func (p *pod) kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.backend != nil {
		p.backend.Close()
		p.backend = nil
	}
}

// Remove implements candidate.DataPlane.
func (d *dataPlane) Remove(ctx context.Context, name candidate.PodName) error {
	p, err := d.pods.Own(name)
	if err != nil {
		return err
	}
	d.pods.Forget(name)
	return p.remove(ctx)
}

// stop ends the backend and takes the pod off the network.
func (p *pod) stop() {
	p.kill()
	if p.network != nil {
		if p.plugged {
			p.plugged = false
			p.node.tearDownPod(p)
		}
		p.network.Remove()
	}
}

// remove is stop, and takes the pod out of the API. An interruption does not keep it from that.
func (p *pod) remove(ctx context.Context) error {
	p.stop()
	if p.Outside {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), candidate.InsistTimeout)
	defer cancel()
	zero := int64(0)
	err := candidate.Delete(ctx, p.node.world.Api.CoreV1().Pods(p.Namespace), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", p.PodName, err)
	}
	return nil
}
