package lab

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// guestPatience is how many times longer things may take in a guest, whose one processor does every system call in several of the machine's.
const guestPatience = 12

// TrafficWorkers is how many checks of traffic run best at a time here. They wait most of the time, but in a guest
// everything waits for its one processor.
func TrafficWorkers() int {
	if isolation.InGuest() {
		return 6
	}
	return 12
}

// describeDataPlane adds what the nodes and their proxy offer.
func (l *Lab) describeDataPlane(d *candidate.Description) {
	d.Capabilities = append(d.Capabilities, spec.DataPlane, spec.EndpointControllers, spec.RestartControllers, spec.LoadBalancer, spec.NarrowLinks, spec.PodObjects, spec.OutsideBackends)
	if l.coreDNS != "" {
		d.Capabilities = append(d.Capabilities, spec.ClusterDNS)
		d.Components["coredns"] = strings.TrimPrefix(l.coreDNS, "v")
	}
	d.Declarations = map[spec.Declarable]string{spec.LoadBalancers: "none"}
	if programs.HasServiceController(l.Binaries) {
		d.Declarations[spec.LoadBalancers] = "service-controller"
	}
	if isolation.InGuest() {
		d.Patience = guestPatience
	}
	if isolation.SCTPWorks() {
		d.Capabilities = append(d.Capabilities, spec.SCTP)
	}
	d.Capabilities = append(d.Capabilities, spec.OwnNodes)
	if l.Proxy.Command != "" {
		d.Components["proxy"] = l.Proxy.Command
		return // what it can be asked for and what it declares is not known
	}
	d.DataPlane = candidate.Implementation{Name: "kube-proxy", Version: l.Binaries.Version}
	d.Components["proxy"] = "kube-proxy in " + l.Proxy.Mode + " mode"
	d.ProxyMode = l.Proxy.Mode
	d.Capabilities = append(d.Capabilities, spec.KubeProxy, spec.ProxyConfiguration, spec.ProxyMetrics)
	if l.Proxy.Mode != candidate.IPVS {
		d.Capabilities = append(d.Capabilities, candidate.ProxyModeCapability(l.Proxy.Mode))
	}
	if dataplane.IPVSWorks() { // also on nodes of other modes: a check can add a node
		d.Capabilities = append(d.Capabilities, spec.IPVS)
	}
	configuration, err := candidate.ParseKubeProxyConfiguration(l.Proxy.Configuration)
	if err != nil { // the nodes do not start with it
		return
	}
	if changes, err := candidate.KubeProxyChanges(l.Proxy.Configuration); err == nil { // what was judged, as the file may be another one later
		if said, err := json.Marshal(changes); err == nil {
			d.Components["proxy"] += " with " + string(said)
		}
	}
	maps.Copy(d.Declarations, configuration.Declarations(l.Proxy.Mode))
}
