package service

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	// defaultAffinitySeconds is how long a client sticks to an endpoint by default: three hours.
	defaultAffinitySeconds int32 = 10800
	// maxAffinitySeconds is the longest time that may be set: one day.
	maxAffinitySeconds int32 = 86400
)

var (
	affinities         = []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone}
	affinityPath       = specPath.Child("sessionAffinity")
	affinityConfigPath = specPath.Child("sessionAffinityConfig")
)

// Defaults of the session affinity.
var (
	affinityDefault = rule.New("session-affinity-default", defaultAffinityOf(corev1.ServiceAffinityNone), spec.APISessionAffinityDefault)

	affinityNoneDropsConfig = rule.New("session-affinity-none-drops-config", func(svc *corev1.Service) {
		if svc.Spec.SessionAffinity == corev1.ServiceAffinityNone {
			svc.Spec.SessionAffinityConfig = nil
		}
	}, spec.APISessionAffinityConfigNone, spec.APISessionAffinityConfigCleared)

	affinityTimeoutDefault = rule.New("session-affinity-timeout-default", defaultAffinityTimeoutOf(defaultAffinitySeconds), spec.APISessionAffinityTimeoutDefault)
)

// Rules for the session affinity.
var (
	affinityKnown = rule.New("session-affinity-known", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		switch affinity := svc.Spec.SessionAffinity; {
		case affinity == "":
			return field.ErrorList{field.Required(affinityPath, "")}
		case !slices.Contains(affinities, affinity):
			return unknownAffinity(affinity)
		}
		return nil
	}, spec.APISessionAffinityValues)

	affinityTimeoutInLimits = rule.New("session-affinity-timeout-in-limits", func(r *Rules, svc, _ *corev1.Service) field.ErrorList {
		if svc.Spec.SessionAffinity != corev1.ServiceAffinityClientIP {
			return nil
		}
		const required = "when session affinity type is ClientIP"
		config, path := svc.Spec.SessionAffinityConfig, affinityConfigPath.Child("clientIP", "timeoutSeconds")
		if !hasAffinityTimeout(config) {
			return field.ErrorList{field.Required(path, required)}
		}
		least, most := r.affinityTimeoutLimits.Do()
		if seconds := *config.ClientIP.TimeoutSeconds; seconds < least || seconds > most {
			return field.ErrorList{field.Invalid(path, seconds, fmt.Sprintf("must be greater than 0 and not greater than %d", maxAffinitySeconds))}
		}
		return nil
	}, spec.APISessionAffinityConfig, spec.APISessionAffinityTimeoutPositive, spec.APISessionAffinityTimeoutMaximum)

	affinityTimeoutLimits = rule.New("session-affinity-timeout-limits", func() (least, most int32) { return 1, maxAffinitySeconds },
		spec.APISessionAffinityTimeoutPositive, spec.APISessionAffinityTimeoutMaximum)

	affinityNoneHasNoConfig = rule.New("session-affinity-none-has-no-config", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if svc.Spec.SessionAffinity == corev1.ServiceAffinityNone && svc.Spec.SessionAffinityConfig != nil {
			return field.ErrorList{field.Forbidden(affinityConfigPath, fmt.Sprintf("must not be set when session affinity is %s", svc.Spec.SessionAffinity))}
		}
		return nil
	}, spec.APISessionAffinityConfigNone)
)

// defaultAffinityOf makes a rule: this is the session affinity if the client sets none.
func defaultAffinityOf(affinity corev1.ServiceAffinity) defaulting {
	return func(svc *corev1.Service) {
		if svc.Spec.SessionAffinity == "" {
			svc.Spec.SessionAffinity = affinity
		}
	}
}

// defaultAffinityTimeoutOf makes a rule: ClientIP affinity lasts so many seconds if the client does not set it.
func defaultAffinityTimeoutOf(seconds int32) defaulting {
	return func(svc *corev1.Service) {
		if svc.Spec.SessionAffinity == corev1.ServiceAffinityClientIP && !hasAffinityTimeout(svc.Spec.SessionAffinityConfig) {
			svc.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(seconds)}}
		}
	}
}

func hasAffinityTimeout(c *corev1.SessionAffinityConfig) bool {
	return c != nil && c.ClientIP != nil && c.ClientIP.TimeoutSeconds != nil
}

func unknownAffinity(affinity corev1.ServiceAffinity) field.ErrorList {
	return field.ErrorList{field.NotSupported(affinityPath, affinity, affinities)}
}
