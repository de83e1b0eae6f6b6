package service

import (
	"net/netip"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with external IPs.
var externalFaults = []wrong{
	{fault.ExternalIPsSloppy, func(b *book) { b.externalIPsStrict.Off() }},
	{fault.ExternalIPsSpecial, func(b *book) { b.externalIPReachable.Off() }},
	{fault.ExternalIPsIPv4Only, refuseExternalIPs(func(_ *Rules, svc *corev1.Service, i int, ip netip.Addr) field.ErrorList {
		if ip.Is6() {
			return refuseExternalIP(svc, i, "must be an IPv4 address")
		}
		return nil
	})},
	{fault.ExternalIPsNotInUse, refuseExternalIPs(func(r *Rules, svc *corev1.Service, i int, ip netip.Addr) field.ErrorList {
		if r.holds(ip) {
			return refuseExternalIP(svc, i, "is in use")
		}
		return nil
	})},
	{fault.ExternalIPsDistinct, refuseExternalIPs(func(_ *Rules, svc *corev1.Service, i int, _ netip.Addr) field.ErrorList {
		if s := svc.Spec.ExternalIPs[i]; slices.Contains(svc.Spec.ExternalIPs[:i], s) {
			return field.ErrorList{field.Duplicate(externalIPPath(i), s)}
		}
		return nil
	})},
	{fault.ExternalIPsUnchecked, func(b *book) { at(b.checks, externalIPsValid).Off() }},
}

// refuseExternalIPs is a fault: some external IPs are refused for another reason than the right ones.
func refuseExternalIPs(wrongly externalIPChecking) func(*book) {
	return func(b *book) {
		b.externalIPReachable.Wrap(func(right externalIPChecking) externalIPChecking {
			return func(r *Rules, svc *corev1.Service, i int, ip netip.Addr) field.ErrorList {
				if errs := wrongly(r, svc, i, ip); len(errs) > 0 {
					return errs
				}
				return right(r, svc, i, ip)
			}
		})
	}
}

// holds reports whether an address is in use as a cluster IP.
func (r *Rules) holds(ip netip.Addr) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, inUse := r.ips.inUse[ip]
	return inUse
}

// What can be wrong with traffic policies and traffic distribution.
var trafficFaults = []wrong{
	{fault.ExternalPolicyEverywhere, func(b *book) {
		at(b.defaults, externalPolicyDefault).Replace(defaultExternalPolicyOf(always))
		at(b.checks, externalPolicyForExternalTraffic).Off()
	}},
	{fault.ExternalPolicyByType, func(b *book) { at(b.defaults, externalPolicyDefault).Replace(defaultExternalPolicyOf(hasNodePorts)) }},
	{fault.ExternalPolicyNotCleared, func(b *book) { at(b.clears, externalPolicyCleared).Off() }},
	{fault.ExternalPolicyAnywhere, func(b *book) { at(b.checks, externalPolicyForExternalTraffic).Off() }},
	{fault.ExternalPolicyClusterOnly, func(b *book) {
		at(b.checks, externalPolicyKnown).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if isExternallyAccessible(svc) && isExternallyLocal(svc) {
				return unknownExternalPolicy(svc)
			}
			return nil
		}))
	}},
	{fault.ExternalPolicyUnchecked, func(b *book) {
		at(b.checks, externalPolicyKnown).Replace(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if isExternallyAccessible(svc) && svc.Spec.ExternalTrafficPolicy == "" {
				return field.ErrorList{field.Required(externalTrafficPolicyPath, "")}
			}
			return nil
		})
	}},

	{fault.InternalPolicyOnAlias, func(b *book) {
		at(b.defaults, internalPolicyDefault).Replace(func(svc *corev1.Service) {
			if svc.Spec.InternalTrafficPolicy == nil {
				svc.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyCluster)
			}
		})
		at(b.views, internalPolicyHidden).Off()
	}},
	{fault.InternalPolicyDefaultLocal, func(b *book) {
		at(b.defaults, internalPolicyDefault).Wrap(func(right defaulting) defaulting {
			return func(svc *corev1.Service) {
				named := svc.Spec.InternalTrafficPolicy
				if right(svc); named != svc.Spec.InternalTrafficPolicy {
					svc.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicyLocal)
				}
			}
		})
	}},
	{fault.PoliciesCoupled, func(b *book) {
		b.defaults = after(b.defaults, internalPolicyDefault, func(svc *corev1.Service) {
			if policy := svc.Spec.ExternalTrafficPolicy; policy != "" {
				svc.Spec.InternalTrafficPolicy = new(corev1.ServiceInternalTrafficPolicy(policy))
			}
		})
	}},
	{fault.InternalPolicyClusterOnly, func(b *book) {
		at(b.checks, internalPolicyKnown).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if policy := svc.Spec.InternalTrafficPolicy; policy != nil && *policy == corev1.ServiceInternalTrafficPolicyLocal {
				return unknownInternalPolicy(svc)
			}
			return nil
		}))
	}},
	{fault.InternalPolicyUnchecked, func(b *book) { at(b.checks, internalPolicyKnown).Off() }},

	{fault.DistributionNotClose, dropDistributions(corev1.ServiceTrafficDistributionPreferClose)},
	{fault.DistributionNotSame, dropDistributions(corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)},
	{fault.DistributionUnchecked, func(b *book) { at(b.checks, distributionKnown).Off() }},
}

// dropDistributions is a fault: these preferences are not known.
func dropDistributions(unknown ...string) func(*book) {
	return func(b *book) {
		b.distributions.Wrap(func(right func(*Rules) []string) func(*Rules) []string {
			return func(r *Rules) []string {
				return slices.DeleteFunc(right(r), func(s string) bool { return slices.Contains(unknown, s) })
			}
		})
	}
}

// What can be wrong with the fields of type LoadBalancer.
var balancerFaults = []wrong{
	{fault.BalancerNodePortsOff, func(b *book) { at(b.defaults, balancerNodePortsDefault).Replace(defaultBalancerNodePortsOf(false)) }},
	{fault.BalancerNodePortsNotCleared, func(b *book) { at(b.clears, balancerNodePortsCleared).Off() }},
	{fault.BalancerNodePortsAnyType, func(b *book) { at(b.checks, balancerNodePortsByType).Off() }},

	{fault.BalancerClassNotCleared, func(b *book) { at(b.clears, balancerClassCleared).Off() }},
	{fault.BalancerClassAnyType, func(b *book) {
		at(b.checks, balancerClassByType).Off()
		at(b.checks, balancerClassSyntax).Replace(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList { return validateBalancerClass(svc) })
	}},
	{fault.BalancerClassUnchecked, func(b *book) { at(b.checks, balancerClassSyntax).Off() }},
	{fault.BalancerClassPrefixNeeded, func(b *book) {
		at(b.checks, balancerClassByType).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if hasUnprefixedClass(svc, nil) {
				return field.ErrorList{field.Invalid(loadBalancerClassPath, *svc.Spec.LoadBalancerClass, "must have a prefix")}
			}
			return nil
		}))
		at(b.checks, balancerClassSyntax).Wrap(unless(hasUnprefixedClass))
	}},
	{fault.BalancerClassCreateOnly, func(b *book) {
		at(b.updateChecks, balancerClassImmutable).Wrap(refusing(func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
			if !isLoadBalancer(old) && svc.Spec.LoadBalancerClass != nil {
				return field.ErrorList{field.Invalid(loadBalancerClassPath, svc.Spec.LoadBalancerClass, "may be set on create only")}
			}
			return nil
		}))
	}},
	{fault.BalancerClassLate, func(b *book) {
		at(b.updateChecks, balancerClassImmutable).Wrap(unless(func(_, old *corev1.Service) bool { return old.Spec.LoadBalancerClass == nil }))
	}},
	{fault.BalancerClassMutable, func(b *book) { at(b.updateChecks, balancerClassImmutable).Off() }},

	{fault.SourceRangesAnyType, func(b *book) { at(b.checks, sourceRangesByType).Off() }},
	{fault.SourceRangesSloppy, func(b *book) { b.sourceRangesStrict.Off() }},
	{fault.SourceRangesUntrimmed, func(b *book) { b.sourceRangesTrimmed.Replace(func(ranges []string) []string { return ranges }) }},
	{fault.SourceRangesUnchecked, func(b *book) { at(b.checks, sourceRangesSyntax).Off() }},
}

func hasUnprefixedClass(svc, _ *corev1.Service) bool {
	return svc.Spec.LoadBalancerClass != nil && !strings.Contains(*svc.Spec.LoadBalancerClass, "/")
}
