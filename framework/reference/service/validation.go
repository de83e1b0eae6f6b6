package service

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// validateCreate holds the rules for a new Service, after allocation.
func (r *Rules) validateCreate(svc *corev1.Service) field.ErrorList {
	return append(r.validateMetadata(svc), r.validateService(svc, nil)...)
}

// validateUpdate holds the rules for a changed Service, after allocation and clearing.
func (r *Rules) validateUpdate(svc, old *corev1.Service) field.ErrorList {
	errs := r.validateMetadataUpdate(svc, old)
	errs = append(errs, r.validateClusterIPsUpdate(svc, old)...)
	errs = append(errs, r.validateIPFamiliesUpdate(svc, old)...)
	errs = append(errs, r.validateLoadBalancerClassUpdate(svc, old)...)
	errs = append(errs, r.validateHealthCheckNodePortUpdate(svc, old)...)
	return append(errs, r.validateService(svc, old)...)
}

// validateService holds the rules that apply to new and to changed Services; old is nil for a new one.
func (r *Rules) validateService(svc, old *corev1.Service) field.ErrorList {
	errs := r.validateTopologyAnnotations(svc)
	errs = append(errs, r.validatePortsPresent(svc)...)
	errs = append(errs, r.validateHeadless(svc)...)
	errs = append(errs, r.validateNoClusterIP(svc)...)
	errs = append(errs, r.validateExternalName(svc)...)
	errs = append(errs, r.validatePorts(svc)...)
	errs = append(errs, r.validateSelector(svc)...)
	errs = append(errs, r.validateSessionAffinity(svc)...)
	errs = append(errs, r.validateClusterIPFields(svc, old)...)
	errs = append(errs, r.validateExternalIPs(svc, old)...)
	errs = append(errs, r.validateType(svc)...)
	errs = append(errs, r.validateNodePortsNeeded(svc)...)
	errs = append(errs, r.validateNodePortsUnique(svc)...)
	errs = append(errs, r.validatePortsUnique(svc)...)
	errs = append(errs, r.validateSourceRanges(svc, old)...)
	errs = append(errs, r.validateAllocateLoadBalancerNodePorts(svc)...)
	errs = append(errs, r.validateLoadBalancerClass(svc)...)
	errs = append(errs, r.validateExternalTrafficPolicy(svc)...)
	errs = append(errs, r.validateHealthCheckNodePort(svc)...)
	errs = append(errs, r.validateInternalTrafficPolicy(svc)...)
	return append(errs, r.validateTrafficDistribution(svc)...)
}

// validateHeadless: NodePort and LoadBalancer build on a virtual IP, so they cannot do without one.
func (r *Rules) validateHeadless(svc *corev1.Service) field.ErrorList {
	if isHeadless(svc) && hasNodePorts(svc) && !r.faults.On(fault.HeadlessAnyType) {
		return field.ErrorList{field.Invalid(clusterIPsPath.Index(0), corev1.ClusterIPNone, "may not be set to 'None' for "+string(svc.Spec.Type)+" services")}
	}
	return nil
}

// validateSelector: keys and values have label syntax.
func (r *Rules) validateSelector(svc *corev1.Service) field.ErrorList {
	path, selector := specPath.Child("selector"), svc.Spec.Selector
	switch {
	case len(selector) == 0 && hasClusterIP(svc) && svc.Namespace != metav1.NamespaceDefault && r.faults.On(fault.SelectorNeeded):
		return field.ErrorList{field.Required(path, "")}
	case len(selector) > 0 && !hasClusterIP(svc) && r.faults.On(fault.SelectorNoAlias):
		return field.ErrorList{field.Forbidden(path, "may not be set for ExternalName services")}
	case r.faults.On(fault.SelectorUnchecked):
		return nil
	}
	errs := metav1validation.ValidateLabels(selector, path)
	for key, value := range selector {
		if value == "" && r.faults.On(fault.SelectorEmptyValue) {
			errs = append(errs, field.Required(path.Key(key), ""))
		}
	}
	return errs
}
