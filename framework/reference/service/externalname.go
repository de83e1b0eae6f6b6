package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// validateExternalName: type ExternalName needs a lower-case RFC 1123 hostname, which may end in a dot. With any other type
// the field is ignored.
func (r *Rules) validateExternalName(svc *corev1.Service) (errs field.ErrorList) {
	if svc.Spec.Type != corev1.ServiceTypeExternalName {
		return nil
	}
	path := specPath.Child("externalName")
	name := strings.TrimSuffix(svc.Spec.ExternalName, ".")
	if name == "" {
		if r.faults.On(fault.ExternalNameOptional) {
			return nil
		}
		return field.ErrorList{field.Required(path, "")}
	}
	if r.faults.On(fault.ExternalNameNotValidated) {
		return nil
	}
	if r.faults.On(fault.ExternalNameNeedsDot) && !strings.Contains(name, ".") {
		errs = append(errs, field.Invalid(path, name, "should be a domain with at least two segments separated by dots"))
	}
	for _, msg := range validation.IsDNS1123Subdomain(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

// validateNoClusterIP: an ExternalName Service has neither addresses nor IP families.
func (r *Rules) validateNoClusterIP(svc *corev1.Service) (errs field.ErrorList) {
	if r.getsClusterIP(svc) {
		return nil
	}
	const forbidden = "may not be set for ExternalName services"
	if len(svc.Spec.ClusterIPs) > 0 || svc.Spec.ClusterIP != "" {
		errs = append(errs, field.Forbidden(clusterIPsPath, forbidden))
	}
	if len(svc.Spec.IPFamilies) > 0 {
		errs = append(errs, field.Forbidden(ipFamiliesPath, forbidden))
	}
	if svc.Spec.IPFamilyPolicy != nil {
		errs = append(errs, field.Forbidden(ipFamilyPolicyPath, forbidden))
	}
	return errs
}
