package cluster

import (
	"maps"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// proxyConfiguration is what is read of a KubeProxyConfiguration.
type proxyConfiguration struct {
	Mode               string   `json:"mode"`
	MetricsBindAddress string   `json:"metricsBindAddress"`
	HealthzBindAddress string   `json:"healthzBindAddress"`
	NodePortAddresses  []string `json:"nodePortAddresses"`
	IPTables           struct {
		LocalhostNodePorts *bool `json:"localhostNodePorts"`
	} `json:"iptables"`
	Conntrack struct {
		UDPTimeout       string `json:"udpTimeout"`
		UDPStreamTimeout string `json:"udpStreamTimeout"`
	} `json:"conntrack"`
}

// healthz are the forms in which a configuration has the default address of the health of the proxy.
var healthz = map[string]bool{"": true, "0.0.0.0:10256": true, "[::]:10256": true, ":10256": true}

// declarations are those of kube-proxy in a mode, but for what the configuration changes and leaves unknown.
func (p *proxyConfiguration) declarations(mode string) map[spec.Declarable]string {
	d := maps.Clone(candidate.KubeProxyDeclarations(mode))
	if !healthz[p.HealthzBindAddress] {
		delete(d, spec.ProxyHealth)
	}
	switch local := p.IPTables.LocalhostNodePorts; {
	case len(p.NodePortAddresses) > 0:
		delete(d, spec.NodePortLoopback)
	case mode == candidate.IPTables && local != nil && !*local:
		d[spec.NodePortLoopback] = "not-served"
	}
	return d
}
