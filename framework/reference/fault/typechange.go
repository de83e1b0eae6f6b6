package fault

import "github.com/service-conformance/conformance/framework/spec"

// Changes of the type, and what else an update does as a whole.
var (
	TypeChangeLeaksClusterIPs = New("type-change-leaks-cluster-ips", "a change to ExternalName clears the cluster IPs and does not free them",
		spec.APITypeChange, spec.APIClusterIPCleared, spec.AllocExternalNameReleases)
	TypeChangeKeepsClusterIPs = New("type-change-keeps-cluster-ips", "a change to ExternalName does not clear cluster IPs, IP families and policy, and is refused for them",
		spec.APITypeChange, spec.APIClusterIPCleared, spec.APIIPFamiliesCleared, spec.APITypeChangeHeadless)
	TypeChangeFreesClusterIPs = New("type-change-frees-cluster-ips", "any update frees the cluster IPs that the Service keeps", spec.APITypeChange)
	TypeChangeReassigns       = New("type-change-reassigns", "a change of the type assigns the cluster IP anew", spec.APITypeChange, spec.APITypeChangeKeepsClusterIP, spec.AllocWellKnownStays)
	TypeChangeNotHeld         = New("type-change-not-held", "the cluster IP that a change from ExternalName assigns is free for others", spec.APITypeChangeHoldsClusterIP, spec.AllocUpdateToClusterIP)
	TypeChangeLeaksNodePorts  = New("type-change-leaks-node-ports", "a change to a type without node ports clears them and does not free them", spec.APITypeChange, spec.APINodePortCleared)
	TypeChangeLeaksHealthPort = New("type-change-leaks-health-check-node-port", "a change of the type clears the health check node port and does not free it", spec.APITypeChange, spec.APIHealthCheckNodePortCleared)
	TypeChangeNewNodePorts    = New("type-change-new-node-ports", "a change between NodePort and LoadBalancer assigns new node ports", spec.APITypeChange)

	UpdateDropsChanges = New("update-drops-changes", "a change of the type clears fields even if the request changes them as well",
		spec.APIUpdateClearsUnchanged, spec.APIClusterIPToExternalName)
	AliasTakesClusterIP = New("alias-takes-cluster-ip", "an update to ExternalName may name a new clusterIP as long as it leaves out clusterIPs", spec.APIClusterIPToExternalName)
	CreateDropsFields   = New("create-drops-fields", "fields that do not apply to the type of a new Service are cleared, not refused",
		spec.APICreateClearsNothing, spec.APIExternalNameOtherFields, spec.APIClusterIPExternalNameRefused)
	RefusalKeepsNew  = New("refusal-keeps-new", "a refused request keeps what was assigned for it", spec.AllocRefusedUpdateLeaksNothing, spec.AllocNodePortRefusedUpdateLeaksNothing, spec.AllocRefusedCreateLeaksNothing, spec.APIUpdateRefusedWhole, spec.APIDualStackUpgradeRefused)
	RefusalFreesHeld = New("refusal-frees-held", "a refused request frees what it would have freed had it been accepted", spec.AllocRefusedUpdateLeaksNothing, spec.AllocNodePortRefusedUpdateLeaksNothing, spec.AllocRefusedCreateLeaksNothing, spec.APIUpdateRefusedWhole, spec.APIDualStackUpgradeRefused, spec.APINodePortRefusedWhole)
)
