package endpoints

import (
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// maxObjectAddresses is how many addresses an Endpoints object holds before it is cut.
const maxObjectAddresses = 1000

// Rules for the Endpoints object.
var (
	// It lists pods that are not ready as if they were, where the Service says so.
	objectOfNotReady = rule.New("endpoints-object-of-not-ready", func(svc *corev1.Service) bool {
		return svc.Spec.PublishNotReadyAddresses
	}, spec.ProxyPublishNotReadySlices)

	// It says whether it lacks some (document "Service", over-capacity endpoints).
	objectTruncated = rule.New("endpoints-object-truncated", func(e *corev1.Endpoints, truncated bool) {
		delete(e.Annotations, corev1.EndpointsOverCapacity)
		if !truncated {
			return
		}
		if e.Annotations == nil {
			e.Annotations = map[string]string{}
		}
		e.Annotations[corev1.EndpointsOverCapacity] = "truncated"
	}, spec.ProxyEndpointsObjectTruncated)
)

// object returns the desired Endpoints object of a Service with a selector. Unlike EndpointSlices it is of the primary family
// only. It does not list pods that terminate unless it is told to publish what is not ready.
func (t *task) object() *corev1.Endpoints {
	svc := t.Service
	e := &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: svc.Name, Namespace: svc.Namespace}}
	if t.Endpoints != nil {
		e = t.Endpoints.DeepCopy()
		e.Subsets = nil
	}
	e.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Endpoints"}
	e.Labels = maps.Clone(svc.Labels)
	if e.Labels == nil {
		e.Labels = map[string]string{}
	}
	e.Labels["endpoints.kubernetes.io/managed-by"] = "endpoint-controller"
	if svc.Spec.ClusterIP == corev1.ClusterIPNone {
		e.Labels[corev1.IsHeadlessService] = ""
	}
	publish := t.objectOfNotReady.Do(svc)
	type subset struct {
		corev1.EndpointSubset
		ports []discoveryv1.EndpointPort
	}
	var subsets []*subset
	total, truncated := 0, false
	for _, pod := range t.Pods {
		if !t.podIsEndpoint.Do(t.Service, pod) || isTerminating(pod) && !publish {
			continue
		}
		addresses := t.addresses(pod, t.sliceFamilies.Do(svc)[0])
		if len(addresses) == 0 {
			continue
		}
		if total == maxObjectAddresses {
			truncated = true
			continue
		}
		total++
		ports := t.ports(pod)
		if len(ports) == 0 && len(svc.Spec.Ports) > 0 {
			continue
		}
		i := slices.IndexFunc(subsets, func(s *subset) bool { return samePorts(s.ports, ports) })
		if i < 0 {
			i = len(subsets)
			subsets = append(subsets, &subset{ports: ports})
			for _, p := range ports {
				subsets[i].Ports = append(subsets[i].Ports, corev1.EndpointPort{Name: *p.Name, Port: *p.Port, Protocol: *p.Protocol, AppProtocol: p.AppProtocol})
			}
		}
		a := corev1.EndpointAddress{
			IP: addresses[0], Hostname: hostname(svc, pod),
			TargetRef: &corev1.ObjectReference{Kind: "Pod", Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID},
		}
		if pod.Spec.NodeName != "" {
			a.NodeName = new(pod.Spec.NodeName)
		}
		if publish || isReady(pod) {
			subsets[i].Addresses = append(subsets[i].Addresses, a)
		} else {
			subsets[i].NotReadyAddresses = append(subsets[i].NotReadyAddresses, a)
		}
	}
	t.objectTruncated.Do(e, truncated)
	for _, s := range subsets {
		e.Subsets = append(e.Subsets, s.EndpointSubset)
	}
	return e
}
