package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	watchtools "k8s.io/client-go/tools/watch"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/agent"
)

// controlPort is where an agent is told what to do, in a pod that has a network of its own.
const controlPort = 9599

// firstHostPort is where the ports begin that agents in host networks are told on: below the ephemeral ports, beside the node ports.
const firstHostPort, hostPorts = 20000, 9000

// gracePeriod of a pod that terminates, in seconds: longer than any check.
const gracePeriod = 3600

// orphanGracePeriod is that of a pod whose namespace somebody deletes after the run was killed, in seconds: an agent does not end by itself.
const orphanGracePeriod = 1

// pod is a pod with an agent in it.
type pod struct {
	candidate.Pod
	cluster *Cluster
	agent   *agent.Client
	// readyBy is what decides whether it is ready.
	readyBy readyBy
	// lent pods go on when the lease ends, unless they have ended; touched ones may be unready then.
	lent           bool
	ended, touched atomic.Bool
	// lease is that of a backend outside of the cluster, which has no Pod object; empty for pods.
	lease string
}

// StartPod implements candidate.DataPlane.
func (d *dataPlane) StartPod(ctx context.Context, as candidate.Pod) (_ candidate.Pod, err error) {
	if as.AnyName && as.Namespace == d.namespace && d.namespace != "" {
		return d.lendBackend(ctx, as)
	}
	p := &pod{Pod: as, cluster: d.cluster}
	if err := d.pods.AddOwn(p.PodName, p); err != nil { // also while it starts, so that Release finds it
		return candidate.Pod{}, err
	}
	start := p.start
	if as.Outside {
		start = func(ctx context.Context) error { return d.startOutside(ctx, p) }
	}
	if err := start(ctx); err != nil {
		return candidate.Pod{}, err
	}
	if as.Narrow {
		if err := d.narrow(ctx, p); err != nil {
			return candidate.Pod{}, err
		}
	}
	return p.Pod, nil
}

// LendPod implements candidate.DataPlane. The pods end with the run.
func (d *dataPlane) LendPod(ctx context.Context, node string, ports []candidate.PodPort) (candidate.Pod, error) {
	for {
		if err := ctx.Err(); err != nil {
			return candidate.Pod{}, err
		}
		p, number, found := d.cluster.hosts.idle.Take(node)
		if found && !p.stillAnswers(ctx) {
			_ = p.remove(ctx) // what a kubelet has ended is lent to nobody
			continue
		}
		if !found {
			if err := d.cluster.ensureHostNamespace(ctx); err != nil {
				return candidate.Pod{}, err
			}
			name := candidate.PodName{Namespace: d.cluster.hostNamespace(), Name: fmt.Sprintf("%s-client-%d", node, number)}
			p = &pod{Pod: candidate.Pod{PodName: name, Node: node, Ports: ports}, cluster: d.cluster, readyBy: readyAtStart}
			if err := p.start(ctx); err != nil {
				_ = p.remove(ctx) // the error that matters is the first one
				return candidate.Pod{}, err
			}
		}
		if err := d.pods.AddLent(p.PodName, p); err != nil {
			d.cluster.hosts.idle.Return(node, p)
			return candidate.Pod{}, err
		}
		return p.Pod, nil
	}
}

// stillAnswers asks an agent that has answered before.
func (p *pod) stillAnswers(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return p.agent.Ready(ctx, true) == nil
}

const answerTimeout = 10 * time.Second

// nextHostPort is a port for an agent in the host network of a node, out of those that the shard has.
func (c *Cluster) nextHostPort() int {
	first, size := c.options.Shard.Share(hostPorts)
	return firstHostPort + first + int(c.hostPort.Add(1))%size
}

// start creates the pod and waits until its agent answers and the API says of its readiness what was asked for.
func (p *pod) start(ctx context.Context) error {
	port := controlPort
	if p.HostNetwork {
		port = p.cluster.nextHostPort()
	}
	config, err := json.Marshal(agent.Config{TokenDigest: agent.TokenDigest(p.cluster.token), Pod: p.PodName, Ports: p.Ports, Control: port, Unready: p.Unready})
	if err != nil {
		return err
	}
	p.agent = p.cluster.agentOf(p.PodName, port)
	object := p.cluster.podObject(p, port, string(config))
	if _, err := candidate.Create(ctx, p.cluster.client.CoreV1().Pods(p.Namespace), object); err != nil {
		return fmt.Errorf("create pod %s: %w", p.PodName, err)
	}
	if p.readyBy == readyByGate { // the pod is ready once its agent has answered
		if err := p.setGate(ctx, true); err != nil {
			return err
		}
	}
	started, err := p.wait(ctx, "run", func(o *corev1.Pod) (bool, error) {
		for _, s := range o.Status.ContainerStatuses {
			if w := s.State.Waiting; w != nil && (strings.HasPrefix(w.Reason, "Err") || strings.HasPrefix(w.Reason, "Image") || w.Reason == "CrashLoopBackOff") {
				return false, fmt.Errorf("its container does not start: %s: %s", w.Reason, w.Message)
			}
		}
		if o.Status.Phase == corev1.PodFailed {
			return false, fmt.Errorf("it failed: %s", failure(o))
		}
		return o.Status.Phase == corev1.PodRunning && len(o.Status.PodIPs) > 0 && isReady(o) == !p.Unready, nil
	})
	if err != nil {
		return err
	}
	if p.Unready { // the API does not tell whether it answers
		if err := p.answers(ctx); err != nil {
			return err
		}
	}
	p.Addresses = nil
	for _, ip := range started.Status.PodIPs {
		a, err := netip.ParseAddr(ip.IP)
		if err != nil {
			return fmt.Errorf("pod %s has the address %q: %w", p.PodName, ip.IP, err)
		}
		p.Addresses = append(p.Addresses, a)
	}
	return nil
}

// failure says why a pod has failed.
func failure(o *corev1.Pod) string {
	for _, s := range o.Status.ContainerStatuses {
		if t := s.State.Terminated; t != nil {
			return fmt.Sprintf("exit code %d: %s", t.ExitCode, strings.TrimSpace(t.Message))
		}
	}
	return strings.TrimSpace(o.Status.Reason + " " + o.Status.Message)
}

// answers waits until the agent answers.
func (p *pod) answers(ctx context.Context) error {
	for {
		err := p.agent.Ready(ctx, false)
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("wait for the agent of pod %s: %w", p.PodName, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// wait waits until the Pod object is as demanded.
func (p *pod) wait(ctx context.Context, what string, demanded func(*corev1.Pod) (bool, error)) (*corev1.Pod, error) {
	pods := p.cluster.client.CoreV1().Pods(p.Namespace)
	selector := fields.OneTermEqualSelector(metav1.ObjectNameField, p.Name).String()
	list := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, o metav1.ListOptions) (runtime.Object, error) {
			o.FieldSelector = selector
			return pods.List(ctx, o)
		},
		WatchFuncWithContext: func(ctx context.Context, o metav1.ListOptions) (watch.Interface, error) {
			o.FieldSelector = selector
			return pods.Watch(ctx, o)
		},
	}
	var last *corev1.Pod
	event, err := watchtools.UntilWithSync(ctx, list, &corev1.Pod{}, nil, func(e watch.Event) (bool, error) {
		o, ok := e.Object.(*corev1.Pod)
		if !ok {
			return false, nil
		}
		if e.Type == watch.Deleted {
			return false, errors.New("somebody deleted it")
		}
		last = o
		return demanded(o)
	})
	if err != nil {
		state := "the API server shows nothing of it"
		if last != nil {
			state = fmt.Sprintf("it is %s, ready %t", last.Status.Phase, isReady(last))
		}
		return nil, fmt.Errorf("wait for pod %s to %s: %w (%s)", p.PodName, what, errors.Join(err, context.Cause(ctx)), state)
	}
	return event.Object.(*corev1.Pod), nil
}

// podObject is the Pod of an agent. It asks for nothing that the restricted pod security standard forbids, but for the host network where that is asked for.
func (c *Cluster) podObject(as *pod, port int, config string) *corev1.Pod {
	yes, no, grace := true, false, int64(orphanGracePeriod)
	container := corev1.Container{
		Name: "agent", Image: c.options.AgentImage, Args: []string{"agent"}, Command: []string{"/conformance"}, ImagePullPolicy: corev1.PullIfNotPresent,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
		Env:                      []corev1.EnvVar{{Name: agent.ConfigVariable, Value: config}},
		SecurityContext: &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no, ReadOnlyRootFilesystem: &yes, Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		},
	}
	gates := as.readyBy.ask(&container, port)
	for _, p := range as.Ports {
		container.Ports = append(container.Ports, corev1.ContainerPort{Name: p.Name, Protocol: p.Protocol, ContainerPort: int32(p.Number)})
	}
	for _, name := range slices.Sorted(maps.Keys(as.Variables)) {
		container.Env = append(container.Env, corev1.EnvVar{Name: name, Value: as.Variables[name]})
	}
	links := !as.WithoutServiceLinks
	labels := map[string]string{candidate.RunLabel: c.runID}
	if as.lent {
		labels[lentLabel] = "true"
	}
	maps.Copy(labels, as.Labels)
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: as.Name, Namespace: as.Namespace, Labels: labels},
		Spec: corev1.PodSpec{
			NodeName: as.Node, Containers: []corev1.Container{container}, ReadinessGates: gates, HostNetwork: as.HostNetwork, Hostname: as.Hostname, Subdomain: as.Subdomain,
			EnableServiceLinks: &links, AutomountServiceAccountToken: &no, TerminationGracePeriodSeconds: &grace, RestartPolicy: corev1.RestartPolicyNever,
			Tolerations:     []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{RunAsNonRoot: &yes, SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault}},
		},
	}
}

// agentOf returns the client of the agent in a pod, which is reached through the API server.
func (c *Cluster) agentOf(name candidate.PodName, port int) *agent.Client {
	return &agent.Client{Do: func(ctx context.Context, method, path string, query url.Values, body []byte) ([]byte, error) {
		request := c.client.CoreV1().RESTClient().Verb(method).Namespace(name.Namespace).Resource("pods").
			Name(utilnet.JoinSchemeNamePort("http", name.Name, fmt.Sprint(port))).SubResource("proxy").Suffix(path).SetHeader(agent.TokenHeader, c.token)
		for key, values := range query {
			for _, v := range values {
				request.Param(key, v)
			}
		}
		answer, err := request.Body(body).DoRaw(ctx)
		if err != nil {
			return nil, fmt.Errorf("agent of pod %s: %w (%.200s)", name, err, answer)
		}
		return answer, nil
	}}
}

// Environment implements candidate.DataPlane: the agent tells its own.
func (d *dataPlane) Environment(ctx context.Context, name candidate.PodName) ([]string, error) {
	p, err := d.pods.Own(name)
	if err != nil {
		return nil, err
	}
	return p.agent.Environment(ctx)
}

// Terminate implements candidate.DataPlane.
func (d *dataPlane) Terminate(ctx context.Context, name candidate.PodName) error {
	p, err := d.pods.Own(name)
	if err != nil {
		return err
	}
	p.ended.Store(true)
	grace := int64(gracePeriod)
	err = candidate.Delete(ctx, d.cluster.client.CoreV1().Pods(name.Namespace), name.Name, metav1.DeleteOptions{GracePeriodSeconds: &grace})
	if err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

// Kill implements candidate.DataPlane.
func (d *dataPlane) Kill(ctx context.Context, name candidate.PodName) error {
	p, err := d.pods.Own(name)
	if err != nil {
		return err
	}
	p.ended.Store(true)
	return p.kill(ctx)
}

// kill ends what answers as the pod.
func (p *pod) kill(ctx context.Context) error {
	if p.lease != "" {
		return p.agent.KillHosted(ctx, p.lease, p.PodName)
	}
	return p.agent.Kill(ctx)
}

// Remove implements candidate.DataPlane.
func (d *dataPlane) Remove(ctx context.Context, name candidate.PodName) error {
	p, err := d.pods.Own(name)
	if err != nil {
		return err
	}
	d.pods.Forget(name)
	_ = p.kill(ctx) // the kubelet takes its time to end the container
	return p.remove(ctx)
}

// remove takes the pod out of the API; the kubelet ends what runs of it. An interruption does not keep it from that.
func (p *pod) remove(ctx context.Context) error {
	if p.lease != "" { // it goes with the lease
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), candidate.InsistTimeout)
	defer cancel()
	zero := int64(0)
	err := candidate.Delete(ctx, p.cluster.client.CoreV1().Pods(p.Namespace), p.Name, metav1.DeleteOptions{GracePeriodSeconds: &zero})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("delete pod %s: %w", p.PodName, err)
	}
	return nil
}
