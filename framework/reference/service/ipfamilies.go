package service

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	ipFamiliesPath     = specPath.Child("ipFamilies")
	ipFamilyPolicyPath = specPath.Child("ipFamilyPolicy")

	ipFamilies       = []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}
	ipFamilyPolicies = []corev1.IPFamilyPolicy{
		corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack, corev1.IPFamilyPolicySingleStack,
	}
)

func familyOf(ip netip.Addr) corev1.IPFamily {
	if ip.Is4() {
		return corev1.IPv4Protocol
	}
	return corev1.IPv6Protocol
}

func otherFamily(family corev1.IPFamily) corev1.IPFamily {
	if family == corev1.IPv4Protocol {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}

// policyOf returns the policy, or "" where none is set.
func policyOf(svc *corev1.Service) corev1.IPFamilyPolicy {
	if svc.Spec.IPFamilyPolicy == nil {
		return ""
	}
	return *svc.Spec.IPFamilyPolicy
}

// initIPFamilies decides which families the Service gets. Afterwards ipFamilyPolicy is set, and ipFamilies holds exactly the
// families that need an address.
func (r *Rules) initIPFamilies(svc, old *corev1.Service) error {
	if !hasClusterIP(svc) || keepsPreferDualStack(svc, old) {
		return nil
	}
	r.initIPFamilyPolicy(svc, old)
	if errs := r.validateClusterIPFields(svc, old); len(errs) > 0 {
		return refusal(svc, errs)
	}
	errs := r.dropSecondary(svc, old)
	errs = append(errs, r.validateSingleStack(svc)...)
	errs = append(errs, r.inferIPFamilies(svc)...)
	if len(errs) > 0 {
		return refusal(svc, errs)
	}
	if isSelectorlessHeadless(svc) {
		r.completeIPFamilies(svc, true)
		return nil
	}
	if errs := r.validateFamiliesConfigured(svc); len(errs) > 0 {
		return refusal(svc, errs)
	}
	r.completeIPFamilies(svc, len(r.families) == 2)
	return nil
}

// keepsPreferDualStack: a PreferDualStack Service keeps the families that it has, even if the cluster has gained or lost one
// since, until the client changes policy, families or addresses.
func keepsPreferDualStack(svc, old *corev1.Service) bool {
	return old != nil && svc.Spec.Type == old.Spec.Type && hasClusterIP(svc) &&
		policyOf(svc) == corev1.IPFamilyPolicyPreferDualStack && policyOf(old) == corev1.IPFamilyPolicyPreferDualStack &&
		slices.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs) && slices.Equal(svc.Spec.IPFamilies, old.Spec.IPFamilies)
}

// initIPFamilyPolicy: the policy is SingleStack by default. An update keeps the policy that there was. A headless Service
// without selector may have endpoints of any family.
func (r *Rules) initIPFamilyPolicy(svc, old *corev1.Service) {
	if svc.Spec.IPFamilyPolicy != nil {
		return
	}
	policy := corev1.IPFamilyPolicySingleStack
	switch {
	case old != nil && old.Spec.IPFamilyPolicy != nil:
		policy = *old.Spec.IPFamilyPolicy
	case isSelectorlessHeadless(svc):
		policy = corev1.IPFamilyPolicyRequireDualStack
	}
	svc.Spec.IPFamilyPolicy = &policy
}

// dropSecondary: a change of the policy to SingleStack alone drops the secondary address and family; dropping them under
// another policy is refused.
func (r *Rules) dropSecondary(svc, old *corev1.Service) (errs field.ErrorList) {
	if old == nil {
		return nil
	}
	spec, before := &svc.Spec, &old.Spec
	if policyOf(svc) == corev1.IPFamilyPolicySingleStack {
		if len(spec.ClusterIPs) > 1 && slices.Equal(spec.ClusterIPs, before.ClusterIPs) {
			spec.ClusterIPs = spec.ClusterIPs[:1:1]
		}
		if len(spec.IPFamilies) > 1 && slices.Equal(spec.IPFamilies, before.IPFamilies) {
			spec.IPFamilies = spec.IPFamilies[:1:1]
		}
		return nil
	}
	if n := len(spec.ClusterIPs); n > 0 && n < len(before.ClusterIPs) {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc), "must be 'SingleStack' to release the secondary cluster IP"))
	}
	if n := len(spec.IPFamilies); n > 0 && n < len(before.IPFamilies) {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc), "must be 'SingleStack' to release the secondary IP family"))
	}
	return errs
}

// validateSingleStack: SingleStack allows one address and one family.
func (r *Rules) validateSingleStack(svc *corev1.Service) (errs field.ErrorList) {
	if policyOf(svc) != corev1.IPFamilyPolicySingleStack {
		return nil
	}
	if len(svc.Spec.ClusterIPs) == 2 {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc),
			"must be 'RequireDualStack' or 'PreferDualStack' when multiple cluster IPs are specified"))
	}
	if len(svc.Spec.IPFamilies) == 2 {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc),
			"must be 'RequireDualStack' or 'PreferDualStack' when multiple IP families are specified"))
	}
	return errs
}

// inferIPFamilies: families that the client did not name follow from the addresses that it did name.
func (r *Rules) inferIPFamilies(svc *corev1.Service) (errs field.ErrorList) {
	if isHeadless(svc) {
		return nil
	}
	for i := len(svc.Spec.IPFamilies); i < len(svc.Spec.ClusterIPs); i++ {
		ip, _ := parseIP(svc.Spec.ClusterIPs[i])
		family := familyOf(ip)
		if !slices.Contains(r.families, family) {
			errs = append(errs, field.Invalid(clusterIPsPath.Index(i), svc.Spec.ClusterIPs, fmt.Sprintf("%s is not configured on this cluster", family)))
			continue
		}
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, family)
	}
	return errs
}

// validateFamiliesConfigured: a cluster of one family cannot do what RequireDualStack asks for, and a family that is named
// must be one of the cluster.
func (r *Rules) validateFamiliesConfigured(svc *corev1.Service) (errs field.ErrorList) {
	if policyOf(svc) == corev1.IPFamilyPolicyRequireDualStack && len(r.families) < 2 {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc), "this cluster is not configured for dual-stack services"))
	}
	for i, family := range svc.Spec.IPFamilies {
		if !slices.Contains(r.families, family) {
			errs = append(errs, field.Invalid(ipFamiliesPath.Index(i), family, "not configured on this cluster"))
		}
	}
	return errs
}

// completeIPFamilies: the first family is by default that of the cluster; a policy that wants two gets the other one too,
// where there can be two.
func (r *Rules) completeIPFamilies(svc *corev1.Service, dualStack bool) {
	if len(svc.Spec.IPFamilies) == 0 {
		svc.Spec.IPFamilies = []corev1.IPFamily{r.families[0]}
	}
	if len(svc.Spec.IPFamilies) == 1 && dualStack && policyOf(svc) != corev1.IPFamilyPolicySingleStack {
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, otherFamily(svc.Spec.IPFamilies[0]))
	}
}

// clearIPFamilies: a change to ExternalName clears families and policy, unless the request changes them as well.
func (r *Rules) clearIPFamilies(svc, old *corev1.Service) {
	if !hasClusterIP(old) || hasClusterIP(svc) {
		return
	}
	if slices.Equal(svc.Spec.IPFamilies, old.Spec.IPFamilies) {
		svc.Spec.IPFamilies = nil
	}
	if policyOf(svc) == policyOf(old) {
		svc.Spec.IPFamilyPolicy = nil
	}
}

// validateIPFamilies: a family is IPv4 or IPv6 and is named once, which leaves two entries at most.
func (r *Rules) validateIPFamilies(svc *corev1.Service) (errs field.ErrorList) {
	for i, family := range svc.Spec.IPFamilies {
		if !slices.Contains(ipFamilies, family) {
			errs = append(errs, field.NotSupported(ipFamiliesPath.Index(i), family, ipFamilies))
		}
		if slices.Contains(svc.Spec.IPFamilies[:i], family) {
			errs = append(errs, field.Duplicate(ipFamiliesPath.Index(i), family))
		}
	}
	return errs
}

// validateIPFamilyPolicy: the policy is one of three.
func (r *Rules) validateIPFamilyPolicy(svc *corev1.Service) field.ErrorList {
	if svc.Spec.IPFamilyPolicy == nil || slices.Contains(ipFamilyPolicies, *svc.Spec.IPFamilyPolicy) {
		return nil
	}
	return field.ErrorList{field.NotSupported(ipFamilyPolicyPath, *svc.Spec.IPFamilyPolicy, ipFamilyPolicies)}
}

// validateIPFamiliesUpdate: the primary family does not change; a secondary one may come, or go together with the policy. A
// headless Service may change its families, for it holds no addresses.
func (r *Rules) validateIPFamiliesUpdate(svc, old *corev1.Service) (errs field.ErrorList) {
	if !hasClusterIP(svc) || !hasClusterIP(old) || isHeadless(svc) || isHeadless(old) {
		return nil
	}
	now, before := svc.Spec.IPFamilies, old.Spec.IPFamilies
	switch {
	case len(now) == 0 && len(before) > 0:
		errs = append(errs, field.Invalid(ipFamiliesPath.Index(0), now, "primary ipFamily can not be unset"))
	case len(now) == len(before) && !slices.Equal(now, before), len(before) > 0 && now[0] != before[0]:
		errs = append(errs, field.Invalid(ipFamiliesPath.Index(0), now, "may not change once set"))
	}
	if len(now) == 1 && len(before) == 2 && policyOf(svc) != corev1.IPFamilyPolicySingleStack {
		errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc), "must be set to 'SingleStack' when releasing the secondary ipFamily"))
	}
	return errs
}
