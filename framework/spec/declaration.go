package spec

// Declarable is a behaviour that the specification leaves to the implementation, which says of itself what it does. Checks test it
// against what it says.
type Declarable string

// What can be declared, with the values that there are. Where nothing is declared, checks demand what all values have in common.
const (
	// AffinityScope is what session affinity holds for: one "port" of a Service by itself, or the whole "service".
	AffinityScope Declarable = "affinity-scope"
	// AffinityTimer is what the sticky time is counted from: the last connection ("refreshed") or the first ("fixed").
	AffinityTimer Declarable = "affinity-timer"
	// AffinityTimeout is whether timeoutSeconds of a Service sets the sticky time ("settable"), or the proxy has one of its own ("fixed").
	AffinityTimeout Declarable = "affinity-timeout"
	// UDPFlows is what becomes of datagrams that a client goes on to send from one socket when endpoints or the Service
	// change. They "follow" the change, or they "stay" where the flow began until the client opens another socket, as
	// with a proxy that works at sockets.
	UDPFlows Declarable = "udp-flows"
	// NodelessEndpoints is what an endpoint without the name of a node is under policy Local: "remote" to every node, or "local" to every node.
	NodelessEndpoints Declarable = "nodeless-endpoints"
	// ProxyHealth is whether /healthz at port 10256 of a node says that the proxy is well and the node stays.
	// kube-proxy's does ("port-10256"); with "none" nothing does.
	ProxyHealth Declarable = "proxy-health"
	// NoEndpoints is what a client of a Service without endpoints meets: "reject" or "drop".
	NoEndpoints Declarable = "no-endpoints"
	// InternalLocalWithoutEndpoints is what a client meets under internalTrafficPolicy Local on a node without endpoints: "reject" or "drop".
	InternalLocalWithoutEndpoints Declarable = "internal-local-without-endpoints"
	// ExternalLocalWithoutEndpoints is what a client meets under externalTrafficPolicy Local at a node without endpoints: "reject" or "drop".
	ExternalLocalWithoutEndpoints Declarable = "external-local-without-endpoints"
	// UnusedPort is what a client meets at a port of a cluster IP that the Service does not have. It is "reject",
	// "drop", or "network" where the proxy leaves it to the network.
	UnusedPort Declarable = "unused-port"
	// NodePortLoopback is whether node ports are served on loopback addresses: "served" or "not-served".
	NodePortLoopback Declarable = "node-port-loopback"
	// Hairpin is whether a backend reaches itself through its Service: by "every-address", by the "cluster-ip" alone, or "not-served".
	Hairpin Declarable = "hairpin"
	// HostAccess is whether processes in the host network of a node reach Services: "served" or "not-served".
	HostAccess Declarable = "host-access"
	// LoadBalancers is what makes load balancers for Services that name no class. It is the "service-controller" of a
	// cloud provider, an implementation that works in "another-way", or nothing ("none").
	LoadBalancers Declarable = "load-balancers"
)

// Declarables are the values that each declaration can have.
var Declarables = map[Declarable][]string{
	AffinityScope:                 {"port", "service"},
	AffinityTimer:                 {"refreshed", "fixed"},
	AffinityTimeout:               {"settable", "fixed"},
	UDPFlows:                      {"follow", "stay"},
	NodelessEndpoints:             {"remote", "local"},
	ProxyHealth:                   {"port-10256", "none"},
	NoEndpoints:                   {"reject", "drop"},
	InternalLocalWithoutEndpoints: {"reject", "drop"},
	ExternalLocalWithoutEndpoints: {"reject", "drop"},
	UnusedPort:                    {"reject", "drop", "network"},
	NodePortLoopback:              {"served", "not-served"},
	Hairpin:                       {"every-address", "cluster-ip", "not-served"},
	HostAccess:                    {"served", "not-served"},
	LoadBalancers:                 {"service-controller", "another-way", "none"},
}

// About says what a declaration is about, in one line; "" if there is no such declaration.
func About(d Declarable) string { return aboutDeclarables[d] }

var aboutDeclarables = map[Declarable]string{
	AffinityScope:                 "what session affinity holds for: one port of a Service, or the whole Service",
	AffinityTimer:                 "what the sticky time is counted from: refreshed by each connection, or fixed at the first",
	AffinityTimeout:               "whether timeoutSeconds of a Service sets the sticky time, or the proxy has one of its own",
	UDPFlows:                      "whether datagrams of a socket in use follow a change of endpoints, or stay where the flow began",
	NodelessEndpoints:             "whether an endpoint without a node name is remote or local to every node under policy Local",
	ProxyHealth:                   "whether port 10256 of a node says that the proxy is well",
	NoEndpoints:                   "what a client of a Service without endpoints meets",
	InternalLocalWithoutEndpoints: "what a client meets under internalTrafficPolicy Local on a node without endpoints",
	ExternalLocalWithoutEndpoints: "what a client meets under externalTrafficPolicy Local at a node without endpoints",
	UnusedPort:                    "what a client meets at a port of a cluster IP that the Service does not have",
	NodePortLoopback:              "whether node ports are served on loopback addresses",
	Hairpin:                       "by which addresses of its Service a backend reaches itself",
	HostAccess:                    "whether processes in the host network of a node reach Services",
	LoadBalancers:                 "what makes load balancers for Services that name no class",
}
