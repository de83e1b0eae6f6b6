package service

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// validateExternalIPs: external IPs are addresses that a packet on the network can have as its destination. Kubernetes does
// not manage them: any of them may occur any number of times. A value that is stored may stay as it is written.
func (r *Rules) validateExternalIPs(svc, old *corev1.Service) (errs field.ErrorList) {
	var stored []string
	if old != nil {
		stored = old.Spec.ExternalIPs
	}
	for i, s := range svc.Spec.ExternalIPs {
		path := specPath.Child("externalIPs").Index(i)
		if invalid := validation.IsValidIPForLegacyField(path, s, r.version.strictIPs(), stored); len(invalid) > 0 {
			errs = append(errs, invalid...)
			continue
		}
		ip, ok := parseIP(s)
		switch {
		case !ok:
			errs = append(errs, field.Invalid(path, s, "must be a valid IP address"))
		case ip.IsUnspecified():
			errs = append(errs, field.Invalid(path, s, "may not be unspecified"))
		case ip.IsLoopback():
			errs = append(errs, field.Invalid(path, s, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
		case ip.IsLinkLocalUnicast():
			errs = append(errs, field.Invalid(path, s, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
		case ip.IsLinkLocalMulticast():
			errs = append(errs, field.Invalid(path, s, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/16)"))
		}
	}
	return errs
}
