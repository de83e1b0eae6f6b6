package service

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Warnings returns what a client is told, in Warning headers, about a request that is accepted. It tells of values that
// are ignored, deprecated or written in an unusual way. A change of the status has StatusWarnings instead.
func (r *Rules) Warnings(svc *corev1.Service) (warnings []string) {
	for i := range r.warnings {
		warnings = append(warnings, r.warnings[i].Do(r, svc)...)
	}
	return warnings
}

// StatusWarnings returns what a client is told about an accepted change of the status. No document speaks of it: kube-apiserver does so
// (pkg/registry/core/service/strategy.go, v1.37.1, serviceStatusStrategy).
func (r *Rules) StatusWarnings(svc *corev1.Service) (warnings []string) {
	for i := range svc.Status.LoadBalancer.Ingress {
		if ip := svc.Status.LoadBalancer.Ingress[i].IP; ip != "" {
			warnings = append(warnings, validation.GetWarningsForIP(ingressPath.Index(i), ip)...)
		}
	}
	return warnings
}

// Warnings of what is deprecated.
var (
	topologyHintsWarned = rule.New("topology-hints-warned", func(_ *Rules, svc *corev1.Service) (warnings []string) {
		if _, set := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; set {
			warnings = append(warnings, fmt.Sprintf("annotation %s is deprecated, please use %s instead",
				corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
		}
		return warnings
	}, spec.APIWarningTopologyHints)

	externalIPsWarned = rule.New("external-ips-warned", func(r *Rules, svc *corev1.Service) (warnings []string) {
		if r.version.externalIPsDeprecated() && len(svc.Spec.ExternalIPs) > 0 && !isHeadless(svc) && hasClusterIP(svc) {
			warnings = append(warnings, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
		}
		return warnings
	}, spec.APIWarningExternalIPs)

	preferCloseWarned = rule.New("prefer-close-warned", func(r *Rules, svc *corev1.Service) (warnings []string) {
		if d := svc.Spec.TrafficDistribution; r.version.preferCloseDeprecated() && d != nil && *d == corev1.ServiceTrafficDistributionPreferClose {
			warnings = append(warnings, fmt.Sprintf("spec.trafficDistribution: %q is deprecated; use %q",
				corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone))
		}
		return warnings
	}, spec.APIWarningPreferClose)
)

// Warnings of fields that have no effect for this Service.
var (
	headlessIgnoresWarned = rule.New("headless-ignores-warned", func(r *Rules, svc *corev1.Service) (warnings []string) {
		if !isHeadless(svc) || !r.version.headlessWarnings() {
			return nil
		}
		if svc.Spec.LoadBalancerIP != "" {
			warnings = append(warnings, "spec.loadBalancerIP is ignored for headless services")
		}
		if len(svc.Spec.ExternalIPs) > 0 {
			warnings = append(warnings, "spec.externalIPs is ignored for headless services")
		}
		if svc.Spec.SessionAffinity != corev1.ServiceAffinityNone {
			warnings = append(warnings, "spec.SessionAffinity is ignored for headless services")
		}
		return warnings
	}, spec.APIWarningHeadlessIgnored)

	aliasIgnoresExternalIPsWarned = rule.New("alias-ignores-external-ips-warned", func(_ *Rules, svc *corev1.Service) (warnings []string) {
		if !hasClusterIP(svc) && len(svc.Spec.ExternalIPs) > 0 {
			warnings = append(warnings, fmt.Sprintf("spec.externalIPs is ignored when spec.type is %q", corev1.ServiceTypeExternalName))
		}
		return warnings
	}, spec.APIWarningExternalIPsIgnored)

	externalNameIgnoredWarned = rule.New("external-name-ignored-warned", func(_ *Rules, svc *corev1.Service) (warnings []string) {
		if hasClusterIP(svc) && svc.Spec.ExternalName != "" {
			warnings = append(warnings, fmt.Sprintf("spec.externalName is ignored when spec.type is not %q", corev1.ServiceTypeExternalName))
		}
		return warnings
	}, spec.APIWarningExternalNameIgnored, spec.APIExternalNameType)
)

// Warnings of addresses and CIDRs that are not in their usual form.
var (
	clusterIPFormWarned = rule.New("cluster-ip-form-warned", func(_ *Rules, svc *corev1.Service) (warnings []string) {
		if !hasClusterIP(svc) || isHeadless(svc) {
			return nil
		}
		for i, ip := range svc.Spec.ClusterIPs {
			warnings = append(warnings, validation.GetWarningsForIP(clusterIPsPath.Index(i), ip)...)
		}
		return warnings
	}, spec.APIWarningClusterIPNotCanonical)

	externalIPFormWarned = rule.New("external-ip-form-warned", func(_ *Rules, svc *corev1.Service) (warnings []string) {
		for i, ip := range svc.Spec.ExternalIPs {
			warnings = append(warnings, validation.GetWarningsForIP(externalIPPath(i), ip)...)
		}
		return warnings
	}, spec.APIWarningNotCanonical)

	// Any text is accepted as a loadBalancerIP.
	balancerIPFormWarned = rule.New("load-balancer-ip-form-warned", func(_ *Rules, svc *corev1.Service) []string {
		if _, ok := parseIP(svc.Spec.LoadBalancerIP); !ok {
			return nil
		}
		return validation.GetWarningsForIP(specPath.Child("loadBalancerIP"), svc.Spec.LoadBalancerIP)
	}, spec.APIWarningNotCanonical)

	sourceRangeFormWarned = rule.New("source-range-form-warned", func(_ *Rules, svc *corev1.Service) (warnings []string) {
		for i, cidr := range svc.Spec.LoadBalancerSourceRanges {
			warnings = append(warnings, validation.GetWarningsForCIDR(specPath.Child("loadBalancerSourceRanges").Index(i), strings.TrimSpace(cidr))...)
		}
		return warnings
	}, spec.APIWarningNotCanonical)
)
