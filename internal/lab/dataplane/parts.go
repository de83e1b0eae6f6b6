// Package dataplane runs the nodes of a lab: namespaces with a proxy, pods, clients outside, cluster DNS and load balancers.
package dataplane

import (
	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/certificates"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// Cluster says what a world consists of.
type Cluster struct {
	Ranges apiservers.Ranges
	// Zones has the zone of each node, at least one.
	Zones []string
	// Controllers are those of kube-controller-manager, joined by commas.
	Controllers string
}

// SharedZones are the zones of the nodes that all checks share, one for each node.
var SharedZones = []string{"zone-a", "zone-a", "zone-b"}

// EndpointControllers make EndpointSlices.
const EndpointControllers = "endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller"

// Parts are what a cluster of nodes is made of, beside what cluster says.
type Parts struct {
	Version      programs.Version
	Binaries     *programs.Binaries
	Dir          *process.RunDir
	CA           *certificates.Authority
	Etcd         *controlplane.Etcd
	Proxy        ProxyOptions
	CoreDNS      string // its version; empty if there is none
	Surroundings network.Surroundings
}
