package service

import (
	"fmt"
	"math"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

const (
	// defaultAffinitySeconds is how long a client sticks to an endpoint by default: three hours.
	defaultAffinitySeconds int32 = 10800
	// maxAffinitySeconds is the longest time that may be set: one day.
	maxAffinitySeconds int32 = 86400
)

var affinities = []corev1.ServiceAffinity{corev1.ServiceAffinityClientIP, corev1.ServiceAffinityNone}

// defaultSessionAffinity: there is no affinity by default, and then no configuration of it; ClientIP affinity lasts three
// hours by default.
func (r *Rules) defaultSessionAffinity(svc *corev1.Service) {
	spec := &svc.Spec
	if spec.SessionAffinity == "" {
		spec.SessionAffinity = corev1.ServiceAffinityNone
		if r.faults.On(fault.AffinityDefaultClientIP) {
			spec.SessionAffinity = corev1.ServiceAffinityClientIP
		}
	}
	switch spec.SessionAffinity {
	case corev1.ServiceAffinityNone:
		if !r.faults.On(fault.AffinityConfigKept) {
			spec.SessionAffinityConfig = nil
		}
	case corev1.ServiceAffinityClientIP:
		if c := spec.SessionAffinityConfig; c == nil || c.ClientIP == nil || c.ClientIP.TimeoutSeconds == nil || r.faults.On(fault.AffinityConfigIgnored) {
			seconds := defaultAffinitySeconds
			if r.faults.On(fault.AffinityTimeoutHour) {
				seconds = 3600
			}
			spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: ptr.To(seconds)}}
		}
	}
}

// validateSessionAffinity: the affinity is None or ClientIP, and configured only in the second case.
func (r *Rules) validateSessionAffinity(svc *corev1.Service) field.ErrorList {
	path := specPath.Child("sessionAffinity")
	config, configPath := svc.Spec.SessionAffinityConfig, specPath.Child("sessionAffinityConfig")
	switch affinity := svc.Spec.SessionAffinity; {
	case affinity == "":
		return field.ErrorList{field.Required(path, "")}
	case r.faults.On(fault.AffinityUnchecked):
	case !slices.Contains(affinities, affinity) || affinity == corev1.ServiceAffinityClientIP && r.faults.On(fault.AffinityUnsupported):
		return field.ErrorList{field.NotSupported(path, affinity, affinities)}
	case affinity == corev1.ServiceAffinityClientIP:
		return r.validateAffinityTimeout(config, configPath)
	case config != nil && !r.faults.On(fault.AffinityConfigKept):
		return field.ErrorList{field.Forbidden(configPath, fmt.Sprintf("must not be set when session affinity is %s", affinity))}
	}
	return nil
}

// validateAffinityTimeout: the timeout is more than 0 and at most 86400 seconds.
func (r *Rules) validateAffinityTimeout(config *corev1.SessionAffinityConfig, path *field.Path) field.ErrorList {
	const required = "when session affinity type is ClientIP"
	path = path.Child("clientIP", "timeoutSeconds")
	if config == nil || config.ClientIP == nil || config.ClientIP.TimeoutSeconds == nil {
		return field.ErrorList{field.Required(path, required)}
	}
	least, most := int32(1), maxAffinitySeconds
	if r.faults.On(fault.AffinityTimeoutZero) {
		least = 0
	}
	if r.faults.On(fault.AffinityTimeoutBelowDay) {
		most--
	}
	if r.faults.On(fault.AffinityTimeoutUnbounded) {
		most = math.MaxInt32
	}
	if seconds := *config.ClientIP.TimeoutSeconds; seconds < least || seconds > most {
		return field.ErrorList{field.Invalid(path, seconds, fmt.Sprintf("must be greater than 0 and not greater than %d", maxAffinitySeconds))}
	}
	return nil
}
