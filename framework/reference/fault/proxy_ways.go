package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs that close one way from a client to an endpoint.
var (
	HostBackendOutside = New("host-backend-outside", "Clients outside of the cluster reach no endpoint in the host network of a node.",
		spec.ProxyEveryWay)
	HostBackendOwnPods = New("host-backend-own-pods", "A pod does not reach an endpoint in the host network of its own node by a cluster IP.",
		spec.ProxyEveryWay)
	HostOwnNodePort = New("host-own-node-port", "A node does not reach its own node port where the endpoint is on it.",
		spec.ProxyNodePortReachable)
	HostFarNodePort = New("host-far-node-port", "A node does not reach the node port of the node that the endpoint is on.",
		spec.ProxyNodePortReachable)
	PodNodePortBack = New("pod-node-port-back", "A pod does not reach an endpoint on its own node by the node port of another one.",
		spec.ProxyNodePortReachable)
	HostOwnClusterIP = New("host-own-cluster-ip", "A node does not reach an endpoint on it by the cluster IP.",
		spec.ProxyClusterIPReachable)
	OutsideFarBackend = New("outside-far-backend", "Clients outside reach no endpoint by an external or load-balancer address but on the node that they enter.",
		spec.ProxyExternalIPReachable, spec.ProxyLoadBalancerReachable)
	OutsideFarNodePort = New("outside-far-node-port", "Clients outside reach no endpoint by a node port but on the node that they enter.",
		spec.ProxyNodePortEveryNode, spec.ProxyNodePortReachable)
	LocalHostBalancer = New("local-host-balancer", "Under externalTrafficPolicy Local a node does not reach an endpoint on it by the load-balancer address.",
		spec.ProxyExternalLocalFromCluster)
	LocalPodExternalIP = New("local-pod-external-ip", "Under externalTrafficPolicy Local pods reach nothing by external IPs.",
		spec.ProxyExternalLocalFromCluster)
	LocalHostFar = New("local-host-far", "Under externalTrafficPolicy Local a node reaches only endpoints on it by external and load-balancer addresses.",
		spec.ProxyExternalLocalFromCluster)
	LocalPodNodePort = New("local-pod-node-port", "Under externalTrafficPolicy Local pods reach nothing by the node port of another node.",
		spec.ProxyEveryWayLocal)
	LoopbackFarBackend = New("loopback-far-backend", "Node ports on loopback addresses lead to endpoints of the own node alone.",
		spec.ProxyNodePortLoopbackDeclared)
	NodeExternalIPOwnBackend = New("node-external-ip-own-backend", "An external IP that is an address of a node does not lead clients outside to endpoints on that node.",
		spec.ProxyExternalIPOfNode)
	PodFarBalancer = New("pod-far-balancer", "Pods reach only endpoints on their own node by a load-balancer address.",
		spec.ProxyLoadBalancerFromCluster)
	FarExternalIP = New("far-external-ip", "An external IP leads to endpoints of the node alone that the packet enters.",
		spec.ProxyExternalIPReachable)
	HostOwnNodePorts = New("host-own-node-ports", "A node does not reach node ports at its own address.",
		spec.ProxyNodePortReachable)
	HostHairpin = New("host-hairpin", "A node does not reach an endpoint in its own network through a Service.",
		spec.ProxyEveryWay)
	OutsideBackendBalancer = New("outside-backend-balancer", "Load-balancer addresses do not lead to endpoints outside of the cluster.",
		spec.ProxyOutsideBackends)
	OutsideBackendNodePort = New("outside-backend-node-port", "Node ports do not lead clients outside to endpoints outside of the cluster.",
		spec.ProxyOutsideBackends)
	PodNodePortAround = New("pod-node-port-around", "A pod does not reach an endpoint on a third node by the node port of another one.",
		spec.ProxyNodePortReachable)
)
