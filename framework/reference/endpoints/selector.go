package endpoints

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Selects reports whether the selector of the Service selects the pod, which is one of the Service's namespace.
func (r *Rules) Selects(svc *corev1.Service, pod *corev1.Pod) bool { return r.selects(svc, pod) }

func (b *book) selects(svc *corev1.Service, pod *corev1.Pod) bool {
	return b.selectorNeeded.Do(svc) && b.everyLabelFits.Do(b, svc.Spec.Selector, pod.Labels)
}

// selectedPods are the pods that the Service selects.
func (t *task) selectedPods() (pods []*corev1.Pod) {
	for _, pod := range t.Pods {
		if t.podSelected.Do(t, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// Rules for which pods a Service selects.
var (
	// A Service without a selector selects nothing.
	selectorNeeded = rule.New("endpoints-selector-needed", func(svc *corev1.Service) bool {
		return len(svc.Spec.Selector) > 0
	}, spec.ProxySelectorlessUntouched)

	everyLabelFits = rule.New("endpoints-every-label-fits", func(b *book, selector, labels map[string]string) bool {
		for key, value := range selector {
			if !b.labelFits.Do(labels, key, value) {
				return false
			}
		}
		return true
	}, spec.ProxySelectorAllLabels)

	labelFits = rule.New("endpoints-label-fits", func(labels map[string]string, key, value string) bool {
		has, ok := labels[key]
		return ok && has == value
	}, spec.ProxySelectorAllLabels)

	// A pod is selected by the labels that it has now.
	podSelected = rule.New("endpoints-pod-selected", func(t *task, pod *corev1.Pod) bool {
		return t.selects(t.Service, pod)
	}, spec.ProxySelectorAllLabels)

	// A pod is an endpoint while it runs, ready or not.
	podIsEndpoint = rule.New("endpoints-running-pod", func(_ *corev1.Service, pod *corev1.Pod) bool { return !hasEnded(pod) }, spec.ProxySliceConditions, spec.ProxyEndedPodNoEndpoint)
)

// Concerns reports whether a change of a pod can change the endpoints of a Service.
func Concerns(before, after *corev1.Pod) bool {
	return !maps.Equal(before.Labels, after.Labels) || before.UID != after.UID ||
		before.Spec.NodeName != after.Spec.NodeName || before.Spec.Hostname != after.Spec.Hostname || before.Spec.Subdomain != after.Spec.Subdomain ||
		before.Status.Phase != after.Status.Phase || isReady(before) != isReady(after) ||
		(before.DeletionTimestamp == nil) != (after.DeletionTimestamp == nil) ||
		!slices.Equal(before.Status.PodIPs, after.Status.PodIPs) || before.Status.PodIP != after.Status.PodIP ||
		!equality.Semantic.DeepEqual(before.Spec.Containers, after.Spec.Containers)
}

// isReady is the Ready condition of a pod.
func isReady(pod *corev1.Pod) bool {
	return slices.ContainsFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool {
		return c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue
	})
}

// hasEnded reports whether the containers of a pod have ended for good: such a pod is no endpoint in any state.
func hasEnded(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}
