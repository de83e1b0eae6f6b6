package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

var externalNamePath = specPath.Child("externalName")

// Rules for type ExternalName. With any other type the external name is ignored.
var (
	externalNameNeeded = rule.New("external-name-needed", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if name, ok := aliasOf(svc); ok && name == "" {
			return field.ErrorList{field.Required(externalNamePath, "")}
		}
		return nil
	}, spec.APIExternalNameRequired)

	// The name is a lower-case RFC 1123 hostname, which may end in a dot.
	externalNameSyntax = rule.New("external-name-syntax", func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		name, ok := aliasOf(svc)
		if !ok || name == "" {
			return nil
		}
		for _, msg := range validation.IsDNS1123Subdomain(name) {
			errs = append(errs, field.Invalid(externalNamePath, name, msg))
		}
		return errs
	}, spec.APIExternalNameSyntax, spec.APIExternalNameTrailingDot)

	aliasHasNoClusterIPs = rule.New("alias-has-no-cluster-ips", func(r *Rules, svc, _ *corev1.Service) field.ErrorList {
		if !r.typeHasClusterIPs.Do(svc) && (len(svc.Spec.ClusterIPs) > 0 || svc.Spec.ClusterIP != "") {
			return field.ErrorList{field.Forbidden(clusterIPsPath, notForAlias)}
		}
		return nil
	}, spec.APITypeExternalName, spec.APIExternalNameOtherFields, spec.APIClusterIPExternalNameRefused, spec.APIClusterIPToExternalName)

	aliasHasNoFamilies = rule.New("alias-has-no-ip-families", func(r *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		if r.typeHasClusterIPs.Do(svc) {
			return nil
		}
		if len(svc.Spec.IPFamilies) > 0 {
			errs = append(errs, field.Forbidden(ipFamiliesPath, notForAlias))
		}
		if svc.Spec.IPFamilyPolicy != nil {
			errs = append(errs, field.Forbidden(ipFamilyPolicyPath, notForAlias))
		}
		return errs
	}, spec.APITypeExternalName, spec.APIExternalNameOtherFields, spec.APIIPFamiliesExternalName)
)

const notForAlias = "may not be set for ExternalName services"

// aliasOf returns the external name without a dot at its end, and whether the Service is an alias.
func aliasOf(svc *corev1.Service) (name string, ok bool) {
	return strings.TrimSuffix(svc.Spec.ExternalName, "."), svc.Spec.Type == corev1.ServiceTypeExternalName
}
