package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong with the status.
var statusFaults = []wrong{
	{fault.StatusOnCreate, func(b *book) { at(b.prepares, newHasNoStatus).Off() }},
	{fault.StatusClearedBySpec, func(b *book) {
		at(b.keeps, updateKeepsStatus).Replace(func(_ *Rules, svc, _ *corev1.Service) { svc.Status = corev1.ServiceStatus{} })
	}},
	{fault.StatusOnUpdate, func(b *book) { at(b.keeps, updateKeepsStatus).Off() }},

	{fault.StatusTakesSpec, func(b *book) { at(b.statusKeeps, statusUpdateKeepsSpec).Off() }},
	{fault.StatusNotStored, mendStatus(func(svc, old *corev1.Service) { svc.Status = *old.Status.DeepCopy() })},
	{fault.StatusKeepsMetadata, mendStatus(func(svc, old *corev1.Service) { svc.Labels, svc.Annotations = old.Labels, old.Annotations })},
	{fault.ConditionsDropped, mendStatus(func(svc, old *corev1.Service) { svc.Status.Conditions = old.Status.Conditions })},
	{fault.IngressFirstOnly, mendStatus(func(svc, _ *corev1.Service) {
		if ingress := svc.Status.LoadBalancer.Ingress; len(ingress) > 1 {
			svc.Status.LoadBalancer.Ingress = ingress[:1]
		}
	})},
	{fault.PortStatusDropped, mendStatus(func(svc, _ *corev1.Service) {
		for i := range svc.Status.LoadBalancer.Ingress {
			svc.Status.LoadBalancer.Ingress[i].Ports = nil
		}
	})},

	{fault.IngressNotCleared, func(b *book) { at(b.clears, balancerStatusCleared).Off() }},
	{fault.IngressAnyType, func(b *book) { b.ingressByType.Off() }},
	{fault.IngressHostnameAlone, func(b *book) {
		b.ingressChecks = before(b.ingressChecks, ingressIPSyntax,
			func(_ *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, _ []string) field.ErrorList {
				if ingress.IP == "" {
					return field.ErrorList{field.Required(path.Child("ip"), "")}
				}
				return nil
			})
	}},
	{fault.IngressIPv4Only, func(b *book) {
		at(b.ingressChecks, ingressIPSyntax).Wrap(func(right ingressChecking) ingressChecking {
			return func(r *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, stored []string) field.ErrorList {
				if addr, ok := parseIP(ingress.IP); ok && addr.Is6() {
					return field.ErrorList{field.Invalid(path.Child("ip"), ingress.IP, "must be an IPv4 address")}
				}
				return right(r, ingress, path, stored)
			}
		})
	}},
	{fault.IngressIPSloppy, func(b *book) { b.ingressIPStrict.Off() }},
	{fault.IngressIPUnchecked, func(b *book) { at(b.ingressChecks, ingressIPSyntax).Off() }},
	{fault.IPModeDefaultProxy, func(b *book) { at(b.defaults, ipModeDefault).Replace(defaultIPModeOf(corev1.LoadBalancerIPModeProxy)) }},
	{fault.IPModeWithoutIP, func(b *book) { at(b.ingressChecks, ipModeNeedsIP).Off() }},
	{fault.IPModeVIPOnly, func(b *book) {
		at(b.ingressChecks, ipModeKnown).Wrap(func(right ingressChecking) ingressChecking {
			return func(r *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, stored []string) field.ErrorList {
				if ingress.IP != "" && ingress.IPMode != nil && *ingress.IPMode == corev1.LoadBalancerIPModeProxy {
					return unknownIPMode(ingress, path)
				}
				return right(r, ingress, path, stored)
			}
		})
	}},
	{fault.IPModeUnchecked, func(b *book) {
		at(b.ingressChecks, ipModeNeedsIP).Off()
		at(b.ingressChecks, ipModeKnown).Off()
	}},
	{fault.IngressHostnameUnchecked, func(b *book) { at(b.ingressChecks, ingressHostnameSyntax).Off() }},
	{fault.PortStatusUnchecked, func(b *book) { at(b.ingressChecks, portStatusValid).Off() }},
	{fault.PortErrorBuiltInOnly, func(b *book) {
		b.portErrorSyntax.Wrap(func(right portErrorChecking) portErrorChecking {
			return func(text string, path *field.Path) field.ErrorList {
				if errs := right(text, path); len(errs) > 0 || !strings.Contains(text, "/") {
					return errs
				}
				return refusePortError(text, path)
			}
		})
	}},
	{fault.ConditionsUnchecked, func(b *book) { at(b.statusChecks, conditionsValid).Off() }},
}

// mendStatus is a fault: a status that is written is changed before anybody looks at it.
func mendStatus(mend func(svc, old *corev1.Service)) func(*book) {
	return func(b *book) {
		b.statusKeeps = append(b.statusKeeps, bug(func(_ *Rules, svc, old *corev1.Service) { mend(svc, old) }))
	}
}

// What clients can be not warned of.
var warningFaults = []wrong{
	{fault.NoWarningTopologyHints, silence(topologyHintsWarned)},
	{fault.NoWarningHeadless, silence(headlessIgnoresWarned)},
	{fault.NoWarningIgnoredIPs, silence(aliasIgnoresExternalIPsWarned)},
	{fault.ExternalNameSilent, silence(externalNameIgnoredWarned)},
	{fault.NoWarningClusterIP, silence(clusterIPFormWarned)},
	{fault.NoWarningNotCanonical, silence(clusterIPFormWarned, externalIPFormWarned, balancerIPFormWarned, sourceRangeFormWarned)},
	{fault.NoWarningExternalIPs, silence(externalIPsWarned)},
	{fault.NoWarningPreferClose, silence(preferCloseWarned)},
}

// silence is a fault: nobody is warned.
func silence(warnings ...rule.Rule[warning]) func(*book) {
	return func(b *book) {
		for _, w := range warnings {
			at(b.warnings, w).Off()
		}
	}
}
