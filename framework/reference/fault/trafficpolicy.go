package fault

import "github.com/service-conformance/conformance/framework/spec"

// Traffic policies.
var (
	ExternalPolicyClusterOnly    = New("external-policy-cluster-only", "externalTrafficPolicy Local is refused", spec.APIExternalTrafficPolicyValues)
	ExternalPolicyUnchecked      = New("external-policy-unchecked", "any text is an externalTrafficPolicy", spec.APIExternalTrafficPolicyValues)
	ExternalPolicyByType         = New("external-policy-by-type", "external IPs do not give a Service an externalTrafficPolicy by default", spec.APIExternalTrafficPolicyDefault)
	ExternalPolicyAnywhere       = New("external-policy-anywhere", "externalTrafficPolicy is accepted without external traffic", spec.APIExternalTrafficPolicyExternal)
	ExternalPolicyEverywhere     = New("external-policy-everywhere", "externalTrafficPolicy is Cluster by default, with or without external traffic", spec.APIExternalTrafficPolicyExternal)
	ExternalPolicyNotCleared     = New("external-policy-not-cleared", "externalTrafficPolicy is not cleared when the external traffic ends", spec.APIExternalTrafficPolicyCleared)
	InternalPolicyClusterOnly    = New("internal-policy-cluster-only", "internalTrafficPolicy Local is refused", spec.APIInternalTrafficPolicyValues)
	InternalPolicyUnchecked      = New("internal-policy-unchecked", "any text is an internalTrafficPolicy", spec.APIInternalTrafficPolicyValues)
	InternalPolicyDefaultLocal   = New("internal-policy-default-local", "internalTrafficPolicy is Local by default", spec.APIInternalTrafficPolicyDefault)
	InternalPolicyOfStatusWrites = New("internal-policy-of-status-writes", "the answer to a write of the status of an alias shows an internalTrafficPolicy",
		spec.APIInternalTrafficPolicyExternalName)
	InternalPolicyOnAlias = New("internal-policy-on-alias", "an alias has an internalTrafficPolicy", spec.APIInternalTrafficPolicyExternalName)
	PoliciesCoupled       = New("policies-coupled", "externalTrafficPolicy sets internalTrafficPolicy as well", spec.APITrafficPoliciesIndependent)
)

// External IPs.
var (
	ExternalIPsDistinct  = New("external-ips-distinct", "an external IP may not be named twice", spec.APIExternalIPsUnmanaged)
	ExternalIPsNotInUse  = New("external-ips-not-in-use", "a cluster IP in use is refused as an external IP", spec.APIExternalIPsUnmanaged)
	ExternalIPsAllocated = New("external-ips-allocated", "an external IP that lies in the Service range is taken from it", spec.APIExternalIPsUnmanaged)
	ExternalIPsUnchecked = New("external-ips-unchecked", "external IPs are not validated", spec.APIExternalIPsValues, spec.APIExternalIPsStrict)
	ExternalIPsIPv4Only  = New("external-ips-ipv4-only", "external IPs of the family IPv6 are refused", spec.APIExternalIPsValues)
	ExternalIPsSpecial   = New("external-ips-special", "external IPs may be loopback and other addresses that no packet on the network has", spec.APIExternalIPsValues)
	ExternalIPsSloppy    = New("external-ips-sloppy", "external IPs may have leading zeros", spec.APIExternalIPsStrict)
)

// Not-ready addresses, traffic distribution and topology.
var (
	PublishNotReadyAlways    = New("publish-not-ready-always", "publishNotReadyAddresses is always true", spec.APIPublishNotReadyAddresses)
	DistributionDefaulted    = New("distribution-defaulted", "trafficDistribution is PreferClose by default", spec.APITrafficDistributionOptional)
	DistributionNotClose     = New("distribution-not-close", "trafficDistribution PreferClose is refused", spec.APITrafficDistributionPreferClose)
	DistributionNotSame      = New("distribution-not-same", "trafficDistribution PreferSameZone and PreferSameNode are refused", spec.APITrafficDistributionPreferSame)
	DistributionUnchecked    = New("distribution-unchecked", "any text is a trafficDistribution", spec.APITrafficDistributionUnknown)
	TopologyDeprecatedGone   = New("topology-deprecated-gone", "the deprecated form of the topology annotation is refused", spec.APITopologyAnnotation)
	TopologyMismatchAccepted = New("topology-mismatch-accepted", "both forms of the topology annotation may differ", spec.APITopologyAnnotationMismatch)
)
