package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

var loadBalancerClassPath = specPath.Child("loadBalancerClass")

// defaultAllocateLoadBalancerNodePorts: a load balancer gets node ports by default.
func (r *Rules) defaultAllocateLoadBalancerNodePorts(svc *corev1.Service) {
	if isLoadBalancer(svc) && svc.Spec.AllocateLoadBalancerNodePorts == nil {
		svc.Spec.AllocateLoadBalancerNodePorts = ptr.To(!r.faults.On(fault.BalancerNodePortsOff))
	}
}

// clearAllocateLoadBalancerNodePorts: a change to another type clears the field, unless the request changes it as well.
func (r *Rules) clearAllocateLoadBalancerNodePorts(svc, old *corev1.Service) {
	if r.faults.On(fault.BalancerNodePortsNotCleared) {
		return
	}
	if isLoadBalancer(old) && !isLoadBalancer(svc) && ptr.Equal(svc.Spec.AllocateLoadBalancerNodePorts, old.Spec.AllocateLoadBalancerNodePorts) {
		svc.Spec.AllocateLoadBalancerNodePorts = nil
	}
}

// validateAllocateLoadBalancerNodePorts: the field belongs to type LoadBalancer.
func (r *Rules) validateAllocateLoadBalancerNodePorts(svc *corev1.Service) field.ErrorList {
	path := specPath.Child("allocateLoadBalancerNodePorts")
	switch set := svc.Spec.AllocateLoadBalancerNodePorts != nil; {
	case set && !isLoadBalancer(svc) && !r.faults.On(fault.BalancerNodePortsAnyType):
		return field.ErrorList{field.Forbidden(path, onlyLoadBalancer)}
	case !set && isLoadBalancer(svc):
		return field.ErrorList{field.Required(path, "")}
	}
	return nil
}

// clearLoadBalancerClass: a change to another type clears the class, unless the request changes it as well.
func (r *Rules) clearLoadBalancerClass(svc, old *corev1.Service) {
	if r.faults.On(fault.BalancerClassNotCleared) {
		return
	}
	if isLoadBalancer(old) && !isLoadBalancer(svc) && ptr.Equal(svc.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
		svc.Spec.LoadBalancerClass = nil
	}
}

// validateLoadBalancerClass: a class belongs to type LoadBalancer and has the syntax of a label key.
func (r *Rules) validateLoadBalancerClass(svc *corev1.Service) field.ErrorList {
	class := svc.Spec.LoadBalancerClass
	switch {
	case class == nil:
		return nil
	case !strings.Contains(*class, "/") && r.faults.On(fault.BalancerClassPrefixNeeded):
		return field.ErrorList{field.Invalid(loadBalancerClassPath, *class, "must have a prefix")}
	case !isLoadBalancer(svc) && !r.faults.On(fault.BalancerClassAnyType):
		return field.ErrorList{field.Forbidden(loadBalancerClassPath, onlyLoadBalancer)}
	case r.faults.On(fault.BalancerClassUnchecked):
		return nil
	}
	return validateQualifiedName(*class, loadBalancerClassPath)
}

// validateLoadBalancerClassUpdate: the class is chosen when the Service becomes a load balancer, and stays.
func (r *Rules) validateLoadBalancerClassUpdate(svc, old *corev1.Service) field.ErrorList {
	switch {
	case r.faults.On(fault.BalancerClassMutable), old.Spec.LoadBalancerClass == nil && r.faults.On(fault.BalancerClassLate):
		return nil
	case !isLoadBalancer(old) && svc.Spec.LoadBalancerClass != nil && r.faults.On(fault.BalancerClassCreateOnly):
		return field.ErrorList{field.Invalid(loadBalancerClassPath, svc.Spec.LoadBalancerClass, "may be set on create only")}
	}
	if isLoadBalancer(svc) && isLoadBalancer(old) && !ptr.Equal(svc.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
		return field.ErrorList{field.Invalid(loadBalancerClassPath, svc.Spec.LoadBalancerClass, "may not change once set")}
	}
	return nil
}

// validateSourceRanges: source ranges are CIDRs, with or without blanks around them, and belong to type LoadBalancer. The
// annotation that came before the field counts where the field is not set. A value that is stored may stay as it is.
func (r *Rules) validateSourceRanges(svc, old *corev1.Service) (errs field.ErrorList) {
	path := specPath.Child("LoadBalancerSourceRanges") // spelled so in kube-apiserver's answers
	ranges := svc.Spec.LoadBalancerSourceRanges
	var stored []string
	if old != nil {
		stored = trimmed(old.Spec.LoadBalancerSourceRanges)
	}
	if len(ranges) == 0 {
		const key = corev1.AnnotationLoadBalancerSourceRangesKey
		value, set := svc.Annotations[key]
		if !set {
			return nil
		}
		path, stored = metadataPath.Child("annotations").Key(key), nil
		if strings.TrimSpace(value) != "" {
			ranges = strings.Split(value, ",")
		}
		if old != nil && old.Annotations[key] == value {
			ranges = nil // only its type may have changed
		}
	}
	if !isLoadBalancer(svc) && !r.faults.On(fault.SourceRangesAnyType) {
		errs = append(errs, field.Forbidden(path, onlyLoadBalancer))
	}
	strict := r.strictIPs() && !r.faults.On(fault.SourceRangesSloppy)
	if r.faults.On(fault.SourceRangesUnchecked) {
		return errs
	}
	if !r.faults.On(fault.SourceRangesUntrimmed) {
		ranges = trimmed(ranges)
	}
	for i, s := range ranges {
		at := path
		if len(svc.Spec.LoadBalancerSourceRanges) > 0 {
			at = path.Index(i)
		}
		errs = append(errs, validation.IsValidCIDRForLegacyField(at, s, strict, r.kept(stored))...)
	}
	return errs
}

func trimmed(values []string) []string {
	out := make([]string, len(values))
	for i, s := range values {
		out[i] = strings.TrimSpace(s)
	}
	return out
}
