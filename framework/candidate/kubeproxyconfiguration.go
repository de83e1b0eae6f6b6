package candidate

import (
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/spec"
)

// KubeProxyConfiguration is what is read of a KubeProxyConfiguration (kubeproxy.config.k8s.io/v1alpha1).
type KubeProxyConfiguration struct {
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

// ParseKubeProxyConfiguration reads the text of a configuration file. Fields that decide nothing here are not looked at.
func ParseKubeProxyConfiguration(text string) (*KubeProxyConfiguration, error) {
	var p KubeProxyConfiguration
	if err := yaml.Unmarshal([]byte(text), &p); err != nil {
		return nil, fmt.Errorf("read the configuration of kube-proxy: %w", err)
	}
	return &p, nil
}

// placed are the fields of a configuration that whoever runs the proxy of a node decides, with what decides them for a user.
var placed = map[string]string{
	"mode": "--proxy-mode", "hostnameOverride": "", "clientConnection": "", "clusterCIDR": "", "detectLocalMode": "", "metricsBindAddress": "", "healthzBindAddress": "",
}

// KubeProxyChanges reads a part of a KubeProxyConfiguration, which changes that of a tier. The error names a field that the tier decides. Whether kube-proxy knows the
// others is left to it.
func KubeProxyChanges(text string) (map[string]any, error) {
	var changes map[string]any
	if err := yaml.Unmarshal([]byte(text), &changes); err != nil {
		return nil, fmt.Errorf("it is not YAML: %w", err)
	}
	if kind := changes["kind"]; kind != nil && kind != "KubeProxyConfiguration" {
		return nil, fmt.Errorf("kind is %v, not KubeProxyConfiguration", kind)
	}
	delete(changes, "kind")
	delete(changes, "apiVersion")
	if len(changes) == 0 {
		return nil, errors.New("it changes nothing: write fields of a KubeProxyConfiguration, such as nodePortAddresses: [primary]")
	}
	for _, name := range slices.Sorted(maps.Keys(changes)) {
		if flag, decided := placed[name]; decided {
			if flag != "" {
				return nil, fmt.Errorf("%s is what %s says: leave it out", name, flag)
			}
			return nil, fmt.Errorf("%s is what the nodes of the run decide: leave it out", name)
		}
	}
	return changes, nil
}

// healthz are the forms in which a configuration has the default address of the health of the proxy.
var healthz = map[string]bool{"": true, "0.0.0.0:10256": true, "[::]:10256": true, ":10256": true}

// Declarations are those of kube-proxy in a mode (KubeProxyDeclarations), but for what the configuration changes and leaves unknown.
func (p *KubeProxyConfiguration) Declarations(mode string) map[spec.Declarable]string {
	d := maps.Clone(KubeProxyDeclarations(mode))
	if !healthz[p.HealthzBindAddress] {
		delete(d, spec.ProxyHealth)
	}
	switch local := p.IPTables.LocalhostNodePorts; {
	case mode == IPTables && (local != nil && !*local || !p.onLoopback()):
		d[spec.NodePortLoopback] = "not-served"
	case mode != IPTables && len(p.NodePortAddresses) > 0:
		delete(d, spec.NodePortLoopback)
	}
	return d
}

// onLoopback reports whether loopback addresses are among those with node ports, as mode iptables has it (pkg/proxy/iptables/proxier.go (v1.37.1) lines 223-227).
func (p *KubeProxyConfiguration) onLoopback() bool {
	return len(p.NodePortAddresses) == 0 || slices.ContainsFunc(p.NodePortAddresses, func(text string) bool {
		prefix, err := netip.ParsePrefix(text) // else it is the word "primary"
		return err == nil && prefix.Addr().Is4() && (prefix.Bits() == 0 || prefix.Addr().IsLoopback())
	})
}
