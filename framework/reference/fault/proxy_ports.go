package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of ports: of Services, of pods and of nodes.
var (
	AnyPortServed = New("any-port-served", "Every port of a virtual IP leads to an endpoint.",
		spec.ProxyCapturesPort, spec.ProxyNftablesUnusedPortRejected)
	ProtocolIgnored = New("protocol-ignored", "Ports of one number and different protocols are taken for one.",
		spec.ProxyCapturesProtocol)
	TCPNotServed = New("tcp-not-served", "TCP ports are not served.",
		spec.ProxyTCPForwarded, spec.ProxyClusterIPReachable)
	UDPNotServed = New("udp-not-served", "UDP ports are not served.",
		spec.ProxyUDPForwarded, spec.ProxyUDPFlowFollowsEndpoints)
	SCTPNotServed = New("sctp-not-served", "SCTP ports are not served.",
		spec.ProxySCTPForwarded)
	UDPFlowOutlivesService = New("udp-flow-outlives-service", "A UDP flow goes on to its endpoint when its Service is deleted.",
		spec.ProxyUDPFlowEndsWithService)
	UDPFlowStale = New("stale-udp-flow", "A UDP flow goes on to an endpoint that is gone.",
		spec.ProxyUDPFlowFollowsEndpoints, spec.ProxyUDPFlowEndsWithService)
	UDPFlowOutlivesLast = New("udp-flow-outlives-last-endpoint", "A UDP flow goes on to an endpoint that is gone while the Service has no other.",
		spec.ProxyUDPFlowFollowsEndpoints)
	UDPFlowStaleOutside = New("stale-udp-flow-outside", "A UDP flow through a node port or an external address goes on to an endpoint that is gone.",
		spec.ProxyUDPFlowFollowsEndpoints)
	UDPFlowBegunEarlyLost = New("udp-flow-begun-early-lost", "A UDP flow that began while the Service had no endpoint is not served when one comes.",
		spec.ProxyUDPFlowFollowsEndpoints)
	UDPFlowOlderThanProxyStale = New("udp-flow-older-than-proxy-stale", "A UDP flow that began before the proxy was started anew goes on to an endpoint that is gone.",
		spec.ProxyUDPFlowFollowsEndpoints)
	EndedConnectionRemembered = New("ended-connection-remembered", "A connection from a port of a client goes to the endpoint that the one before had from there, be it gone.",
		spec.ProxyEndpointRemoved)
	EqualPortsUnanswered = New("equal-ports-unanswered", "A client whose own port is that of the Service gets no answer.",
		spec.ProxyRedirectTransparent)
	FlowsOfOnePortConfused = New("flows-of-one-port-confused", "Of connections from one port of a client to several addresses with one endpoint only the first is answered.",
		spec.ProxyRedirectTransparent)
	BusyFlowStale = New("busy-udp-flow-stale", "A UDP flow goes on to an endpoint that is gone if it never pauses.",
		spec.ProxyUDPFlowFollowsEndpoints)
	BusyFlowLost = New("busy-udp-flow-lost", "A UDP flow that never pauses is not served if it began before there was an endpoint.",
		spec.ProxyUDPFlowFollowsEndpoints)
	FirstPortOnly = New("first-port-only", "Only the first port of a Service is served.",
		spec.ProxyPortsIndependent)
	TrafficToFirstTarget = New("target-port-of-first-port", "Every port leads to the target of the first one.",
		spec.ProxyPortsIndependent, spec.ProxyTargetPortNumber, spec.ProxyCapturesProtocol)
	ServicePortToPods = New("target-port-ignored", "Pods get connections on the port of the Service.",
		spec.ProxyTargetPortNumber, spec.ProxyClusterIPReachable)
	AppProtocolNotServed = New("app-protocol-not-served", "Ports that have an appProtocol are not served.",
		spec.ProxyAppProtocolForwarded)
	NodePortNotServed = New("node-port-not-served", "Node ports are not served.",
		spec.ProxyNodePortReachable, spec.ProxyNodePortSameEndpoints, spec.ProxyDualStackNodePorts, spec.ProxyNodePortEveryNode, spec.ProxyNodePortAddresses, spec.ProxyNftablesNodePortsPrimary)
	NodePortOnOneNode = New("node-port-on-one-node", "Node ports are served on one node only.",
		spec.ProxyNodePortEveryNode, spec.ProxyNodePortReachable)
	NodePortOnBackendNodes = New("node-port-on-backend-nodes-only", "A node without an endpoint does not serve the node port.",
		spec.ProxyNodePortEveryNode, spec.ProxyNodePortSameEndpoints, spec.ProxyNodePortReachable)
	NodePortOfFirstOnly = New("node-port-of-first-port-only", "Only the first port of a Service has its node port served.",
		spec.ProxyNodePortSameEndpoints, spec.ProxyNodePortReachable, spec.ProxyNodePortEveryNode)
	NoMasquerade = New("node-port-client-address-kept", "The endpoint sees the client's address under policy Cluster too, so that replies of other nodes are lost.",
		spec.ProxyNodePortClientAddressAltered, spec.ProxyLoadBalancerClientAddressAltered)
	ExternalIPsNotServed = New("external-ips-not-served", "External IPs are not served.",
		spec.ProxyExternalIPReachable)
	SharedExternalIPOnePolicy = New("shared-external-ip-one-policy", "The policy Local of a Service governs all Services that have its external IP.",
		spec.ProxyExternalIPShared)
	SharedAddressGoesWithFirst = New("shared-address-goes-with-first", "When a Service is deleted, others are no longer served at the external IPs and load-balancer addresses that they had in common.",
		spec.ProxyExternalIPShared, spec.ProxyLoadBalancerAddressShared)
	OtherFamilyExternalIPBlocks = New("other-family-external-ip-blocks", "A Service with an external IP of another family is not served.",
		spec.ProxyExternalIPOtherFamily)
	ClusterIPsOfNode = New("cluster-ips-of-node", "Every node takes the cluster IPs for addresses of its own, and its programs answer there.",
		spec.ProxyCapturesPort)
	ExternalAddressesOfNode = New("external-addresses-of-node", "Every node takes external and load-balancer addresses for addresses of its own, and its programs answer there.",
		spec.ProxyExternalIPReachable, spec.ProxyExternalIPOfNode)
	ExternalIPTakesNodeAddress = New("external-ip-takes-node-address", "Node ports are not served on an address of the node that is an external IP.",
		spec.ProxyExternalIPOfNode)
)
