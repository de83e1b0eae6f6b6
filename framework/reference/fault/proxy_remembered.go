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
	HeadlessTwinUnserves = New("headless-twin-unserves", "A Service is not served while a headless one selects the same pods.",
		spec.ProxyHeadlessNotProxied)
	SharedIngressOneProtocol = New("shared-ingress-one-protocol", "Of two Services with one ingress address and port number, the one with UDP is not served.",
		spec.ProxyLoadBalancerAddressShared)
	NodePortsOnOthersAddresses = New("node-ports-on-others-addresses", "Node ports are served on external and load-balancer addresses of other Services.",
		spec.ProxyExternalIPReachable)
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
