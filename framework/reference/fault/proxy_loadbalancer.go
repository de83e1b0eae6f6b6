package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of load-balancer addresses.
var (
	LoadBalancerNotServed = New("load-balancer-not-served", "Load-balancer addresses are not served.",
		spec.ProxyLoadBalancerReachable, spec.ProxyLoadBalancerWithoutNodePorts, spec.ProxyLoadBalancerMixedProtocols, spec.ProxyLoadBalancerIPModeVIP)
	LoadBalancerNeedsNodePort = New("load-balancer-needs-node-port", "Load-balancer addresses are served only for ports with a node port.",
		spec.ProxyLoadBalancerWithoutNodePorts)
	LoadBalancerOneProtocol = New("load-balancer-one-protocol", "A load-balancer address serves the protocol of the first port only.",
		spec.ProxyLoadBalancerMixedProtocols, spec.ProxyLoadBalancerReachable)
	LoadBalancerNotFromInside = New("load-balancer-not-from-inside", "Load-balancer addresses are not served for clients in the cluster.",
		spec.ProxyLoadBalancerFromCluster, spec.ProxyExternalLocalFromCluster)
	IPModeVIPIgnored = New("ip-mode-vip-ignored", "An address with ipMode VIP is not served.",
		spec.ProxyLoadBalancerIPModeVIP, spec.ProxyLoadBalancerFromCluster, spec.ProxyLoadBalancerReachable)
	IPModeProxyCaptured = New("ip-mode-proxy-captured", "The node serves an address with ipMode Proxy.",
		spec.ProxyLoadBalancerIPModeProxy)
	NoMasqueradeForLoadBalancer = New("load-balancer-client-address-kept", "The endpoint sees the client's address through a load balancer under policy Cluster.",
		spec.ProxyLoadBalancerClientAddressAltered)
	SourceRangesIgnored = New("source-ranges-ignored", "loadBalancerSourceRanges admit everybody.",
		spec.ProxyLoadBalancerSourceRanges)
	SourceRangesOnNodePorts = New("source-ranges-on-node-ports", "loadBalancerSourceRanges restrict node ports too.",
		spec.ProxyLoadBalancerSourceRanges)
	SourceRangeZeroRefuses = New("source-range-of-length-zero-refuses", "A source range of length zero admits nobody.",
		spec.ProxyLoadBalancerSourceRangesZero)
	SourceRangesOfAddress = New("source-ranges-of-address", "The source ranges of a Service hold for all Services that have its load-balancer address.",
		spec.ProxyLoadBalancerAddressShared)
)
