package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of how a proxy follows EndpointSlices.
var (
	DeletedServiceServed = New("deleted-service-served", "A deleted Service is served on.",
		spec.ProxyServiceRemoved)
	AddedEndpointIgnored = New("added-endpoint-ignored", "An endpoint that joins others gets no connections.",
		spec.ProxyEndpointAdded, spec.ProxyBackendChangeTransparent, spec.ProxyIPVSWatches)
	RemovedEndpointKept = New("removed-endpoint-kept", "An endpoint that leaves goes on to be chosen.",
		spec.ProxyEndpointRemoved, spec.ProxyBackendChangeTransparent, spec.ProxyAffinityBackendLost, spec.ProxyClusterIPOutlivesBackends, spec.ProxyEndpointSlicesJoined, spec.ProxyIPVSWatches)
	OneSliceOnly = New("one-slice-only", "Only one EndpointSlice of a Service is looked at.",
		spec.ProxyEndpointSlicesJoined)
	ReadinessLatched = New("readiness-latched", "An endpoint keeps the readiness that it had first.",
		spec.ProxyUnreadyEndpointAvoided, spec.ProxyPolicyReadyBackends)
	UnreadyUsed = New("unready-endpoint-used", "Endpoints that are not ready are chosen.",
		spec.ProxyUnreadyEndpointAvoided, spec.ProxyPolicyReadyBackends, spec.ProxyAffinityBackendLost)
	PortNameIgnored = New("endpoint-port-name-ignored", "Endpoint ports of every name belong to every port of the Service.",
		spec.ProxyEndpointPortNameMatched, spec.ProxyPortsIndependent)
	DuplicateEndpointsCount = New("duplicate-endpoints-count", "An endpoint in two slices gets twice its share.",
		spec.ProxyEndpointDuplicate)
	TerminatingTwinWins = New("terminating-twin-wins", "Of two endpoints with one address the terminating one counts.",
		spec.ProxyEndpointAddressReused)
	NodelessIsLocal = New("nodeless-endpoint-local-everywhere", "An endpoint without a node name is local to every node.",
		spec.ProxyEndpointWithoutNodeRemote)
	UnusableEndpointBreaks = New("unusable-endpoint-breaks-service", "A slice that cannot be used takes the others with it.",
		spec.ProxyEndpointUnusableIgnored)
	SelectorlessNotServed = New("selectorless-not-served", "Services without a selector are not served.",
		spec.ProxySelectorlessSlicesUsed)
	ReturnedEndpointUnused = New("returned-endpoint-unused", "An endpoint that was terminating gets nothing any more, even if it is ready again.",
		spec.ProxyEndpointComesBack)
	UnreadyTwinWins = New("unready-twin-wins", "Of two endpoints with one address the one that is not ready counts.",
		spec.ProxyEndpointReadyInOneSlice)
)
