package fault

import "github.com/service-conformance/conformance/framework/spec"

// Session affinity.
var (
	AffinityUnsupported     = New("affinity-unsupported", "None is the only session affinity", spec.APISessionAffinityValues)
	AffinityUnchecked       = New("affinity-unchecked", "any text is a session affinity", spec.APISessionAffinityValues)
	AffinityDefaultClientIP = New("affinity-default-client-ip", "session affinity is ClientIP by default", spec.APISessionAffinityDefault)
	AffinityConfigIgnored   = New("affinity-config-ignored", "session affinity always lasts three hours",
		spec.APISessionAffinityConfig, spec.APISessionAffinityTimeoutPositive, spec.APISessionAffinityTimeoutMaximum)
	AffinityConfigKept = New("affinity-config-kept", "session affinity None keeps a configuration",
		spec.APISessionAffinityConfigNone, spec.APISessionAffinityConfigCleared)
	AffinityTimeoutZero      = New("affinity-timeout-zero", "session affinity may last no time at all", spec.APISessionAffinityTimeoutPositive)
	AffinityTimeoutBelowDay  = New("affinity-timeout-below-day", "session affinity lasts less than a day", spec.APISessionAffinityTimeoutMaximum)
	AffinityTimeoutUnbounded = New("affinity-timeout-unbounded", "session affinity may last any time", spec.APISessionAffinityTimeoutMaximum)
	AffinityTimeoutHour      = New("affinity-timeout-hour", "session affinity lasts one hour by default",
		spec.APISessionAffinityTimeoutDefault, spec.ProxyAffinityTimeoutDefault)
)
