package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

const onlyLoadBalancer = "may only be used when `type` is 'LoadBalancer'"

var (
	balancerNodePortsPath = specPath.Child("allocateLoadBalancerNodePorts")
	loadBalancerClassPath = specPath.Child("loadBalancerClass")
)

// Rules for allocateLoadBalancerNodePorts.
var (
	balancerNodePortsDefault = rule.New("load-balancer-node-ports-default", defaultBalancerNodePortsOf(true), spec.APILoadBalancerNodePortsDefault)

	// A change to another type clears the field, unless the request changes it as well.
	balancerNodePortsCleared = rule.New("load-balancer-node-ports-cleared", func(_ *Rules, svc, old *corev1.Service) {
		if isLoadBalancer(old) && !isLoadBalancer(svc) && ptr.Equal(svc.Spec.AllocateLoadBalancerNodePorts, old.Spec.AllocateLoadBalancerNodePorts) {
			svc.Spec.AllocateLoadBalancerNodePorts = nil
		}
	}, spec.APILoadBalancerNodePortsCleared, spec.APIUpdateClearsUnchanged)

	balancerNodePortsByType = rule.New("load-balancer-node-ports-by-type", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if svc.Spec.AllocateLoadBalancerNodePorts != nil && !isLoadBalancer(svc) {
			return field.ErrorList{field.Forbidden(balancerNodePortsPath, onlyLoadBalancer)}
		}
		return nil
	}, spec.APILoadBalancerNodePortsType)

	balancerNodePortsSet = rule.New("load-balancer-node-ports-set", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if svc.Spec.AllocateLoadBalancerNodePorts == nil && isLoadBalancer(svc) {
			return field.ErrorList{field.Required(balancerNodePortsPath, "")}
		}
		return nil
	}, spec.APILoadBalancerNodePortsDefault)
)

// defaultBalancerNodePortsOf makes a rule: this is whether a load balancer gets node ports if the client does not say.
func defaultBalancerNodePortsOf(allocate bool) defaulting {
	return func(svc *corev1.Service) {
		if isLoadBalancer(svc) && svc.Spec.AllocateLoadBalancerNodePorts == nil {
			svc.Spec.AllocateLoadBalancerNodePorts = new(allocate)
		}
	}
}

// Rules for loadBalancerClass.
var (
	// A change to another type clears the class, unless the request changes it as well.
	balancerClassCleared = rule.New("load-balancer-class-cleared", func(_ *Rules, svc, old *corev1.Service) {
		if isLoadBalancer(old) && !isLoadBalancer(svc) && ptr.Equal(svc.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
			svc.Spec.LoadBalancerClass = nil
		}
	}, spec.APILoadBalancerClassCleared, spec.APIUpdateClearsUnchanged)

	balancerClassByType = rule.New("load-balancer-class-by-type", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if svc.Spec.LoadBalancerClass != nil && !isLoadBalancer(svc) {
			return field.ErrorList{field.Forbidden(loadBalancerClassPath, onlyLoadBalancer)}
		}
		return nil
	}, spec.APILoadBalancerClassType)

	// A class has the syntax of a label key.
	balancerClassSyntax = rule.New("load-balancer-class-syntax", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if !isLoadBalancer(svc) {
			return nil
		}
		return validateBalancerClass(svc)
	}, spec.APILoadBalancerClassSyntax, spec.APILoadBalancerClassUnprefixed)

	// The class is chosen when the Service becomes a load balancer, and stays.
	balancerClassImmutable = rule.New("load-balancer-class-immutable", func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
		if isLoadBalancer(svc) && isLoadBalancer(old) && !ptr.Equal(svc.Spec.LoadBalancerClass, old.Spec.LoadBalancerClass) {
			return field.ErrorList{field.Invalid(loadBalancerClassPath, svc.Spec.LoadBalancerClass, "may not change once set")}
		}
		return nil
	}, spec.APILoadBalancerClassImmutable, spec.APILoadBalancerClassWhenSet)
)

func validateBalancerClass(svc *corev1.Service) field.ErrorList {
	if svc.Spec.LoadBalancerClass == nil {
		return nil
	}
	return validateQualifiedName(*svc.Spec.LoadBalancerClass, loadBalancerClassPath)
}

// Rules for source ranges.
var (
	sourceRangesByType = rule.New("source-ranges-by-type", func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
		if ranges, set := sourceRangesOf(svc, old); set && !isLoadBalancer(svc) {
			return field.ErrorList{field.Forbidden(ranges.path, onlyLoadBalancer)}
		}
		return nil
	}, spec.APILoadBalancerSourceRangesType)

	// Source ranges are CIDRs. A value that is stored may stay as it is.
	sourceRangesSyntax = rule.New("source-ranges-syntax", func(r *Rules, svc, old *corev1.Service) (errs field.ErrorList) {
		ranges, set := sourceRangesOf(svc, old)
		if !set {
			return nil
		}
		strict, stored := r.sourceRangesStrict.Do(r), r.storedStays.Do(ranges.stored)
		for i, s := range r.sourceRangesTrimmed.Do(ranges.values) {
			at := ranges.path
			if len(svc.Spec.LoadBalancerSourceRanges) > 0 {
				at = ranges.path.Index(i)
			}
			errs = append(errs, validation.IsValidCIDRForLegacyField(at, s, strict, stored)...)
		}
		return errs
	}, spec.APILoadBalancerSourceRanges)

	sourceRangesStrict = rule.New("source-ranges-strict", (*Rules).strictIPs, spec.APILoadBalancerSourceRangesStrict)

	// Source ranges may have blanks around them.
	sourceRangesTrimmed = rule.New("source-ranges-trimmed", trimmed, spec.APILoadBalancerSourceRanges)
)

// sourceRanges are the source ranges of a Service, where they stand, and those that are stored.
type sourceRanges struct {
	path           *field.Path
	values, stored []string
}

// sourceRangesOf returns the source ranges that count, and whether there are any. The annotation that came before the field
// counts where the field is not set.
func sourceRangesOf(svc, old *corev1.Service) (ranges sourceRanges, set bool) {
	if len(svc.Spec.LoadBalancerSourceRanges) > 0 {
		ranges.path = specPath.Child("LoadBalancerSourceRanges") // spelled so in kube-apiserver's answers
		ranges.values = svc.Spec.LoadBalancerSourceRanges
		if old != nil {
			ranges.stored = trimmed(old.Spec.LoadBalancerSourceRanges)
		}
		return ranges, true
	}
	const key = corev1.AnnotationLoadBalancerSourceRangesKey
	value, set := svc.Annotations[key]
	if !set {
		return ranges, false
	}
	ranges.path = metadataPath.Child("annotations").Key(key)
	unchanged := old != nil && old.Annotations[key] == value // then only its type may have changed
	if strings.TrimSpace(value) != "" && !unchanged {
		ranges.values = strings.Split(value, ",")
	}
	return ranges, true
}

func trimmed(values []string) []string {
	out := make([]string, len(values))
	for i, s := range values {
		out[i] = strings.TrimSpace(s)
	}
	return out
}
