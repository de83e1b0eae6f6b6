package service

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	utilnet "k8s.io/utils/net"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

var clusterIPsPath = specPath.Child("clusterIPs")

// parseIP reads an address that has passed validation. Older versions let leading zeros and IPv4-mapped addresses pass.
func parseIP(s string) (netip.Addr, bool) {
	ip, ok := netip.AddrFromSlice(utilnet.ParseIPSloppy(s))
	return ip.Unmap(), ok
}

// clusterIPsOf returns the addresses that a stored Service holds.
func clusterIPsOf(svc *corev1.Service) []netip.Addr {
	if !hasClusterIP(svc) || isHeadless(svc) {
		return nil
	}
	ips := make([]netip.Addr, 0, len(svc.Spec.ClusterIPs))
	for _, s := range svc.Spec.ClusterIPs {
		if ip, ok := parseIP(s); ok {
			ips = append(ips, ip)
		}
	}
	return ips
}

// normalizeClusterIPs keeps clusterIP and clusterIPs in step for a client that knows, or changes, only one of them. A
// contradiction between the two is left for validation.
func (r *Rules) normalizeClusterIPs(svc, old *corev1.Service) {
	spec := &svc.Spec
	if old == nil {
		r.mendClusterIPs(svc)
		if spec.ClusterIP != "" && len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
		return
	}
	samePlural := slices.Equal(spec.ClusterIPs, old.Spec.ClusterIPs)
	switch spec.ClusterIP {
	case old.Spec.ClusterIP:
		if len(spec.ClusterIPs) == 0 {
			spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
		}
	case "":
		if samePlural {
			spec.ClusterIPs = nil
		}
	default:
		if samePlural {
			spec.ClusterIPs = []string{spec.ClusterIP}
		}
	}
}

// mendClusterIPs is where faults make the cluster IPs of a new Service fit that validation is to refuse.
func (r *Rules) mendClusterIPs(svc *corev1.Service) {
	spec := &svc.Spec
	if r.faults.On(fault.ClusterIPLenient) {
		spec.ClusterIPs = slices.DeleteFunc(slices.Clone(spec.ClusterIPs), func(s string) bool { _, ok := parseIP(s); return !ok && s != corev1.ClusterIPNone })
		if i := slices.Index(spec.ClusterIPs, corev1.ClusterIPNone); i >= 0 && len(spec.ClusterIPs) > 1 {
			spec.ClusterIPs = slices.Delete(spec.ClusterIPs, max(i, 1), len(spec.ClusterIPs))
		}
		if _, ok := parseIP(spec.ClusterIP); !ok && spec.ClusterIP != corev1.ClusterIPNone {
			spec.ClusterIP = ""
		}
	}
	if r.faults.On(fault.ClusterIPsContradiction) && len(spec.ClusterIPs) > 0 {
		spec.ClusterIP = spec.ClusterIPs[0]
	}
	if r.faults.On(fault.ClusterIPsTruncated) && len(spec.ClusterIPs) > 2 {
		spec.ClusterIPs = spec.ClusterIPs[:2]
	}
	if r.faults.On(fault.ClusterIPsOfOneFamily) && len(spec.ClusterIPs) == 2 {
		first, _ := parseIP(spec.ClusterIPs[0])
		if second, ok := parseIP(spec.ClusterIPs[1]); ok && familyOf(first) == familyOf(second) {
			spec.ClusterIPs = spec.ClusterIPs[:1]
		}
	}
}

// keepClusterIPs: an update that leaves the addresses out keeps them.
func (r *Rules) keepClusterIPs(svc, old *corev1.Service) {
	if !hasClusterIP(old) || !hasClusterIP(svc) || r.faults.On(fault.ClusterIPNotKept) {
		return
	}
	if svc.Spec.ClusterIP == "" {
		svc.Spec.ClusterIP = old.Spec.ClusterIP
	}
	if len(svc.Spec.ClusterIPs) == 0 {
		svc.Spec.ClusterIPs = slices.Clone(old.Spec.ClusterIPs)
	}
}

// allocateClusterIPs takes an address for each IP family of the Service: the one that the client named, or any.
func (r *Rules) allocateClusterIPs(tx *Transaction, svc *corev1.Service) error {
	if isHeadless(svc) && r.faults.On(fault.HeadlessAssigned) {
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
	}
	if !r.getsClusterIP(svc) || isHeadless(svc) || len(svc.Spec.ClusterIPs) == 0 && r.faults.On(fault.ClusterIPNotAssigned) {
		return nil
	}
	ips := make([]string, 0, 2)
	for i, family := range svc.Spec.IPFamilies {
		chosen := ""
		if i < len(svc.Spec.ClusterIPs) {
			chosen = svc.Spec.ClusterIPs[i]
		}
		ip, err := r.allocateClusterIP(tx, svc, family, chosen)
		if err != nil {
			return err
		}
		ips = append(ips, ip)
	}
	svc.Spec.ClusterIPs, svc.Spec.ClusterIP = ips, ips[0]
	return nil
}

// allocateClusterIP takes one address: the chosen one, kept as it is written, or any of the family.
func (r *Rules) allocateClusterIP(tx *Transaction, svc *corev1.Service, family corev1.IPFamily, chosen string) (string, error) {
	if chosen != "" && !r.faults.On(fault.ClusterIPIgnored) {
		if err := r.allocateStatic(tx, svc, chosen); err == nil || !r.faults.On(fault.ClusterIPReplaced) {
			return chosen, err
		}
	}
	ip, err := tx.takeNextIP(family)
	if errors.Is(err, allocator.ErrFull) {
		return "", exhausted(svc, "cluster IP", err)
	}
	if err != nil {
		return "", refusal(svc, field.ErrorList{field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, fmt.Sprintf("failed to allocate IP: %v", err))})
	}
	return ip.String(), nil
}

// allocateStatic: a chosen address is taken if it is in a range and free, otherwise the request fails.
func (r *Rules) allocateStatic(tx *Transaction, svc *corev1.Service, chosen string) error {
	ip, ok := parseIP(chosen)
	if !ok {
		return refusal(svc, field.ErrorList{field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, fmt.Sprintf("failed to parse IP %q", chosen))})
	}
	if err := tx.takeIP(ip); err != nil {
		return refusal(svc, field.ErrorList{field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, fmt.Sprintf("failed to allocate IP %s: %v", chosen, err))})
	}
	return nil
}

// updateClusterIPs takes and gives back addresses when the type changes from or to ExternalName, or when the Service gains
// or loses its secondary IP family.
func (r *Rules) updateClusterIPs(tx *Transaction, svc, old *corev1.Service) error {
	switch {
	case keepsPreferDualStack(svc, old):
		return nil
	case !hasClusterIP(old):
		err := r.allocateClusterIPs(tx, svc)
		if r.faults.On(fault.TypeChangeNotHeld) {
			tx.freedIPs = append(tx.freedIPs, tx.takenIPs...)
		}
		return err
	case isHeadless(old):
		return nil
	case !hasClusterIP(svc):
		if r.faults.On(fault.TypeChangeLeaksClusterIPs) {
			return nil
		}
		for _, ip := range clusterIPsOf(old) {
			tx.freeIP(ip)
		}
		return nil
	case svc.Spec.Type != old.Spec.Type && r.faults.On(fault.TypeChangeReassigns):
		for _, ip := range clusterIPsOf(old) {
			tx.freeIP(ip)
		}
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
		return r.allocateClusterIPs(tx, svc)
	case len(old.Spec.IPFamilies) == 1 && len(svc.Spec.IPFamilies) == 2:
		if r.faults.On(fault.DualStackUpgradeNoAddress) {
			return nil
		}
		return r.addSecondaryClusterIP(tx, svc)
	case len(old.Spec.IPFamilies) == 2 && len(svc.Spec.IPFamilies) == 1:
		if r.faults.On(fault.DualStackDowngradeLeaks) {
			return nil
		}
		for i, ip := range clusterIPsOf(old) {
			if i > 0 {
				tx.freeIP(ip)
			}
		}
	case r.faults.On(fault.TypeChangeFreesClusterIPs):
		for _, ip := range clusterIPsOf(old) {
			tx.freeIP(ip)
		}
	}
	return nil
}

// addSecondaryClusterIP: a Service that becomes dual-stack gets a second address, which the client may choose.
func (r *Rules) addSecondaryClusterIP(tx *Transaction, svc *corev1.Service) error {
	if isHeadless(svc) || len(svc.Spec.ClusterIPs) == 0 { // a change of the primary address, which validation refuses
		return nil
	}
	chosen := ""
	if len(svc.Spec.ClusterIPs) > 1 {
		chosen = svc.Spec.ClusterIPs[1]
	}
	ip, err := r.allocateClusterIP(tx, svc, svc.Spec.IPFamilies[1], chosen)
	if err != nil {
		return err
	}
	svc.Spec.ClusterIPs = append(svc.Spec.ClusterIPs[:1:1], ip)
	return nil
}

// clearClusterIPs: a change to ExternalName clears the addresses, unless the request changes them as well.
func (r *Rules) clearClusterIPs(svc, old *corev1.Service) {
	if !hasClusterIP(old) || hasClusterIP(svc) {
		return
	}
	if svc.Spec.ClusterIP == old.Spec.ClusterIP && slices.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs) {
		svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
	}
}

// validateClusterIPFields holds the rules for clusterIP, clusterIPs, ipFamilies and ipFamilyPolicy that need no knowledge of
// the cluster. They are checked before anything is allocated.
func (r *Rules) validateClusterIPFields(svc, old *corev1.Service) field.ErrorList {
	if !hasClusterIP(svc) {
		return nil
	}
	errs := r.validateClusterIPsMatchClusterIP(svc)
	errs = append(errs, r.validateIPFamilies(svc)...)
	errs = append(errs, r.validateIPFamilyPolicy(svc)...)
	invalid := r.validateClusterIPSyntax(svc, old)
	errs = append(errs, invalid...)
	if len(svc.Spec.ClusterIPs) > 2 {
		errs = append(errs, field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, "may only hold up to 2 values"))
	}
	if len(invalid) > 0 {
		return errs // the families of addresses that are none would be guesses
	}
	errs = append(errs, r.validateClusterIPsDualStack(svc)...)
	return append(errs, r.validateClusterIPsMatchFamilies(svc)...)
}

// validateClusterIPsMatchClusterIP: the first of clusterIPs is clusterIP.
func (r *Rules) validateClusterIPsMatchClusterIP(svc *corev1.Service) field.ErrorList {
	ip, ips := svc.Spec.ClusterIP, svc.Spec.ClusterIPs
	switch {
	case ip == "" && len(ips) > 0:
		return field.ErrorList{field.Invalid(clusterIPsPath, ips, "must be empty when `clusterIP` is not specified")}
	case ip != "" && len(ips) == 0:
		return field.ErrorList{field.Required(clusterIPsPath, "")}
	case ip != "" && ips[0] != ip:
		return field.ErrorList{field.Invalid(clusterIPsPath, ips, "first value must match `clusterIP`")}
	}
	return nil
}

// validateClusterIPSyntax: each of clusterIPs is an IP address, or the only one is None. A value that is stored may stay as it is.
func (r *Rules) validateClusterIPSyntax(svc, old *corev1.Service) (errs field.ErrorList) {
	var stored []string
	if old != nil {
		stored = old.Spec.ClusterIPs
	}
	for i, ip := range svc.Spec.ClusterIPs {
		if i == 0 && ip == corev1.ClusterIPNone {
			if len(svc.Spec.ClusterIPs) > 1 {
				errs = append(errs, field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, "'None' must be the first and only value"))
			}
			continue
		}
		errs = append(errs, validation.IsValidIPForLegacyField(clusterIPsPath.Index(i), ip, r.strictIPs() && !r.faults.On(fault.ClusterIPNotStrict), r.kept(stored))...)
	}
	return errs
}

// validateClusterIPsDualStack: several addresses are one of each family.
func (r *Rules) validateClusterIPsDualStack(svc *corev1.Service) field.ErrorList {
	families := map[corev1.IPFamily]bool{}
	for _, s := range svc.Spec.ClusterIPs {
		ip, _ := parseIP(s)
		if families[familyOf(ip)] {
			return field.ErrorList{field.Invalid(clusterIPsPath, svc.Spec.ClusterIPs, "may specify no more than one IP for each IP family")}
		}
		families[familyOf(ip)] = true
	}
	return nil
}

// validateClusterIPsMatchFamilies: the addresses are of the families that ipFamilies names, in that order.
func (r *Rules) validateClusterIPsMatchFamilies(svc *corev1.Service) (errs field.ErrorList) {
	if isHeadless(svc) || r.faults.On(fault.ClusterIPsOtherFamilies) {
		return nil
	}
	for i, s := range svc.Spec.ClusterIPs {
		if i >= len(svc.Spec.IPFamilies) || !slices.Contains(ipFamilies, svc.Spec.IPFamilies[i]) {
			continue
		}
		want := svc.Spec.IPFamilies[i]
		if ip, ok := parseIP(s); ok && familyOf(ip) != want {
			errs = append(errs, field.Invalid(clusterIPsPath.Index(i), s, fmt.Sprintf("expected an %s value as indicated by `ipFamilies[%d]`", want, i)))
		}
	}
	return errs
}

// validateClusterIPsUpdate: addresses do not change. Only the secondary one may come, or go together with the policy.
func (r *Rules) validateClusterIPsUpdate(svc, old *corev1.Service) (errs field.ErrorList) {
	if !hasClusterIP(svc) || !hasClusterIP(old) || isHeadless(svc) && isHeadless(old) {
		return nil
	}
	if r.faults.On(fault.ClusterIPMutable) || svc.Spec.Type != old.Spec.Type && r.faults.On(fault.TypeChangeReassigns) {
		return nil
	}
	now, before := svc.Spec.ClusterIPs, old.Spec.ClusterIPs
	switch {
	case len(now) == 0 && len(before) > 0:
		errs = append(errs, field.Invalid(clusterIPsPath.Index(0), now, "primary clusterIP can not be unset"))
	case len(now) == len(before):
		for i := range now {
			if now[i] != before[i] {
				errs = append(errs, field.Invalid(clusterIPsPath.Index(i), now, "may not change once set"))
			}
		}
	case len(before) > 0 && now[0] != before[0]:
		errs = append(errs, field.Invalid(clusterIPsPath.Index(0), now, "may not change once set"))
	}
	if len(now) == 1 && len(before) == 2 && policyOf(svc) != corev1.IPFamilyPolicySingleStack {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc), "must be set to 'SingleStack' when releasing the secondary clusterIP"))
	}
	return errs
}
