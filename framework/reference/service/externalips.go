package service

import (
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// validateExternalIPs: external IPs are addresses that a packet on the network can have as its destination. Kubernetes does
// not manage them: any of them may occur any number of times. A value that is stored may stay as it is written.
func (r *Rules) validateExternalIPs(svc, old *corev1.Service) (errs field.ErrorList) {
	if r.faults.On(fault.ExternalIPsUnchecked) {
		return nil
	}
	var stored []string
	if old != nil {
		stored = old.Spec.ExternalIPs
	}
	strict := r.strictIPs() && !r.faults.On(fault.ExternalIPsSloppy)
	for i, s := range svc.Spec.ExternalIPs {
		path := specPath.Child("externalIPs").Index(i)
		if invalid := validation.IsValidIPForLegacyField(path, s, strict, r.kept(stored)); len(invalid) > 0 {
			errs = append(errs, invalid...)
			continue
		}
		ip, ok := parseIP(s)
		switch {
		case !ok:
			errs = append(errs, field.Invalid(path, s, "must be a valid IP address"))
		case slices.Contains(svc.Spec.ExternalIPs[:i], s) && r.faults.On(fault.ExternalIPsDistinct):
			errs = append(errs, field.Duplicate(path, s))
		case r.faults.On(fault.ExternalIPsNotInUse) && r.holds(ip):
			errs = append(errs, field.Invalid(path, s, "is in use"))
		case ip.Is6() && r.faults.On(fault.ExternalIPsIPv4Only):
			errs = append(errs, field.Invalid(path, s, "must be an IPv4 address"))
		case r.faults.On(fault.ExternalIPsSpecial):
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

// holds reports whether an address is in use as a cluster IP.
func (r *Rules) holds(ip netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, inUse := r.ips.inUse[ip]
	return inUse
}

// takeExternalIPs is what the fault ExternalIPsAllocated does: external IPs of the Service range are taken from it.
func (r *Rules) takeExternalIPs(tx *Transaction, svc *corev1.Service) {
	for _, s := range svc.Spec.ExternalIPs {
		if ip, ok := parseIP(s); ok {
			_ = tx.takeIP(ip)
		}
	}
}
