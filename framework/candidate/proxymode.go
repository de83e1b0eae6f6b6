package candidate

import (
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/spec"
)

// The modes of kube-proxy on Linux, by the names that its configuration gives them (field mode of KubeProxyConfiguration).
const (
	IPTables = "iptables"
	NFTables = "nftables"
	IPVS     = "ipvs"
	// DefaultProxyMode is the one that kube-proxy takes if its configuration names none.
	DefaultProxyMode = IPTables
)

// ProxyModes are all modes, the default first.
var ProxyModes = []string{IPTables, NFTables, IPVS}

// CheckProxyMode returns an error that tells the modes if this is none. Empty stands for DefaultProxyMode.
func CheckProxyMode(mode string) error {
	if mode == "" || slices.Contains(ProxyModes, mode) {
		return nil
	}
	last := len(ProxyModes) - 1
	return fmt.Errorf("unknown proxy mode %q; there are %s and %s", mode, strings.Join(ProxyModes[:last], ", "), ProxyModes[last])
}

// ProxyModeCapability is what a data plane can be asked for that runs kube-proxy in a mode; empty for an unknown mode.
func ProxyModeCapability(mode string) spec.Capability {
	return map[string]spec.Capability{IPTables: spec.IPTablesMode, NFTables: spec.NFTablesMode, IPVS: spec.IPVS}[mode]
}
