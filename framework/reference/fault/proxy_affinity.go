package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of session affinity in traffic.
var (
	AffinityNever = New("no-affinity", "Session affinity is ignored.",
		spec.ProxyAffinityClientIP, spec.ProxyIptablesAffinityOrRandom, spec.ProxyAffinityTimeoutDefault, spec.ProxyDualStackPolicies)
	AffinityForAllClients = New("affinity-of-all-clients-together", "All clients of a Service are tied to one pod.",
		spec.ProxyAffinityClientsIndependent, spec.ProxyAffinityClientIP)
	AffinityForWholeService = New("affinity-for-whole-service", "Affinity spans the ports of a Service where it is declared to hold for each.",
		spec.ProxyAffinityClientIP)
	AffinityAlways = New("affinity-always", "Clients stick without being asked to.",
		spec.ProxyAffinityNone, spec.ProxyClusterIPSpreads)
	AffinityLostOnChange = New("affinity-lost-on-change", "A change of the Service moves all clients.",
		spec.ProxyAffinityClientIP)
	AffinityByEndpointCount = New("affinity-lost-with-new-endpoints", "Another endpoint moves all clients.",
		spec.ProxyAffinityBackendAdded, spec.ProxyAffinityClientIP)
	AffinityToLostEndpoint = New("affinity-to-lost-endpoint", "A client stays with an endpoint that is gone or unready.",
		spec.ProxyAffinityBackendLost)
	AffinityNeverExpires = New("affinity-never-expires", "The sticky time never ends.",
		spec.ProxyAffinityTimeout)
	AffinityTimeoutMinutes = New("affinity-timeout-in-minutes", "timeoutSeconds is taken for minutes.",
		spec.ProxyAffinityTimeout, spec.ProxyAffinityTimeoutDefault)
	AffinityTimeoutShort = New("affinity-timeout-in-milliseconds", "timeoutSeconds is taken for milliseconds.",
		spec.ProxyAffinityTimeout)
	AffinityTimeoutCapped = New("affinity-timeout-capped", "No client sticks for longer than an hour.",
		spec.ProxyAffinityTimeoutDefault, spec.ProxyAffinityTimeout)
	AffinityNotRefreshed = New("affinity-not-refreshed", "Connections do not begin the sticky time anew where that is declared.",
		spec.ProxyAffinityTimeout)
	AffinityTCPOnly = New("affinity-of-tcp-only", "UDP has no affinity.",
		spec.ProxyAffinityClientIP)
	AffinityNotOnNodePorts = New("affinity-not-on-node-ports", "Node ports have no affinity.",
		spec.ProxyAffinityClientIP)
	AffinityNotUnderLocal = New("affinity-not-under-local", "There is no affinity under a Local policy.",
		spec.ProxyAffinityClientIP)
)
