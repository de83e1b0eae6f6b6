package endpoints

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// Selects reports whether the selector of the Service selects the pod, which is one of the Service's namespace.
func Selects(svc *corev1.Service, pod *corev1.Pod, faults fault.Set) bool {
	selector := svc.Spec.Selector
	if len(selector) == 0 {
		return faults.On(fault.SelectorlessSelects)
	}
	matching := 0
	for key, value := range selector {
		if has, ok := pod.Labels[key]; ok && (has == value || faults.On(fault.SelectorKeysOnly)) {
			matching++
		}
	}
	return matching == len(selector) || matching > 0 && faults.On(fault.SelectorAnyLabel)
}

// selected are the pods that the Service selects.
func (s *State) selected() []*corev1.Pod {
	var pods []*corev1.Pod
	for _, pod := range s.Pods {
		if Selects(s.Service, pod, s.Faults) || s.Faults.On(fault.SelectorSticky) && s.lists(pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

// lists reports whether an existing slice lists the pod.
func (s *State) lists(pod *corev1.Pod) bool {
	return slices.ContainsFunc(s.Existing, func(slice *discoveryv1.EndpointSlice) bool {
		return slices.ContainsFunc(slice.Endpoints, func(e discoveryv1.Endpoint) bool { return e.TargetRef != nil && e.TargetRef.UID == pod.UID })
	})
}

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
