package service

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Rules for external IPs. Kubernetes does not manage them: any of them may occur any number of times.
var (
	// External IPs are addresses. A value that is stored may stay as it is written.
	externalIPsValid = rule.New("external-ips-valid", func(r *Rules, svc, old *corev1.Service) (errs field.ErrorList) {
		var stored []string
		if old != nil {
			stored = old.Spec.ExternalIPs
		}
		for i, s := range svc.Spec.ExternalIPs {
			path := externalIPPath(i)
			if invalid := validation.IsValidIPForLegacyField(path, s, r.externalIPsStrict.Do(r), r.storedStays.Do(stored)); len(invalid) > 0 {
				errs = append(errs, invalid...)
				continue
			}
			ip, ok := parseIP(s)
			if !ok {
				errs = append(errs, field.Invalid(path, s, "must be a valid IP address"))
				continue
			}
			errs = append(errs, r.externalIPReachable.Do(r, svc, i, ip)...)
		}
		return errs
	}, spec.APIExternalIPsValues, spec.APIExternalIPsUnmanaged)

	externalIPsStrict = rule.New("external-ips-strict", (*Rules).strictIPs, spec.APIExternalIPsStrict)

	// A packet on the network can have an external IP as its destination.
	externalIPReachable = rule.New("external-ip-reachable", func(_ *Rules, svc *corev1.Service, i int, ip netip.Addr) field.ErrorList {
		switch {
		case ip.IsUnspecified():
			return refuseExternalIP(svc, i, "may not be unspecified")
		case ip.IsLoopback():
			return refuseExternalIP(svc, i, "may not be in the loopback range (127.0.0.0/8, ::1/128)")
		case ip.IsLinkLocalUnicast():
			return refuseExternalIP(svc, i, "may not be in the link-local range (169.254.0.0/16, fe80::/10)")
		case ip.IsLinkLocalMulticast():
			return refuseExternalIP(svc, i, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/16)")
		}
		return nil
	}, spec.APIExternalIPsValues)
)

func externalIPPath(i int) *field.Path { return specPath.Child("externalIPs").Index(i) }

func refuseExternalIP(svc *corev1.Service, i int, why string) field.ErrorList {
	return field.ErrorList{field.Invalid(externalIPPath(i), svc.Spec.ExternalIPs[i], why)}
}
