package fault

import "github.com/service-conformance/conformance/framework/spec"

// Which pods the endpoints of a Service are.
var (
	SelectorAnyLabel = New("selector-any-label", "a pod with one of the labels of a selector is selected", spec.ProxySelectorAllLabels)
	SelectorKeysOnly = New("selector-keys-only", "a pod is selected that has the labels of a selector with other values",
		spec.ProxySelectorAllLabels)
	SelectorAllNamespaces = New("selector-all-namespaces", "pods of other namespaces are selected", spec.ProxySelectorAllLabels)
	SelectorSticky        = New("selector-sticky", "a pod stays an endpoint when its labels no longer fit the selector", spec.ProxySelectorAllLabels, spec.ProxySelectorAdded)
	SelectorlessSelects   = New("selectorless-selects", "a Service without a selector selects every pod", spec.ProxySelectorlessUntouched)
	SelectorlessEmptied   = New("selectorless-emptied", "EndpointSlices of a Service without a selector are removed unless a controller has made them",
		spec.ProxySelectorlessUntouched)
	ExternalNameSelects = New("external-name-selects", "a Service of type ExternalName gets EndpointSlices for its selector",
		spec.ProxyExternalNameNoEndpoints)
)

// Mirroring of Endpoints.
var (
	MirrorMissing   = New("mirror-missing", "Endpoints objects are not mirrored", spec.ProxySelectorlessEndpointsMirrored)
	MirrorStale     = New("mirror-stale", "a mirrored EndpointSlice does not follow its Endpoints object", spec.ProxySelectorlessEndpointsMirrored)
	MirrorUnlimited = New("mirror-unlimited", "all addresses of an Endpoints object are mirrored, however many",
		spec.ProxySelectorlessEndpointsMirrored)
	MirrorSkipIgnored = New("mirror-skip-ignored", "the label skip-mirror is ignored", spec.ProxySelectorlessEndpointsMirrored)
)

// Generated EndpointSlices.
var (
	SliceWithoutServiceName = New("slice-without-service-name", "generated EndpointSlices do not have the label kubernetes.io/service-name",
		spec.ProxySliceLabels)
	SliceHeadlessCopied = New("slice-headless-label-copied", "generated EndpointSlices take the label headless from the Service",
		spec.ProxySliceHeadlessLabel)
	SliceWithoutManager = New("slice-without-manager", "generated EndpointSlices do not say which controller has made them", spec.ProxySliceLabels)
	SliceWithoutOwner   = New("slice-without-owner", "generated EndpointSlices have no owner", spec.ProxySliceLabels)
	SliceOversized      = New("slice-oversized", "all endpoints of a Service are in one EndpointSlice, however many", spec.ProxySliceSize)
	SliceFamiliesMixed  = New("slice-families-mixed", "the first EndpointSlice of a dual-stack Service lists the addresses of both families",
		spec.ProxySliceFamilies)
	SlicePrimaryFamily      = New("slice-primary-family", "a dual-stack Service gets EndpointSlices of its primary family only", spec.ProxySliceFamilies)
	SlicePortsUnnamed       = New("slice-ports-unnamed", "the only port of a generated EndpointSlice has no name", spec.ProxySlicePortNames)
	SlicePortsNamedByTarget = New("slice-ports-named-by-target", "ports of generated EndpointSlices are named as the container ports are",
		spec.ProxySlicePortNames)
	SliceAppProtocolDropped = New("slice-app-protocol-dropped", "appProtocol is not copied to generated EndpointSlices", spec.ProxySliceAppProtocol)
	SliceTargetPortOfFirst  = New("slice-target-port-of-first", "a named targetPort has the number that the first pod gives it",
		spec.ProxyTargetPortName)
	SliceTargetPortUnread = New("slice-target-port-unread", "a named targetPort is taken for the Service port", spec.ProxyTargetPortName, spec.ProxySlicePortNames)
)

// Conditions of generated endpoints.
var (
	SliceTerminatingReady = New("slice-terminating-ready", "a pod that terminates stays ready while its readiness probe succeeds",
		spec.ProxySliceConditions)
	SliceTerminatingUnsaid   = New("slice-terminating-unsaid", "the condition terminating is never true", spec.ProxySliceConditions)
	SliceTerminatingRemoved  = New("slice-terminating-removed", "a pod that terminates is no endpoint", spec.ProxySliceConditions)
	SliceServingIsReady      = New("slice-serving-is-ready", "the condition serving is that of ready", spec.ProxySliceConditions)
	SliceUnreadyRemoved      = New("slice-unready-removed", "a pod that is not ready is no endpoint", spec.ProxySliceConditions)
	SliceNotReadyUnpublished = New("slice-not-ready-unpublished", "EndpointSlices do not heed publishNotReadyAddresses",
		spec.ProxyPublishNotReadySlices, spec.ProxyPublishNotReadyTraffic)
	EndpointsNotReadyUnpublished = New("endpoints-not-ready-unpublished", "Endpoints objects do not heed publishNotReadyAddresses",
		spec.ProxyPublishNotReadySlices)
)

// Hints of generated endpoints.
var (
	HintsCloseOnly = New("hints-close-only", "trafficDistribution gives hints for no value but PreferClose",
		spec.ProxyTrafficDistributionSameZone, spec.ProxyTrafficDistributionSameNode)
	HintsNotClose    = New("hints-not-close", "trafficDistribution PreferClose gives no hints", spec.ProxyTrafficDistributionSameZone)
	HintsOfFirstZone = New("hints-of-first-zone", "trafficDistribution gives every endpoint a hint for the zone of the first one",
		spec.ProxyTrafficDistributionSameZone)
	HintsZoneForNode = New("hints-zone-for-node", "trafficDistribution PreferSameNode gives hints for zones only",
		spec.ProxyTrafficDistributionSameNode)
	HintsNodeAlone = New("hints-node-alone", "trafficDistribution PreferSameNode gives hints for nodes only",
		spec.ProxyTrafficDistributionNodeFallsBack)
	HintsFieldFirst = New("hints-field-first", "trafficDistribution gives hints beside the annotation topology-mode",
		spec.ProxyTopologyModeFirst)
	HintsAutoMissing    = New("hints-auto-missing", "the annotation topology-mode Auto gives no hints", spec.ProxyTopologyModeAuto)
	HintsAutoOverloaded = New("hints-auto-overloaded", "the annotation topology-mode Auto gives hints where a zone has too few endpoints",
		spec.ProxyTopologyModeAuto)
)

// What comes and goes.
var (
	EndedPodEndpoint  = New("ended-pod-endpoint", "a pod that has failed or succeeded stays an endpoint, as ready as its condition says", spec.ProxyEndedPodNoEndpoint)
	EndedPodPublished = New("ended-pod-published", "a pod that has ended is an endpoint of a Service that publishes what is not ready", spec.ProxyEndedPodNoEndpoint)
	AddresslessBlocks = New("addressless-pod-blocks", "the endpoints of a Service stay as they are while one of its pods has no address", spec.ProxyOddPodHarmless)
	NodelessPodBlocks = New("nodeless-pod-blocks", "the endpoints of a Service stay as they are while the Node of one of its pods is gone", spec.ProxyOddPodHarmless)
	AddressTwinWins   = New("address-twin-wins", "of two pods with one address the one that is not ready is the endpoint", spec.ProxyOddPodHarmless)

	SelectorKeepsMirrored = New("selector-keeps-mirrored", "mirrored EndpointSlices stay when their Service gets a selector", spec.ProxySelectorAdded)
	MirrorNotReadyReady   = New("mirror-not-ready-ready", "addresses of an Endpoints object that are not ready are mirrored as ready", spec.ProxySelectorlessEndpointsMirrored)
	MirrorEarlyIgnored    = New("mirror-early-ignored", "an Endpoints object that is there before its Service is not mirrored", spec.ProxySelectorlessEndpointsMirrored)
	MirrorFirstSubset     = New("mirror-first-subset", "of an address in two subsets of an Endpoints object only the first is mirrored", spec.ProxySelectorlessEndpointsMirrored)

	ManyPortsIgnored           = New("many-ports-ignored", "EndpointSlices of a Service with more than 100 ports are neither made nor changed", spec.ProxyManyPorts)
	TargetPortNameLent         = New("target-port-name-lent", "a pod that lacks a named port is taken to have that of another pod", spec.ProxyTargetPortNameLacking)
	EndpointsObjectLags        = New("endpoints-object-lags", "an Endpoints object stays as it is when a pod that was ready before is ready again", spec.ProxyEndpointsSettle)
	ControllersForgetGap       = New("controllers-forget-gap", "controllers that start again leave everything as it is until it changes", spec.ProxyEndpointsSettle)
	ControllersAddAfterGap     = New("controllers-only-add-after-gap", "controllers that start again look at Services without EndpointSlices alone", spec.ProxyEndpointsSettle)
	SliceEditsKept             = New("slice-edits-kept", "a generated EndpointSlice that somebody changes or deletes stays so until a pod or the Service changes", spec.ProxySlicesRestored)
	NamedTargetNeverFound      = New("named-target-never-found", "A named targetPort is never found, and pods stand in EndpointSlices without the port", spec.ProxyTargetPortName, spec.ProxySlicePortNames)
	NamedTargetOfFirst         = New("named-target-of-first-container", "A named targetPort is looked for in the first container that has a port of the name, whatever its protocol is", spec.ProxyTargetPortName)
	MirrorAfterSelectorMissing = New("mirror-after-selector-missing", "Endpoints written by hand are not mirrored where the Service had a selector before", spec.ProxySelectorlessEndpointsMirrored, spec.ProxySelectorlessUntouched)
	QuickReadinessLost         = New("quick-readiness-lost", "an endpoint whose pod turns unready and ready several times within a second stays unready until it turns again", spec.ProxyEndpointsSettle)
	HintsOfLateZoneMissing     = New("hints-of-late-zone-missing", "hints that went because a Node had no zone come back with the next change of the Service or its pods alone", spec.ProxyTopologyModeAuto)
	SliceZoneOfFirst           = New("slice-zone-of-first", "an endpoint keeps the zone that its Node had when the pod became an endpoint", spec.ProxySliceZoneFollowed)
	EndpointsTruncatedSilently = NewSlow("endpoints-truncated-silently", "an Endpoints object of more than 1000 addresses is cut and does not say so", spec.ProxyEndpointsObjectTruncated)
)
