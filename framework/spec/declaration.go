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
	// NoEndpoints is what a client of a Service without endpoints meets: "reject" or "drop".
	NoEndpoints Declarable = "no-endpoints"
	// InternalLocalWithoutEndpoints is what a client meets under internalTrafficPolicy Local on a node without endpoints: "reject" or "drop".
	InternalLocalWithoutEndpoints Declarable = "internal-local-without-endpoints"
	// ExternalLocalWithoutEndpoints is what a client meets under externalTrafficPolicy Local at a node without endpoints: "reject" or "drop".
	ExternalLocalWithoutEndpoints Declarable = "external-local-without-endpoints"
	// UnusedPort is what a client meets at a port of a cluster IP that the Service does not have: "reject", "drop", or "network" where
	// the proxy leaves it to the network.
	UnusedPort Declarable = "unused-port"
	// NodePortLoopback is whether node ports are served on loopback addresses: "served" or "not-served".
	NodePortLoopback Declarable = "node-port-loopback"
	// Hairpin is whether a backend reaches itself through its Service: by "every-address", by the "cluster-ip" alone, or "not-served".
	Hairpin Declarable = "hairpin"
	// HostAccess is whether processes in the host network of a node reach Services: "served" or "not-served".
	HostAccess Declarable = "host-access"
)

// Declarables are the values that each declaration can have.
var Declarables = map[Declarable][]string{
	AffinityScope:                 {"port", "service"},
	AffinityTimer:                 {"refreshed", "fixed"},
	NoEndpoints:                   {"reject", "drop"},
	InternalLocalWithoutEndpoints: {"reject", "drop"},
	ExternalLocalWithoutEndpoints: {"reject", "drop"},
	UnusedPort:                    {"reject", "drop", "network"},
	NodePortLoopback:              {"served", "not-served"},
	Hairpin:                       {"every-address", "cluster-ip", "not-served"},
	HostAccess:                    {"served", "not-served"},
}
