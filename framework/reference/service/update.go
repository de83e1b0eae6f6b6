package service

import corev1 "k8s.io/api/core/v1"

// keepAllocated: values that were allocated for the client stay if an update leaves them out, so that applying a manifest
// again changes nothing.
func (r *Rules) keepAllocated(svc, old *corev1.Service) {
	r.keepClusterIPs(svc, old)
	r.keepNodePorts(svc, old)
	r.keepHealthCheckNodePort(svc, old)
}

// clearUnused: a change of type, or of a policy, clears the fields that no longer apply. A field that the same request
// changes is left for validation to refuse: nothing that a client asks for is dropped. Nothing is cleared on create.
func (r *Rules) clearUnused(svc, old *corev1.Service) {
	r.clearClusterIPs(svc, old)
	r.clearIPFamilies(svc, old)
	r.clearNodePorts(svc, old)
	r.clearHealthCheckNodePort(svc, old)
	r.clearAllocateLoadBalancerNodePorts(svc, old)
	r.clearLoadBalancerClass(svc, old)
	r.clearExternalTrafficPolicy(svc, old)
	r.clearLoadBalancerStatus(svc)
}
