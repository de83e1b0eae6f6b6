package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

var (
	externalTrafficPolicyPath = specPath.Child("externalTrafficPolicy")
	internalTrafficPolicyPath = specPath.Child("internalTrafficPolicy")

	externalTrafficPolicies = []corev1.ServiceExternalTrafficPolicy{corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal}
	internalTrafficPolicies = []corev1.ServiceInternalTrafficPolicy{corev1.ServiceInternalTrafficPolicyCluster, corev1.ServiceInternalTrafficPolicyLocal}
)

// Rules for externalTrafficPolicy.
var (
	// Only Services that external traffic can reach have the policy.
	externalPolicyDefault = rule.New("external-traffic-policy-default", defaultExternalPolicyOf(isExternallyAccessible), spec.APIExternalTrafficPolicyDefault)

	// A change that ends external traffic clears the policy, unless the request changes it as well.
	externalPolicyCleared = rule.New("external-traffic-policy-cleared", func(_ *Rules, svc, old *corev1.Service) {
		if isExternallyAccessible(old) && !isExternallyAccessible(svc) && svc.Spec.ExternalTrafficPolicy == old.Spec.ExternalTrafficPolicy {
			svc.Spec.ExternalTrafficPolicy = ""
		}
	}, spec.APIExternalTrafficPolicyCleared, spec.APIUpdateClearsUnchanged)

	externalPolicyForExternalTraffic = rule.New("external-traffic-policy-for-external-traffic", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if policy := svc.Spec.ExternalTrafficPolicy; policy != "" && !isExternallyAccessible(svc) {
			return field.ErrorList{field.Invalid(externalTrafficPolicyPath, policy, "may only be set for externally-accessible services")}
		}
		return nil
	}, spec.APIExternalTrafficPolicyExternal)

	externalPolicyKnown = rule.New("external-traffic-policy-known", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		switch policy := svc.Spec.ExternalTrafficPolicy; {
		case !isExternallyAccessible(svc):
		case policy == "":
			return field.ErrorList{field.Required(externalTrafficPolicyPath, "")}
		case !slices.Contains(externalTrafficPolicies, policy):
			return unknownExternalPolicy(svc)
		}
		return nil
	}, spec.APIExternalTrafficPolicyValues)
)

// defaultExternalPolicyOf makes a rule: the policy is Cluster by default, where it applies.
func defaultExternalPolicyOf(applies func(*corev1.Service) bool) defaulting {
	return func(svc *corev1.Service) {
		if svc.Spec.ExternalTrafficPolicy == "" && applies(svc) {
			svc.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
		}
	}
}

func unknownExternalPolicy(svc *corev1.Service) field.ErrorList {
	return field.ErrorList{field.NotSupported(externalTrafficPolicyPath, svc.Spec.ExternalTrafficPolicy, externalTrafficPolicies)}
}

// Rules for internalTrafficPolicy.
var (
	// Every type that has cluster IPs has the policy.
	internalPolicyDefault = rule.New("internal-traffic-policy-default", func(svc *corev1.Service) {
		if svc.Spec.InternalTrafficPolicy == nil && hasInternalPolicy(svc) {
			svc.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
		}
	}, spec.APIInternalTrafficPolicyDefault, spec.APITrafficPoliciesIndependent)

	// An alias may have the policy, without effect, and does not show it.
	internalPolicyHidden = rule.New("internal-traffic-policy-not-shown-for-alias", func(svc *corev1.Service) {
		if svc.Spec.Type == corev1.ServiceTypeExternalName {
			svc.Spec.InternalTrafficPolicy = nil
		}
	}, spec.APIInternalTrafficPolicyExternalName)

	internalPolicySet = rule.New("internal-traffic-policy-set", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if svc.Spec.InternalTrafficPolicy == nil && hasInternalPolicy(svc) {
			return field.ErrorList{field.Required(internalTrafficPolicyPath, "")}
		}
		return nil
	}, spec.APIInternalTrafficPolicyDefault)

	internalPolicyKnown = rule.New("internal-traffic-policy-known", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if policy := svc.Spec.InternalTrafficPolicy; policy != nil && !slices.Contains(internalTrafficPolicies, *policy) {
			return unknownInternalPolicy(svc)
		}
		return nil
	}, spec.APIInternalTrafficPolicyValues)
)

// hasInternalPolicy reports whether the type is a known one that has cluster IPs.
func hasInternalPolicy(svc *corev1.Service) bool {
	return svc.Spec.Type == corev1.ServiceTypeClusterIP || hasNodePorts(svc)
}

func unknownInternalPolicy(svc *corev1.Service) field.ErrorList {
	return field.ErrorList{field.NotSupported(internalTrafficPolicyPath, *svc.Spec.InternalTrafficPolicy, internalTrafficPolicies)}
}

// Rules for trafficDistribution.
var (
	// The preferences that may be set (KEP-4444; KEP-3015 for the second and third).
	distributions = rule.New("traffic-distributions", func(r *Rules) []string {
		known := []string{corev1.ServiceTrafficDistributionPreferClose}
		if r.version.preferSame() {
			known = append(known, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
		}
		return known
	}, spec.APITrafficDistributionPreferClose, spec.APITrafficDistributionPreferSame)

	distributionKnown = rule.New("traffic-distribution-known", func(r *Rules, svc, _ *corev1.Service) field.ErrorList {
		distribution := svc.Spec.TrafficDistribution
		if distribution == nil {
			return nil
		}
		if known := r.distributions.Do(r); !slices.Contains(known, *distribution) {
			return field.ErrorList{field.NotSupported(specPath.Child("trafficDistribution"), *distribution, known)}
		}
		return nil
	}, spec.APITrafficDistributionUnknown, spec.APITrafficDistributionOptional)
)
