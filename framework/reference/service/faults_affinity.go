package service

import (
	"math"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with session affinity.
var affinityFaults = []wrong{
	{fault.AffinityDefaultClientIP, func(b *book) {
		at(b.defaults, affinityDefault).Replace(defaultAffinityOf(corev1.ServiceAffinityClientIP))
	}},
	{fault.AffinityConfigKept, func(b *book) {
		at(b.defaults, affinityNoneDropsConfig).Off()
		at(b.checks, affinityNoneHasNoConfig).Off()
	}},
	{fault.AffinityTimeoutHour, func(b *book) { at(b.defaults, affinityTimeoutDefault).Replace(defaultAffinityTimeoutOf(3600)) }},
	{fault.AffinityConfigIgnored, func(b *book) {
		b.defaults = before(b.defaults, affinityTimeoutDefault, func(svc *corev1.Service) {
			if svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP {
				svc.Spec.SessionAffinityConfig = nil
			}
		})
	}},

	{fault.AffinityUnsupported, func(b *book) {
		at(b.checks, affinityKnown).Wrap(refusing(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if affinity := svc.Spec.SessionAffinity; affinity == corev1.ServiceAffinityClientIP {
				return unknownAffinity(affinity)
			}
			return nil
		}))
		at(b.checks, affinityTimeoutInLimits).Off()
	}},
	{fault.AffinityUnchecked, func(b *book) {
		at(b.checks, affinityKnown).Replace(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if svc.Spec.SessionAffinity == "" {
				return field.ErrorList{field.Required(affinityPath, "")}
			}
			return nil
		})
		at(b.checks, affinityTimeoutInLimits).Off()
		at(b.checks, affinityNoneHasNoConfig).Off()
	}},

	{fault.AffinityTimeoutZero, affinityLimits(func(_, most int32) (int32, int32) { return 0, most })},
	{fault.AffinityTimeoutBelowDay, affinityLimits(func(least, most int32) (int32, int32) { return least, most - 1 })},
	{fault.AffinityTimeoutUnbounded, affinityLimits(func(least, _ int32) (int32, int32) { return least, math.MaxInt32 })},
}

// affinityLimits is a fault: other limits than the right ones.
func affinityLimits(other func(least, most int32) (int32, int32)) func(*book) {
	return func(b *book) {
		b.affinityTimeoutLimits.Wrap(func(right func() (int32, int32)) func() (int32, int32) {
			return func() (int32, int32) { return other(right()) }
		})
	}
}
