package service

import (
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// Warnings returns what a client is told, in Warning headers, about a request that is accepted: values that are ignored,
// deprecated or written in an unusual way. Old is nil for a create; a change of the status is warned about with StatusWarnings.
func (r *Rules) Warnings(svc, old *corev1.Service) (warnings []string) {
	if _, set := svc.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints]; set && !r.faults.On(fault.NoWarningTopologyHints) {
		warnings = append(warnings, fmt.Sprintf("annotation %s is deprecated, please use %s instead",
			corev1.DeprecatedAnnotationTopologyAwareHints, corev1.AnnotationTopologyMode))
	}
	warnings = append(warnings, r.warnOfIgnored(svc)...)
	if !r.faults.On(fault.NoWarningNotCanonical) {
		warnings = append(warnings, r.warnOfSyntax(svc)...)
	}
	if r.version.externalIPsDeprecated() && len(svc.Spec.ExternalIPs) > 0 && !isHeadless(svc) && hasClusterIP(svc) && !r.faults.On(fault.NoWarningExternalIPs) {
		warnings = append(warnings, "spec.externalIPs is deprecated and may no longer be implemented in some clusters")
	}
	if d := svc.Spec.TrafficDistribution; r.version.preferCloseDeprecated() && d != nil && *d == corev1.ServiceTrafficDistributionPreferClose && !r.faults.On(fault.NoWarningPreferClose) {
		warnings = append(warnings, fmt.Sprintf("spec.trafficDistribution: %q is deprecated; use %q",
			corev1.ServiceTrafficDistributionPreferClose, corev1.ServiceTrafficDistributionPreferSameZone))
	}
	return warnings
}

// StatusWarnings returns what a client is told about an accepted change of the status.
func (r *Rules) StatusWarnings(svc *corev1.Service) (warnings []string) {
	for i := range svc.Status.LoadBalancer.Ingress {
		if ip := svc.Status.LoadBalancer.Ingress[i].IP; ip != "" {
			warnings = append(warnings, validation.GetWarningsForIP(ingressPath.Index(i), ip)...)
		}
	}
	return warnings
}

// warnOfIgnored warns of fields that have no effect for this Service.
func (r *Rules) warnOfIgnored(svc *corev1.Service) (warnings []string) {
	spec := &svc.Spec
	if isHeadless(svc) && r.version.headlessWarnings() && !r.faults.On(fault.NoWarningHeadless) {
		if spec.LoadBalancerIP != "" {
			warnings = append(warnings, "spec.loadBalancerIP is ignored for headless services")
		}
		if len(spec.ExternalIPs) > 0 {
			warnings = append(warnings, "spec.externalIPs is ignored for headless services")
		}
		if spec.SessionAffinity != corev1.ServiceAffinityNone {
			warnings = append(warnings, "spec.SessionAffinity is ignored for headless services")
		}
	}
	if !hasClusterIP(svc) && len(spec.ExternalIPs) > 0 && !r.faults.On(fault.NoWarningIgnoredIPs) {
		warnings = append(warnings, fmt.Sprintf("spec.externalIPs is ignored when spec.type is %q", corev1.ServiceTypeExternalName))
	}
	if hasClusterIP(svc) && spec.ExternalName != "" && !r.faults.On(fault.ExternalNameSilent) {
		warnings = append(warnings, fmt.Sprintf("spec.externalName is ignored when spec.type is not %q", corev1.ServiceTypeExternalName))
	}
	return warnings
}

// warnOfSyntax warns of addresses and CIDRs that are not in their usual form.
func (r *Rules) warnOfSyntax(svc *corev1.Service) (warnings []string) {
	spec := &svc.Spec
	if hasClusterIP(svc) && !isHeadless(svc) && !r.faults.On(fault.NoWarningClusterIP) {
		for i, ip := range spec.ClusterIPs {
			warnings = append(warnings, validation.GetWarningsForIP(clusterIPsPath.Index(i), ip)...)
		}
	}
	for i, ip := range spec.ExternalIPs {
		warnings = append(warnings, validation.GetWarningsForIP(specPath.Child("externalIPs").Index(i), ip)...)
	}
	if _, ok := parseIP(spec.LoadBalancerIP); ok { // any text is accepted
		warnings = append(warnings, validation.GetWarningsForIP(specPath.Child("loadBalancerIP"), spec.LoadBalancerIP)...)
	}
	for i, cidr := range spec.LoadBalancerSourceRanges {
		warnings = append(warnings, validation.GetWarningsForCIDR(specPath.Child("loadBalancerSourceRanges").Index(i), strings.TrimSpace(cidr))...)
	}
	return warnings
}
