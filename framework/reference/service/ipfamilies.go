package service

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
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
	if !r.getsClusterIP(svc) || keepsPreferDualStack(svc, old) {
		return nil
	}
	r.mendIPFamilies(svc, old)
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
	if len(svc.Spec.IPFamilies) == 2 && svc.Spec.IPFamilies[0] != r.families[0] && r.faults.On(fault.IPFamiliesReordered) {
		slices.Reverse(svc.Spec.IPFamilies)
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

// mendIPFamilies is where faults make families fit that validation is to refuse.
func (r *Rules) mendIPFamilies(svc, old *corev1.Service) {
	spec := &svc.Spec
	if r.faults.On(fault.IPFamiliesIgnored) && old == nil {
		spec.IPFamilies = nil
	}
	if r.faults.On(fault.IPFamiliesUnknown) {
		spec.IPFamilies = slices.DeleteFunc(spec.IPFamilies, func(f corev1.IPFamily) bool { return !slices.Contains(r.families, f) })
	}
	if r.faults.On(fault.IPFamiliesMerged) {
		var once []corev1.IPFamily
		for _, family := range spec.IPFamilies {
			if !slices.Contains(once, family) {
				once = append(once, family)
			}
		}
		spec.IPFamilies = once
	}
	if r.faults.On(fault.IPFamiliesRestored) && old != nil && hasClusterIP(old) {
		spec.IPFamilies = slices.Clone(old.Spec.IPFamilies)
	}
}

// keepIPFamilies: an update that leaves the families of a headless Service out keeps them. Those of any other follow from its
// addresses.
func (r *Rules) keepIPFamilies(svc, old *corev1.Service) {
	if r.faults.On(fault.HeadlessFamiliesMutable) {
		return
	}
	if isHeadless(old) && svc.Spec.ClusterIP == corev1.ClusterIPNone && len(svc.Spec.IPFamilies) == 0 {
		svc.Spec.IPFamilies = slices.Clone(old.Spec.IPFamilies)
	}
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
	if r.faults.On(fault.DualStackByDefault) {
		policy = corev1.IPFamilyPolicyPreferDualStack
	}
	switch {
	case old != nil && old.Spec.IPFamilyPolicy != nil && !r.faults.On(fault.IPFamilyPolicyReset):
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
	if r.faults.On(fault.DualStackRemovalIgnored) && len(before.IPFamilies) == 2 {
		spec.ClusterIPs, spec.IPFamilies = slices.Clone(before.ClusterIPs), slices.Clone(before.IPFamilies)
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
	if policyOf(svc) != corev1.IPFamilyPolicySingleStack || r.faults.On(fault.IPFamilyPolicyIgnored) {
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
	if isHeadless(svc) || r.faults.On(fault.ClusterIPsFamilyNotInferred) {
		return nil
	}
	for i := len(svc.Spec.IPFamilies); i < len(svc.Spec.ClusterIPs); i++ {
		ip, _ := parseIP(svc.Spec.ClusterIPs[i])
		family := familyOf(ip)
		if !slices.Contains(r.families, family) {
			if r.faults.On(fault.ClusterIPOtherFamily) {
				svc.Spec.ClusterIP, svc.Spec.ClusterIPs = "", nil
				break
			}
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
	refused := policyOf(svc) == corev1.IPFamilyPolicyRequireDualStack && !r.faults.On(fault.RequireDualStackAsPrefer) ||
		policyOf(svc) == corev1.IPFamilyPolicyPreferDualStack && r.faults.On(fault.PreferDualStackRefused)
	if refused && len(r.families) < 2 {
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
		svc.Spec.IPFamilies = []corev1.IPFamily{r.defaultFamily()}
	}
	wantsBoth := policyOf(svc) != corev1.IPFamilyPolicySingleStack && !r.faults.On(fault.DualStackNotCompleted) || r.faults.On(fault.SingleStackGetsBoth)
	if len(svc.Spec.IPFamilies) == 1 && dualStack && wantsBoth {
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, otherFamily(svc.Spec.IPFamilies[0]))
	}
}

// defaultFamily is that of the first range of the cluster.
func (r *Rules) defaultFamily() corev1.IPFamily {
	if r.faults.On(fault.IPFamiliesDefaultLast) {
		return r.families[len(r.families)-1]
	}
	return r.families[0]
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
	known := slices.Contains(ipFamilyPolicies, policyOf(svc)) || r.faults.On(fault.IPFamilyPolicyNotValidated)
	if policyOf(svc) == corev1.IPFamilyPolicyPreferDualStack && r.faults.On(fault.PreferDualStackUnknown) {
		known = false
	}
	if svc.Spec.IPFamilyPolicy == nil || known {
		return nil
	}
	return field.ErrorList{field.NotSupported(ipFamilyPolicyPath, *svc.Spec.IPFamilyPolicy, ipFamilyPolicies)}
}

// validateIPFamiliesUpdate: the primary family does not change, in a headless Service either; a secondary one may come, or go
// together with the policy.
func (r *Rules) validateIPFamiliesUpdate(svc, old *corev1.Service) (errs field.ErrorList) {
	if !hasClusterIP(svc) || !hasClusterIP(old) || isHeadless(svc) != isHeadless(old) {
		return nil
	}
	if isHeadless(svc) && r.faults.On(fault.HeadlessFamiliesMutable) {
		return nil
	}
	if policyOf(svc) != policyOf(old) && len(old.Spec.IPFamilies) == 2 && len(svc.Spec.IPFamilies) == 2 && r.faults.On(fault.DualStackPolicyFixed) {
		return field.ErrorList{field.Invalid(ipFamilyPolicyPath, policyOf(svc), "may not change once set")}
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
