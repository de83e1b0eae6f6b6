package service

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// keepAllocated: values that were allocated for the client stay if an update leaves them out, so that applying a manifest
// again changes nothing.
func (r *Rules) keepAllocated(svc, old *corev1.Service) {
	r.keepClusterIPs(svc, old)
	r.keepIPFamilies(svc, old)
	r.keepNodePorts(svc, old)
	r.keepHealthCheckNodePort(svc, old)
}

// clearUnused: a change of type, or of a policy, clears the fields that no longer apply. A field that the same request
// changes is left for validation to refuse: nothing that a client asks for is dropped. Nothing is cleared on create.
func (r *Rules) clearUnused(svc, old *corev1.Service) {
	if svc.Spec.Type != old.Spec.Type && r.faults.On(fault.UpdateDropsChanges) {
		dropChanges(svc, old)
	}
	if !r.faults.On(fault.TypeChangeKeepsClusterIPs) {
		r.clearClusterIPs(svc, old)
		r.clearIPFamilies(svc, old)
	}
	r.clearNodePorts(svc, old)
	r.clearHealthCheckNodePort(svc, old)
	r.clearAllocateLoadBalancerNodePorts(svc, old)
	r.clearLoadBalancerClass(svc, old)
	r.clearExternalTrafficPolicy(svc, old)
	r.clearLoadBalancerStatus(svc)
}

// dropChanges is what the faults UpdateDropsChanges and CreateDropsFields do: every field that does not apply to the type gets
// the old value, whatever the request says.
func dropChanges(svc, old *corev1.Service) {
	spec, before := &svc.Spec, &old.Spec
	if !hasClusterIP(svc) {
		spec.ClusterIP, spec.ClusterIPs = before.ClusterIP, before.ClusterIPs
		spec.IPFamilies, spec.IPFamilyPolicy = before.IPFamilies, before.IPFamilyPolicy
	}
	if !isExternallyAccessible(svc) {
		spec.ExternalTrafficPolicy = before.ExternalTrafficPolicy
	}
	if !isLoadBalancer(svc) {
		spec.HealthCheckNodePort, spec.AllocateLoadBalancerNodePorts = before.HealthCheckNodePort, before.AllocateLoadBalancerNodePorts
		spec.LoadBalancerClass, spec.LoadBalancerSourceRanges = before.LoadBalancerClass, before.LoadBalancerSourceRanges
	}
	for i := range spec.Ports {
		if !hasNodePorts(svc) {
			spec.Ports[i].NodePort = 0
		}
	}
}
