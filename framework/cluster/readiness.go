package cluster

import (
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/agent"
)

// readyBy is what decides whether a pod is ready.
type readyBy int

const (
	// readyByProbe asks the agent once a second. It is for the pods of one check: their readiness can be switched while they terminate, and the probe itself can be judged.
	readyByProbe readyBy = iota
	// readyByGate is a condition of the Pod object that the tier sets. It is for lent pods: a hundred probes a second would keep a small machine busy.
	readyByGate
	// readyAtStart asks the agent until it has answered once. It is for pods that no Service selects.
	readyAtStart
)

// gateCondition is the readiness gate of lent pods (KEP-580).
const gateCondition corev1.PodConditionType = "service-conformance/ready"

// startSeconds is how often a pod is asked, once a second, before the kubelet gives up its start. A check gives up before.
const startSeconds = 600

// ask makes the kubelet ask the agent, and returns the gates that the pod needs.
func (r readyBy) ask(container *corev1.Container, port int) []corev1.PodReadinessGate {
	asked := &corev1.Probe{
		ProbeHandler:  corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: agent.PathReadyz, Port: intstr.FromInt(port)}},
		PeriodSeconds: 1, FailureThreshold: 1, SuccessThreshold: 1, TimeoutSeconds: 5,
	}
	if r == readyByProbe {
		container.ReadinessProbe = asked
		return nil
	}
	asked.FailureThreshold = startSeconds
	container.StartupProbe = asked
	if r == readyByGate {
		return []corev1.PodReadinessGate{{ConditionType: gateCondition}}
	}
	return nil
}

func isReady(o *corev1.Pod) bool {
	return slices.ContainsFunc(o.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue })
}

// setGate sets the condition that a gated pod is ready by.
func (p *pod) setGate(ctx context.Context, ready bool) error {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	patch := fmt.Sprintf(`{"status":{"conditions":[{"type":%q,"status":%q}]}}`, gateCondition, status)
	if err := candidate.Patch(ctx, p.cluster.client.CoreV1().Pods(p.Namespace), p.Name, types.StrategicMergePatchType, patch, "status"); err != nil {
		return fmt.Errorf("set the readiness gate of pod %s: %w", p.PodName, err)
	}
	return nil
}

// switchReady makes the pod ready or unready; the kubelet has yet to notice.
func (p *pod) switchReady(ctx context.Context, ready bool) error {
	p.touched.Store(true)
	if p.readyBy == readyByGate {
		return p.setGate(ctx, ready)
	}
	return p.agent.Ready(ctx, ready)
}

// SetReady implements candidate.DataPlane.
func (d *dataPlane) SetReady(ctx context.Context, name candidate.PodName, ready bool) error {
	p, err := d.pods.Own(name)
	if err != nil {
		return err
	}
	if err := p.switchReady(ctx, ready); err != nil {
		return err
	}
	_, err = p.wait(ctx, fmt.Sprintf("be ready: %t", ready), func(o *corev1.Pod) (bool, error) { return isReady(o) == ready, nil })
	return err
}

// AnswerReadiness implements candidate.DataPlane. Checks of the kubelet have namespaces, and so pods, of their own: those have a probe.
func (d *dataPlane) AnswerReadiness(ctx context.Context, name candidate.PodName, ready bool) error {
	p, err := d.pods.Own(name)
	if err != nil {
		return err
	}
	if p.readyBy != readyByProbe {
		return fmt.Errorf("pod %s was lent: the kubelet does not probe it", name)
	}
	return p.agent.Ready(ctx, ready)
}

// readyAgain waits until a pod that was made unready is ready again.
func (p *pod) readyAgain(ctx context.Context) error {
	if !p.touched.Load() {
		return nil
	}
	if err := p.switchReady(ctx, true); err != nil {
		return err
	}
	_, err := p.wait(ctx, "be ready again", func(o *corev1.Pod) (bool, error) { return isReady(o), nil })
	p.touched.Store(err != nil)
	return err
}
