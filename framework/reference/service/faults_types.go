package service

import (
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with types and their changes.
var typeFaults = []wrong{
	{fault.TypeDefaultNodePort, func(b *book) { at(b.defaults, typeDefault).Replace(defaultTypeOf(corev1.ServiceTypeNodePort)) }},
	{fault.TypeIncomplete, func(b *book) {
		at(b.checks, typeKnown).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if svc.Spec.Type == corev1.ServiceTypeExternalName {
				return unknownType(svc)
			}
			return nil
		}))
	}},
	{fault.TypeNotValidated, func(b *book) {
		at(b.checks, typeKnown).Replace(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if svc.Spec.Type == "" {
				return field.ErrorList{field.Required(typePath, "")}
			}
			return nil
		})
	}},
	{fault.HeadlessAnyType, func(b *book) { at(b.checks, headlessType).Off() }},

	{fault.ExternalNameAddressed, func(b *book) { b.typeHasClusterIPs.Replace(always) }},
	{fault.ExternalNameOptional, func(b *book) { at(b.checks, externalNameNeeded).Off() }},
	{fault.ExternalNameNeedsDot, func(b *book) {
		b.checks = before(b.checks, externalNameSyntax, func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if name, ok := aliasOf(svc); ok && name != "" && !strings.Contains(name, ".") {
				return field.ErrorList{field.Invalid(externalNamePath, name, "should be a domain with at least two segments separated by dots")}
			}
			return nil
		})
	}},
	{fault.ExternalNameDotRefused, func(b *book) {
		b.checks = before(b.checks, externalNameSyntax, func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if svc.Spec.Type == corev1.ServiceTypeExternalName && strings.HasSuffix(svc.Spec.ExternalName, ".") {
				return field.ErrorList{field.Invalid(externalNamePath, svc.Spec.ExternalName, "must not end in a dot")}
			}
			return nil
		})
	}},
	{fault.ExternalNameNotValidated, func(b *book) { at(b.checks, externalNameSyntax).Off() }},

	{fault.UpdateDropsChanges, func(b *book) {
		b.clears = before(b.clears, clusterIPsCleared, func(_ *Rules, svc, old *corev1.Service) {
			if svc.Spec.Type != old.Spec.Type {
				dropChanges(svc, old)
			}
		})
	}},
	{fault.AliasTakesClusterIP, func(b *book) {
		at(b.checks, aliasHasNoClusterIPs).Replace(func(r *Rules, svc, _ *corev1.Service) field.ErrorList {
			if !r.typeHasClusterIPs.Do(svc) && len(svc.Spec.ClusterIPs) > 0 {
				return field.ErrorList{field.Forbidden(clusterIPsPath, notForAlias)}
			}
			return nil
		})
	}},
	{fault.CreateDropsFields, func(b *book) {
		b.prepares = after(b.prepares, newHasNoStatus, func(_ *Rules, svc, _ *corev1.Service) { dropChanges(svc, &corev1.Service{}) })
	}},
}

// What can be wrong with optional fields that no rule looks after: they have a default, are dropped, or are set.
var requestFaults = []wrong{
	{fault.PublishNotReadyAlways, mendDefaults(func(svc *corev1.Service) { svc.Spec.PublishNotReadyAddresses = true })},
	{fault.DistributionDefaulted, mendDefaults(func(svc *corev1.Service) {
		if svc.Spec.TrafficDistribution == nil {
			svc.Spec.TrafficDistribution = new(corev1.ServiceTrafficDistributionPreferClose)
		}
	})},
	{fault.BalancerClassDropped, mendDefaults(func(svc *corev1.Service) { svc.Spec.LoadBalancerClass = nil })},
	{fault.BalancerClassDefaulted, mendDefaults(func(svc *corev1.Service) {
		if svc.Spec.LoadBalancerClass == nil && isLoadBalancer(svc) {
			svc.Spec.LoadBalancerClass = new("example.com/default")
		}
	})},
	{fault.BalancerIPDropped, mendDefaults(func(svc *corev1.Service) { svc.Spec.LoadBalancerIP = "" })},
}

// mendDefaults is a fault: there is one more default, after all others.
func mendDefaults(mend defaulting) func(*book) {
	return func(b *book) { b.defaults = append(b.defaults, bug(mend)) }
}

// dropChanges is what the faults UpdateDropsChanges and CreateDropsFields do. Every field that does not apply to the
// type gets the old value, whatever the request says.
func dropChanges(svc, old *corev1.Service) {
	spec, before := &svc.Spec, &old.Spec
	if !hasClusterIP(svc) {
		spec.ClusterIP, spec.ClusterIPs = before.ClusterIP, before.ClusterIPs
		spec.IPFamilies, spec.IPFamilyPolicy = before.IPFamilies, before.IPFamilyPolicy
	}
	if !isExternallyAccessible(svc) {
		spec.ExternalTrafficPolicy = before.ExternalTrafficPolicy
	}
	if !isLoadBalancer(svc) {
		spec.HealthCheckNodePort, spec.AllocateLoadBalancerNodePorts = before.HealthCheckNodePort, before.AllocateLoadBalancerNodePorts
		spec.LoadBalancerClass, spec.LoadBalancerSourceRanges = before.LoadBalancerClass, before.LoadBalancerSourceRanges
	}
	for i := range spec.Ports {
		if !hasNodePorts(svc) {
			spec.Ports[i].NodePort = 0
		}
	}
}
