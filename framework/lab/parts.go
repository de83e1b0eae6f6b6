package lab

import (
	"github.com/service-conformance/conformance/framework/certificates"
	"github.com/service-conformance/conformance/framework/lab/network"
)

// cluster says what a world consists of.
type cluster struct {
	ranges ranges
	// zones has the zone of each node, at least one.
	zones []string
	// controllers are those of kube-controller-manager, joined by commas.
	controllers string
}

// sharedZones are the zones of the nodes that all checks share, one for each node.
var sharedZones = []string{"zone-a", "zone-a", "zone-b"}

// endpointControllers make EndpointSlices.
const endpointControllers = "endpoints-controller,endpointslice-controller,endpointslice-mirroring-controller"

// parts are what a cluster of nodes is made of, beside what cluster says.
type parts struct {
	version      version
	binaries     *Binaries
	dir          *runDir
	ca           *certificates.Authority
	etcd         *etcd
	proxy        ProxyOptions
	coreDNS      string // its version; empty if there is none
	surroundings network.Surroundings
}
