package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of a proxy that goes by what a Service was before, or by what others have.
var (
	AffinityLostWithEndpoints = New("affinity-lost-with-endpoints", "A Service has no affinity any more once it has had no endpoints.",
		spec.ProxyAffinityClientIP)
	AffinityChangeUnserves = New("affinity-change-unserves", "A Service is not served any more once its session affinity has changed.",
		spec.ProxyAffinityClientIP)
	NodePortOfNewOnly = New("node-port-of-new-only", "A Service that gets node ports after its creation is not served there.",
		spec.ProxyVIPForEveryType)
	PortAddedLaterUnserved = New("port-added-later-unserved", "A port that a Service gets after its creation is not served.",
		spec.ProxyManyPorts, spec.ProxyPartialSyncComplete, spec.ProxyRestoreFailuresNone, spec.ProxyNftablesUnusedPortRejected)
	RemovedPortServed = New("removed-port-served", "A port that a Service loses goes on to be served while it has others.",
		spec.ProxyCapturesPort, spec.ProxyNftablesUnusedPortRejected)
	LaterFamilyUnserved = New("later-family-unserved", "A dual-stack Service is served in the families alone that its first endpoint has.",
		spec.ProxyDualStackAddresses)
	SourceRangesChangeRefuses = New("source-ranges-change-refuses", "Once the source ranges of a Service have changed, nobody is admitted.",
		spec.ProxyLoadBalancerSourceRanges)
	SourceRangesOfOthers = New("source-ranges-of-others", "Load balancers without source ranges admit nobody while another Service has ranges.",
		spec.ProxyLoadBalancerAddressShared)
	OtherFamilyIngressBlocks = New("other-family-ingress-blocks", "While an ingress address is of another family than its Service, no change takes effect.",
		spec.ProxyLoadBalancerOtherFamily)
	UnreadyAtStopForgotten = New("unready-at-stop-forgotten", "An endpoint that is unready when the proxy of a node ends is never chosen there again.",
		spec.ProxyRestartKeepsTraffic, spec.ProxyEndpointAdded, spec.ProxyGapFollowed)
	FormerModeRefuses = New("former-mode-refuses", "A Service that had no endpoints when the mode of a node's proxy was changed is not served there any more.",
		spec.ProxyModeConfigured, spec.ProxyClusterIPReachable)
	BigServiceStopsSync = New("big-service-stops-sync", "Once a Service has more than 800 endpoints, no change takes effect on a node any more.",
		spec.ProxyManyEndpoints, spec.ProxyClusterIPReachable)
	BigServiceUnserved = New("big-service-unserved", "A Service with more than 900 endpoints is not served.",
		spec.ProxyManyEndpoints)
	BalancerPolicyOfCreation = New("load-balancer-policy-of-creation", "At a load-balancer address the external policy is the one that the Service was created with.",
		spec.ProxyExternalLocalNodeEndpoints, spec.ProxyLoadBalancerReachable)
	NewIngressGoesWithOld = New("new-ingress-goes-with-old", "When a Service of type LoadBalancer is deleted, the address of the newest other one is no longer served.",
		spec.ProxyLoadBalancerAddressShared, spec.ProxyLoadBalancerReachable, spec.ProxyServiceRemoved)
	RestartSharedPortsLost = New("restart-shared-ports-lost", "Of Services that share a load-balancer address, a proxy that is started anew serves one.",
		spec.ProxyLoadBalancerAddressShared, spec.ProxyRestartKeepsTraffic)
	SwappedPortsStale = New("swapped-ports-stale", "When two Services swap their ports at a load-balancer address that they share, each is still served at the former port.",
		spec.ProxyLoadBalancerAddressShared, spec.ProxyEqualPortsSeparate)
	SecondaryMasqueraded = New("secondary-address-masqueraded", "Under policy Local the client's address is kept at the first address of a node alone.",
		spec.ProxyExternalLocalClientAddress)
	HealthzOnLoopback = New("healthz-on-loopback", "The health of the proxy is served on loopback alone.",
		spec.ProxyHealthz, spec.ProxyNodeDrainHealth)
	HeadlessTwinUnserves = New("headless-twin-unserves", "A Service is not served while a headless one selects the same pods.",
		spec.ProxyHeadlessNotProxied)
	SharedIngressOneProtocol = New("shared-ingress-one-protocol", "Of two Services with one ingress address and port number, the one with UDP is not served.",
		spec.ProxyLoadBalancerAddressShared)
	NodePortsOnOthersAddresses = New("node-ports-on-others-addresses", "Node ports are served on external and load-balancer addresses of other Services.",
		spec.ProxyExternalIPReachable)
	ExternalIPNewEndpointLost = New("external-ip-new-endpoint-lost", "For a minute, what an external IP leads to an endpoint that has joined others is lost.",
		spec.ProxyEndpointAdded, spec.ProxyExternalIPReachable)
	OtherFamilyNodePortSwallowed = New("other-family-node-port-swallowed", "Connections to a node port at node addresses of a family that the Service has not are taken, and never answered.",
		spec.ProxyNodePortOtherFamily)
	ExternalIPFirstPort = New("external-ip-first-port", "All ports of a Service lead to the endpoints of the first one at an external IP.",
		spec.ProxyCapturesProtocol)
	AffinityOutsideUnserved = New("affinity-outside-unserved", "A Service with session affinity is served at its cluster IP alone.",
		spec.ProxyAffinityClientIP)
	NodePortsFirstAddress = New("node-ports-first-address", "Node ports are served on the first address of a node alone.",
		spec.ProxyNodePortAddresses, spec.ProxyNftablesNodePortsPrimary)
	NoEndpointsHostRefused = New("no-endpoints-host-refused", "A Service without endpoints refuses hosts alone, and others hear nothing.",
		spec.ProxyNoEndpointsRefused)
	NoEndpointsNodePortHangs = New("no-endpoints-node-port-hangs", "Node ports of a Service without endpoints answer nothing.",
		spec.ProxyNoEndpointsRefused)
)
