package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of traffic policies, health checks and topology.
var (
	ClusterPrefersLocal = New("cluster-prefers-local", "Policy Cluster prefers endpoints of the node.",
		spec.ProxyInternalClusterAllEndpoints, spec.ProxyExternalClusterAllEndpoints, spec.ProxyClusterIPSpreads)
	BalancedUnevenly = New("balanced-unevenly", "One endpoint gets most of the connections.",
		spec.ProxyInternalClusterAllEndpoints, spec.ProxyExternalClusterAllEndpoints, spec.ProxyIptablesRandom)
	LastGetsRest = New("last-endpoint-gets-the-rest", "Each endpoint is offered the connection with the same probability in turn, and the last one gets what is left.",
		spec.ProxyInternalClusterAllEndpoints)
	InternalLocalIgnored = New("internal-local-ignored", "internalTrafficPolicy Local is ignored.",
		spec.ProxyInternalLocalNodeEndpoints, spec.ProxyInternalLocalDrops, spec.ProxyPoliciesIndependent, spec.ProxyDualStackPolicies)
	InternalLocalFallsBack = New("internal-local-falls-back", "internalTrafficPolicy Local falls back to other nodes.",
		spec.ProxyInternalLocalDrops)
	ExternalLocalIgnored = New("external-local-ignored", "externalTrafficPolicy Local is ignored.",
		spec.ProxyExternalLocalNodeEndpoints, spec.ProxyExternalLocalDrops, spec.ProxyExternalLocalClientAddress, spec.ProxyPoliciesIndependent)
	ExternalLocalFallsBack = New("external-local-falls-back", "externalTrafficPolicy Local falls back to other nodes.",
		spec.ProxyExternalLocalDrops)
	ExternalLocalRefused = New("external-local-refused", "A node without endpoints refuses external traffic under externalTrafficPolicy Local.",
		spec.ProxyExternalLocalSilent, spec.ProxyExternalLocalDrops)
	LocalPodsUnseen = New("local-pods-unseen", "Several pods on a node are taken for none under a Local policy.",
		spec.ProxyInternalLocalNodeEndpoints, spec.ProxyExternalLocalNodeEndpoints)
	UnreadyHidesReady = New("unready-hides-ready", "Under a Local policy a node with an endpoint that is not ready yet serves nobody.",
		spec.ProxyPolicyReadyBackends, spec.ProxyBackendChangeTransparent, spec.ProxyTerminatingDrains)
	InternalPolicyOnExternal = New("internal-policy-on-external-traffic", "internalTrafficPolicy governs external traffic too.",
		spec.ProxyInternalPolicyScope, spec.ProxyPoliciesIndependent)
	ExternalPolicyOnClusterIP = New("external-policy-on-cluster-ip", "externalTrafficPolicy governs traffic to the virtual IP too.",
		spec.ProxyExternalPolicyScope, spec.ProxyPoliciesIndependent)
	PoliciesTied = New("policies-tied", "Either policy makes both Local.",
		spec.ProxyPoliciesIndependent, spec.ProxyInternalPolicyScope, spec.ProxyExternalPolicyScope)
	MasqueradeUnderLocal = New("masquerade-under-local", "The client's address is lost under externalTrafficPolicy Local.",
		spec.ProxyExternalLocalClientAddress)
	LocalFromInside = New("external-local-from-inside", "externalTrafficPolicy Local governs traffic from inside of the cluster.",
		spec.ProxyExternalLocalFromCluster)
	HealthCheckAlwaysOK = New("health-check-always-ok", "The health check of a node never fails.",
		spec.ProxyHealthCheckLocalEndpoints, spec.ProxyTerminatingHealthCheckFails)
	HealthCheckFirstPort = New("health-check-first-port", "The health check counts the endpoints of the first port alone.",
		spec.ProxyHealthCheckLocalEndpoints)
	HealthCheckCountsRemote = New("health-check-counts-remote", "The health check counts endpoints of other nodes.",
		spec.ProxyHealthCheckLocalEndpoints)
	HealthCheckCountsUnready = New("health-check-counts-unready", "The health check counts endpoints that are not ready.",
		spec.ProxyHealthCheckLocalEndpoints, spec.ProxyTerminatingHealthCheckFails)
	HealthCheckCountsTerminating = New("health-check-counts-terminating", "The health check counts terminating endpoints.",
		spec.ProxyTerminatingHealthCheckFails)
	HealthCheckNoWeight = New("health-check-without-weight", "The answer of the health check has no weight.",
		spec.ProxyHealthCheckResponse)
	HealthCheckWrongCount = New("health-check-miscounts", "The answer of the health check counts one endpoint too many.",
		spec.ProxyHealthCheckResponse)
	HealthCheckPortKept = New("health-check-port-kept-by-deleted", "The health check node port of a deleted Service stays open.",
		spec.ProxyHealthCheckPortCloses)
	HealthCheckPortUnneeded = New("health-check-port-kept-unneeded", "The health check node port of a Service that no longer has one stays open.",
		spec.ProxyHealthCheckPortCloses)
	HealthCheckPortGivenUp = New("health-check-port-given-up", "A health check node port that a program of the node had for a while is never opened.",
		spec.ProxyHealthCheckLocalEndpoints)
	HealthCheckOnEveryAddress = New("health-check-on-every-address", "Health check node ports are served on node addresses that nodePortAddresses leaves out.",
		spec.ProxyHealthCheckNodePortAddresses)
	HealthOfConnectedKept = New("health-of-connected-kept", "Who is connected to a health check node port when its Service goes is told 200 from then on.",
		spec.ProxyHealthCheckPortCloses)
	HealthCheckPortFirst = New("health-check-port-first-only", "The first health check node port of a Service stays its only one.",
		spec.ProxyHealthCheckPortFollows)
	HintsIgnored = New("hints-ignored", "Topology hints are ignored.",
		spec.ProxyTopologyHintsUsed, spec.ProxyTrafficDistributionSameZone, spec.ProxyTrafficDistributionSameNode)
	ZoneOfStartMissed = New("zone-of-start-missed", "A proxy that starts again does not learn the zone of its node.",
		spec.ProxyTopologyHintsUsed)
	DistributionBeforeLocal = New("distribution-before-local", "trafficDistribution outweighs a policy Local.",
		spec.ProxyTrafficDistributionLocalFirst)
	DistributionInsideOnly = New("distribution-inside-only", "trafficDistribution is ignored for external traffic.",
		spec.ProxyTrafficDistributionExternal, spec.ProxyTopologyHintsUsed)
	HintsOfNodeByPlace = New("node-hints-by-place", "Where endpoints have hints for nodes, those on the client's node are preferred, whatever the hints say.",
		spec.ProxyTopologyHintsUsed)
	HintsUsedWhenIncomplete = New("incomplete-hints-used", "Hints are used although an endpoint has none.",
		spec.ProxyTopologyHintsIncomplete)
	HintsUsedWhenNoneFits = New("unfitting-hints-used", "Where no hint fits there are no endpoints.",
		spec.ProxyTopologyHintsIncomplete)
	HintsOfUnreadyCount = New("hints-of-unready-count", "Hints that unready endpoints lack make all be ignored.",
		spec.ProxyTopologyHintsUsed)
)
