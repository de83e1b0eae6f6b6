package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

var (
	externalTrafficPolicyPath = specPath.Child("externalTrafficPolicy")
	internalTrafficPolicyPath = specPath.Child("internalTrafficPolicy")

	externalTrafficPolicies = []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal}
	internalTrafficPolicies = []corev1.ServiceInternalTrafficPolicy{corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal}
)

// defaultExternalTrafficPolicy: the policy is Cluster by default, for Services that external traffic can reach.
func (r *Rules) defaultExternalTrafficPolicy(svc *corev1.Service) {
	if r.faults.On(fault.ExternalPolicyByType) && !hasNodePorts(svc) {
		return
	}
	if (isExternallyAccessible(svc) || r.faults.On(fault.ExternalPolicyEverywhere)) && svc.Spec.ExternalTrafficPolicy == "" {
		svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
	}
}

// defaultInternalTrafficPolicy: the policy is Cluster by default, for every type that has cluster IPs.
func (r *Rules) defaultInternalTrafficPolicy(svc *corev1.Service) {
	policy := corev1.ServiceInternalTrafficPolicyCluster
	if r.faults.On(fault.InternalPolicyDefaultLocal) {
		policy = corev1.ServiceInternalTrafficPolicyLocal
	}
	if svc.Spec.InternalTrafficPolicy == nil && (svc.Spec.Type == corev1.ServiceTypeClusterIP || hasNodePorts(svc) || r.faults.On(fault.InternalPolicyOnAlias)) {
		svc.Spec.InternalTrafficPolicy = ptr.To(policy)
	}
	if svc.Spec.ExternalTrafficPolicy != "" && r.faults.On(fault.PoliciesCoupled) {
		svc.Spec.InternalTrafficPolicy = ptr.To(corev1.ServiceInternalTrafficPolicy(svc.Spec.ExternalTrafficPolicy))
	}
}

// clearExternalTrafficPolicy: a change that ends external traffic clears the policy, unless the request changes it as well.
func (r *Rules) clearExternalTrafficPolicy(svc, old *corev1.Service) {
	if r.faults.On(fault.ExternalPolicyNotCleared) {
		return
	}
	if isExternallyAccessible(old) && !isExternallyAccessible(svc) && svc.Spec.ExternalTrafficPolicy == old.Spec.ExternalTrafficPolicy {
		svc.Spec.ExternalTrafficPolicy = ""
	}
}

// validateExternalTrafficPolicy: the policy is Cluster or Local for Services that external traffic can reach, and not set for others.
func (r *Rules) validateExternalTrafficPolicy(svc *corev1.Service) field.ErrorList {
	policy := svc.Spec.ExternalTrafficPolicy
	switch {
	case !isExternallyAccessible(svc):
		if policy != "" && !r.faults.On(fault.ExternalPolicyAnywhere) && !r.faults.On(fault.ExternalPolicyEverywhere) {
			return field.ErrorList{field.Invalid(externalTrafficPolicyPath, policy, "may only be set for externally-accessible services")}
		}
	case policy == "":
		return field.ErrorList{field.Required(externalTrafficPolicyPath, "")}
	case r.faults.On(fault.ExternalPolicyUnchecked):
	case !slices.Contains(externalTrafficPolicies, policy) || isExternallyLocal(svc) && r.faults.On(fault.ExternalPolicyClusterOnly):
		return field.ErrorList{field.NotSupported(externalTrafficPolicyPath, policy, externalTrafficPolicies)}
	}
	return nil
}

// validateInternalTrafficPolicy: the policy is Cluster or Local. An ExternalName Service may have one, without effect.
func (r *Rules) validateInternalTrafficPolicy(svc *corev1.Service) field.ErrorList {
	switch policy := svc.Spec.InternalTrafficPolicy; {
	case policy == nil:
		if svc.Spec.Type == corev1.ServiceTypeClusterIP || hasNodePorts(svc) {
			return field.ErrorList{field.Required(internalTrafficPolicyPath, "")}
		}
	case r.faults.On(fault.InternalPolicyUnchecked):
	case !slices.Contains(internalTrafficPolicies, *policy) || *policy == corev1.ServiceInternalTrafficPolicyLocal && r.faults.On(fault.InternalPolicyClusterOnly):
		return field.ErrorList{field.NotSupported(internalTrafficPolicyPath, *policy, internalTrafficPolicies)}
	}
	return nil
}

// trafficDistributions are the preferences that may be set (KEP-4444; KEP-3015 for the second and third).
func (r *Rules) trafficDistributions() []string {
	var known []string
	if !r.faults.On(fault.DistributionNotClose) {
		known = append(known, corev1.ServiceTrafficDistributionPreferClose)
	}
	if r.version.preferSame() && !r.faults.On(fault.DistributionNotSame) {
		known = append(known, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
	}
	return known
}

// validateTrafficDistribution: a preference, if there is one, is known.
func (r *Rules) validateTrafficDistribution(svc *corev1.Service) field.ErrorList {
	distribution := svc.Spec.TrafficDistribution
	if r.faults.On(fault.DistributionUnchecked) {
		return nil
	}
	if known := r.trafficDistributions(); distribution != nil && !slices.Contains(known, *distribution) {
		return field.ErrorList{field.NotSupported(specPath.Child("trafficDistribution"), *distribution, known)}
	}
	return nil
}
