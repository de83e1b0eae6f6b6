package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of who reaches a Service, and by which address.
var (
	ClusterIPNotServed = New("cluster-ip-not-served", "No virtual IP is served.",
		spec.ProxyClusterIPReachable, spec.ProxyClusterIPOnEveryNode, spec.ProxyNoClientKnowledge, spec.ProxyRedirectTransparent, spec.ProxyServiceAdded, spec.ProxyNotAnsweredBySingleHost, spec.ProxyClusterIPOutlivesBackends, spec.ProxyDualStackAddresses, spec.ProxyScale, spec.ProxyBackendChangeTransparent)
	ClusterIPOnBackendNodes = New("cluster-ip-on-backend-nodes-only", "The virtual IP is served only on nodes that have an endpoint.",
		spec.ProxyClusterIPOnEveryNode, spec.ProxyNotAnsweredBySingleHost, spec.ProxyClusterIPReachable)
	ClusterIPInNamespace = New("cluster-ip-in-own-namespace-only", "The virtual IP is served only for pods of the Service's namespace.",
		spec.ProxyClusterIPAcrossNamespaces, spec.ProxyClusterIPReachable)
	FirstEndpointAlways = New("first-endpoint-always", "All connections go to the first ready endpoint.",
		spec.ProxyClusterIPSpreads, spec.ProxyEveryEndpointSelected, spec.ProxyAffinityNone, spec.ProxyIptablesRandom, spec.ProxyInternalClusterAllEndpoints, spec.ProxyExternalClusterAllEndpoints, spec.ProxyEndpointAdded, spec.ProxyIptablesAffinityOrRandom, spec.ProxyAffinityClientsIndependent)
	LastEndpointNever = New("last-endpoint-never", "The last of several endpoints is never chosen.",
		spec.ProxyEveryEndpointSelected, spec.ProxyClusterIPSpreads, spec.ProxyInternalClusterAllEndpoints, spec.ProxyExternalClusterAllEndpoints)
	ClusterIPOnNodes = New("cluster-ip-service-on-node-addresses", "A Service of type ClusterIP is served on the addresses of nodes too.",
		spec.ProxyClusterIPClusterInternal)
	ServicesByPort = New("services-told-apart-by-port-only", "A connection to a virtual IP goes to any Service with that port.",
		spec.ProxyEqualPortsSeparate)
	ClusterIPLostWithNodePort = New("cluster-ip-lost-with-node-port", "The virtual IP is served for Services of type ClusterIP only.",
		spec.ProxyVIPForEveryType, spec.ProxyNodePortClusterIP)
	HeadlessProxied = New("headless-service-proxied", "The target ports of a headless Service are served on its ports.",
		spec.ProxyHeadlessNotProxied)
	ExternalNameProxied = New("external-name-proxied", "A Service of type ExternalName is served on what addresses it has.",
		spec.ProxyExternalNameNotProxied)
	ExternalNameKeepsClusterIP = New("external-name-keeps-cluster-ip", "The virtual IP is served on after its Service has become ExternalName.",
		spec.ProxyExternalNameStopsProxying)
	EndpointsFrozen = New("endpoints-frozen", "The endpoints of a Service stay those that it had first.",
		spec.ProxyClusterIPOutlivesBackends, spec.ProxyBackendChangeTransparent, spec.ProxyEndpointAdded, spec.ProxyEndpointRemoved, spec.ProxyEndpointSlicesJoined, spec.ProxyUDPFlowFollowsEndpoints, spec.ProxyIPVSWatches)
	MasqueradeAll = New("client-address-always-rewritten", "The endpoint sees the address of a node for every client.",
		spec.ProxyClientAddressKept, spec.ProxyExternalLocalClientAddress)
	HairpinLost = New("hairpin-lost", "A pod that is sent to itself gets no answer.",
		spec.ProxyHairpin)
	HairpinWithoutNodeLost = New("hairpin-without-node-lost", "A pod that is sent to itself gets no answer where its endpoint does not name its node.",
		spec.ProxyHairpin)
	NoEndpointsDropped = New("no-endpoints-dropped", "A connection to a Service without endpoints is left without an answer.",
		spec.ProxyNoEndpointsRefused)
	HeadlessLabelObeyed = New("headless-label-obeyed", "A Service that has the label headless is not served, whatever its clusterIP is.",
		spec.ProxyHeadlessLabel)
	ProxyNameIgnored = New("proxy-name-ignored", "Services that are left to another proxy are served.",
		spec.ProxyServiceProxyName)
	DeletedServiceStops = New("service-stops-with-its-deletion", "A Service stops as soon as its deletion begins, whatever finalizers it has.",
		spec.ProxyFinalizerKeepsTraffic)
	DualStackIgnored = New("dual-stack-ignored", "Services with addresses of two families are not served.",
		spec.ProxyDualStackAddresses, spec.ProxyDualStackNodePorts, spec.ProxyDualStackPolicies, spec.ProxyDualStackTransition)
	SecondaryNotServed = New("secondary-address-not-served", "Only the first virtual IP of a Service is served.",
		spec.ProxyDualStackAddresses, spec.ProxyDualStackPolicies)
	ReplyFromPod = New("reply-from-the-pod", "The reply comes from the endpoint's own address.",
		spec.ProxyRedirectTransparent, spec.ProxyClusterIPReachable)
)
