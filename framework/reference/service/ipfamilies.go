package service

import (
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
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

// familiesDecided decides which families the Service gets. Afterwards ipFamilyPolicy is set, and ipFamilies holds exactly the
// families that need an address.
var familiesDecided = rule.New("ip-families-decided", func(t *Transaction, svc, old *corev1.Service) error {
	r := t.rules
	if !r.typeHasClusterIPs.Do(svc) || keepsPreferDualStack(svc, old) {
		return nil
	}
	r.adjust(r.policyDefaults, svc, old)
	if errs := validateClusterIPFields(r, svc, old); len(errs) > 0 {
		return refusal(svc, errs)
	}
	errs := r.refusals(nil, r.familyChecks, svc, old)
	if errs = append(errs, r.familiesInferred.Do(r, svc)...); len(errs) > 0 {
		return refusal(svc, errs)
	}
	if isSelectorlessHeadless(svc) {
		r.completeIPFamilies(svc, true)
		return nil
	}
	if errs := r.refusals(nil, r.configuredChecks, svc, old); len(errs) > 0 {
		return refusal(svc, errs)
	}
	r.completeIPFamilies(svc, len(r.families) == 2)
	return nil
}, spec.APIIPFamiliesDefault, spec.APIIPFamiliesChosen, spec.APIHeadlessFamilies)

// An update that leaves the families of a headless Service out keeps them. Those of any other follow from its addresses.
var headlessFamiliesKept = rule.New("headless-families-kept", func(_ *Rules, svc, old *corev1.Service) {
	if isHeadless(old) && svc.Spec.ClusterIP == corev1.ClusterIPNone && len(svc.Spec.IPFamilies) == 0 {
		svc.Spec.IPFamilies = slices.Clone(old.Spec.IPFamilies)
	}
}, spec.APIHeadlessPrimaryFamilyImmutable, spec.APIIPFamilyPolicyKept)

// keepsPreferDualStack lets a PreferDualStack Service keep its families, even if the cluster has gained or lost one
// since. The client must change policy, families or addresses to change them.
func keepsPreferDualStack(svc, old *corev1.Service) bool {
	return old != nil && svc.Spec.Type == old.Spec.Type && hasClusterIP(svc) &&
		policyOf(svc) == corev1.IPFamilyPolicyPreferDualStack && policyOf(old) == corev1.IPFamilyPolicyPreferDualStack &&
		slices.Equal(svc.Spec.ClusterIPs, old.Spec.ClusterIPs) && slices.Equal(svc.Spec.IPFamilies, old.Spec.IPFamilies)
}

// The policy of a Service that names none; the first rule that sets it decides.
var (
	policyKept = rule.New("ip-family-policy-kept", func(_ *Rules, svc, old *corev1.Service) {
		if svc.Spec.IPFamilyPolicy == nil && old != nil && old.Spec.IPFamilyPolicy != nil {
			svc.Spec.IPFamilyPolicy = new(*old.Spec.IPFamilyPolicy)
		}
	}, spec.APIIPFamilyPolicyKept)

	// A headless Service without selector may have endpoints of any family.
	selectorlessPolicyDefault = rule.New("selectorless-policy-default", func(_ *Rules, svc, _ *corev1.Service) {
		if svc.Spec.IPFamilyPolicy == nil && isSelectorlessHeadless(svc) {
			svc.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicyRequireDualStack)
		}
	}, spec.APIHeadlessSelectorlessFamilies)

	policyDefault = rule.New("ip-family-policy-default", defaultPolicyOf(corev1.IPFamilyPolicySingleStack), spec.APIIPFamilyPolicyDefault)
)

// defaultPolicyOf makes a rule: this is the policy of a Service that names none.
func defaultPolicyOf(policy corev1.IPFamilyPolicy) adjusting {
	return func(_ *Rules, svc, _ *corev1.Service) {
		if svc.Spec.IPFamilyPolicy == nil {
			svc.Spec.IPFamilyPolicy = new(policy)
		}
	}
}

// Rules for the number of families, and for those that follow from addresses.
var (
	// A change of the policy to SingleStack alone drops the secondary address and family.
	singleStackDropsSecondary = rule.New("single-stack-drops-secondary", func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
		if old == nil || policyOf(svc) != corev1.IPFamilyPolicySingleStack {
			return nil
		}
		spec, before := &svc.Spec, &old.Spec
		if len(spec.ClusterIPs) > 1 && slices.Equal(spec.ClusterIPs, before.ClusterIPs) {
			spec.ClusterIPs = spec.ClusterIPs[:1:1]
		}
		if len(spec.IPFamilies) > 1 && slices.Equal(spec.IPFamilies, before.IPFamilies) {
			spec.IPFamilies = spec.IPFamilies[:1:1]
		}
		return nil
	}, spec.APIDualStackDowngrade)

	dualStackKeepsSecondary = rule.New("dual-stack-keeps-secondary", func(_ *Rules, svc, old *corev1.Service) (errs field.ErrorList) {
		if old == nil || policyOf(svc) == corev1.IPFamilyPolicySingleStack {
			return nil
		}
		if n := len(svc.Spec.ClusterIPs); n > 0 && n < len(old.Spec.ClusterIPs) {
			errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc), "must be 'SingleStack' to release the secondary cluster IP"))
		}
		if n := len(svc.Spec.IPFamilies); n > 0 && n < len(old.Spec.IPFamilies) {
			errs = append(errs, field.Invalid(ipFamilyPolicyPath, policyOf(svc), "must be 'SingleStack' to release the secondary IP family"))
		}
		return errs
	}, spec.APIIPFamiliesRemovalNeedsSingleStack)

	singleStackHasOneFamily = rule.New("single-stack-has-one-family", func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
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
	}, spec.APISingleStack, spec.APIClusterIPsPolicy, spec.APIIPFamiliesPolicy, spec.APIIPFamiliesSecondaryNeedsPolicy)

	familiesFollowAddresses = rule.New("ip-families-follow-addresses", func(r *Rules, svc *corev1.Service) (errs field.ErrorList) {
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
	}, spec.APIClusterIPsMatchFamilies, spec.APIClusterIPOutOfRange)
)

// What a cluster of one family cannot do.
var (
	dualStackConfigured = rule.New("dual-stack-configured", func(r *Rules, svc, _ *corev1.Service) field.ErrorList {
		if policyOf(svc) == corev1.IPFamilyPolicyRequireDualStack && len(r.families) < 2 {
			return noDualStack(svc)
		}
		return nil
	}, spec.APIRequireDualStackOnSingleStack, spec.APIPreferDualStackOnSingleStack)

	familiesConfigured = rule.New("ip-families-configured", func(r *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		for i, family := range svc.Spec.IPFamilies {
			if !slices.Contains(r.families, family) {
				errs = append(errs, field.Invalid(ipFamiliesPath.Index(i), family, "not configured on this cluster"))
			}
		}
		return errs
	}, spec.APIIPFamiliesNotConfigured, spec.AllocNoRangeNoAddress)
)

func noDualStack(svc *corev1.Service) field.ErrorList {
	return field.ErrorList{field.Invalid(ipFamilyPolicyPath, policyOf(svc), "this cluster is not configured for dual-stack services")}
}

// completeIPFamilies adds the families that the Service gets without naming them.
func (r *Rules) completeIPFamilies(svc *corev1.Service, dualStack bool) {
	if len(svc.Spec.IPFamilies) == 0 {
		svc.Spec.IPFamilies = []corev1.IPFamily{r.familyDefault.Do(r)}
	}
	if len(svc.Spec.IPFamilies) == 1 && dualStack && r.policyGetsBoth.Do(svc) {
		svc.Spec.IPFamilies = append(svc.Spec.IPFamilies, otherFamily(svc.Spec.IPFamilies[0]))
	}
}

var (
	// The default family is that of the first range of the cluster.
	familyDefault = rule.New("ip-family-default", func(r *Rules) corev1.IPFamily { return r.families[0] },
		spec.APIIPFamiliesDefault, spec.APISingleStack, spec.APIHeadlessFamilies)

	// A policy that wants two families gets both, where there can be two.
	policyGetsBoth = rule.New("dual-stack-policy-gets-both", func(svc *corev1.Service) bool { return policyOf(svc) != corev1.IPFamilyPolicySingleStack },
		spec.APIPreferDualStack, spec.APIRequireDualStack, spec.APIDualStackCompletesFamilies, spec.APISingleStack)
)

// A change to ExternalName clears families and policy, unless the request changes them as well.
var familiesCleared = rule.New("ip-families-cleared", func(_ *Rules, svc, old *corev1.Service) {
	if !hasClusterIP(old) || hasClusterIP(svc) {
		return
	}
	if slices.Equal(svc.Spec.IPFamilies, old.Spec.IPFamilies) {
		svc.Spec.IPFamilies = nil
	}
	if policyOf(svc) == policyOf(old) {
		svc.Spec.IPFamilyPolicy = nil
	}
}, spec.APIIPFamiliesCleared, spec.APIUpdateClearsUnchanged)

// Rules for ipFamilies and ipFamilyPolicy.
var (
	// A family is IPv4 or IPv6 and is named once, which leaves two entries at most.
	familiesKnown = rule.New("ip-families-known", func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		for i, family := range svc.Spec.IPFamilies {
			if !slices.Contains(ipFamilies, family) {
				errs = append(errs, field.NotSupported(ipFamiliesPath.Index(i), family, ipFamilies))
			}
			if slices.Contains(svc.Spec.IPFamilies[:i], family) {
				errs = append(errs, field.Duplicate(ipFamiliesPath.Index(i), family))
			}
		}
		return errs
	}, spec.APIIPFamiliesValues, spec.APIIPFamiliesAtMostTwo)

	policyKnown = rule.New("ip-family-policy-known", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if svc.Spec.IPFamilyPolicy == nil || slices.Contains(ipFamilyPolicies, policyOf(svc)) {
			return nil
		}
		return unknownPolicy(svc)
	}, spec.APIIPFamilyPolicyValues)

	// The primary family does not change, in a headless Service either.
	primaryFamilyImmutable = rule.New("primary-family-immutable", func(_ *Rules, svc, old *corev1.Service) (errs field.ErrorList) {
		if !keepsFamilies(svc, old) {
			return nil
		}
		now, before := svc.Spec.IPFamilies, old.Spec.IPFamilies
		switch {
		case len(now) == 0 && len(before) > 0:
			errs = append(errs, field.Invalid(ipFamiliesPath.Index(0), now, "primary ipFamily can not be unset"))
		case len(now) == len(before) && !slices.Equal(now, before), len(before) > 0 && now[0] != before[0]:
			errs = append(errs, field.Invalid(ipFamiliesPath.Index(0), now, "may not change once set"))
		}
		return errs
	}, spec.APIIPFamiliesPrimaryImmutable, spec.APIHeadlessPrimaryFamilyImmutable)

	secondaryFamilyGoesWithPolicy = rule.New("secondary-family-goes-with-policy", func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
		if keepsFamilies(svc, old) && len(svc.Spec.IPFamilies) == 1 && len(old.Spec.IPFamilies) == 2 && policyOf(svc) != corev1.IPFamilyPolicySingleStack {
			return field.ErrorList{field.Invalid(ipFamilyPolicyPath, policyOf(svc), "must be set to 'SingleStack' when releasing the secondary ipFamily")}
		}
		return nil
	}, spec.APIIPFamiliesRemovalNeedsSingleStack)
)

func unknownPolicy(svc *corev1.Service) field.ErrorList {
	return field.ErrorList{field.NotSupported(ipFamilyPolicyPath, *svc.Spec.IPFamilyPolicy, ipFamilyPolicies)}
}

// keepsFamilies reports whether an update has to leave the primary family as it is.
func keepsFamilies(svc, old *corev1.Service) bool {
	return hasClusterIP(svc) && hasClusterIP(old) && isHeadless(svc) == isHeadless(old)
}
