package service

import (
	corev1 "k8s.io/api/core/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// validateCreate applies the rules for a new Service, after allocation.
func (r *Rules) validateCreate(svc *corev1.Service) field.ErrorList {
	errs := r.refusals(nil, r.createChecks, svc, nil)
	return r.refusals(errs, r.checks, svc, nil)
}

// validateUpdate applies the rules for a changed Service, after allocation and clearing.
func (r *Rules) validateUpdate(svc, old *corev1.Service) field.ErrorList {
	errs := r.refusals(nil, r.metadataChecks, svc, old)
	errs = r.refusals(errs, r.updateChecks, svc, old)
	return r.refusals(errs, r.checks, svc, old)
}

// validateStatusUpdate applies the rules for a change of the status.
func (r *Rules) validateStatusUpdate(svc, old *corev1.Service) field.ErrorList {
	errs := r.refusals(nil, r.metadataChecks, svc, old)
	return r.refusals(errs, r.statusChecks, svc, old)
}

// refusals adds to errs what the checks refuse; old is nil for a new Service.
func (r *Rules) refusals(errs field.ErrorList, checks []rule.Rule[checking], svc, old *corev1.Service) field.ErrorList {
	for i := range checks {
		errs = append(errs, checks[i].Do(r, svc, old)...)
	}
	return errs
}

var (
	// NodePort and LoadBalancer build on a virtual IP, so they cannot do without one.
	headlessType = rule.New("headless-type", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if isHeadless(svc) && hasNodePorts(svc) {
			return field.ErrorList{field.Invalid(clusterIPsPath.Index(0), corev1.ClusterIPNone, "may not be set to 'None' for "+string(svc.Spec.Type)+" services")}
		}
		return nil
	}, spec.APIHeadlessType)

	// A selector may be empty, and does not apply to an alias.
	selectorSyntax = rule.New("selector-syntax", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		return metav1validation.ValidateLabels(svc.Spec.Selector, selectorPath)
	}, spec.APISelectorSyntax, spec.APISelectorOptional, spec.APISelectorExternalName)
)

var selectorPath = specPath.Child("selector")
