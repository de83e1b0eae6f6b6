package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of endpoints that terminate.
var (
	TerminatingUnusedUnderLocal = New("terminating-unused-under-local", "Terminating endpoints get nothing under a Local policy, even where there are no others.",
		spec.ProxyTerminatingLocalUsed, spec.ProxyTerminatingDrains)
	TerminatingUnusedUnderCluster = New("terminating-unused-under-cluster", "Terminating endpoints get nothing under policy Cluster, even where there are no others.",
		spec.ProxyTerminatingClusterUsed)
	TerminatingMixed = New("terminating-mixed-with-ready", "Terminating endpoints get connections beside ready ones.",
		spec.ProxyTerminatingAvoided)
	FinishedUsed = New("finished-endpoint-used", "Endpoints that no longer serve are a last resort too.",
		spec.ProxyTerminatingLocalUsed, spec.ProxyTerminatingClusterUsed, spec.ProxyPolicyReadyBackends)
	ServingUnsetIsNot = New("serving-unset-is-not", "An endpoint whose condition serving is not set does not serve unless it is ready.",
		spec.ProxyConditionUnset)
	ReadyUnsetIsNot = New("ready-unset-is-not", "An endpoint whose condition ready is not set is not ready.",
		spec.ProxyReadyUnsetUsed)
	RolloutNodePortLost = New("rollout-node-port-lost", "While an endpoint terminates, a part of the new connections through node ports is lost.",
		spec.ProxyTerminatingAvoided, spec.ProxyTerminatingDrains, spec.ProxyBackendChangeTransparent)
	TerminatingCut = New("terminating-connections-cut", "Connections to a pod are cut when it begins to terminate.",
		spec.ProxyTerminatingConnectionsKept)
	DrainFailsHealthCheck = New("drain-fails-health-check-port", "The health check node ports of a node that is about to go fail.",
		spec.ProxyNodeDrainHealthCheckPort)
	NodeDeletionIgnored = New("node-deletion-ignored", "The health check of a node that is being deleted does not fail.",
		spec.ProxyNodeDrainHealth)
	DrainIgnored = New("drain-ignored", "The health check of a node that is about to go does not fail.",
		spec.ProxyNodeDrainHealth)
)
