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

// KubeProxyDeclarations say what kube-proxy in a mode does where the specification leaves room (pkg/proxy of Kubernetes v1.37.1), as it is without configuration.
func KubeProxyDeclarations(mode string) map[spec.Declarable]string {
	d := map[spec.Declarable]string{
		spec.AffinityScope:                 "port",
		spec.AffinityTimer:                 "refreshed",
		spec.AffinityTimeout:               "settable",
		spec.UDPFlows:                      "follow",
		spec.NodelessEndpoints:             "remote",
		spec.ProxyHealth:                   "port-10256",
		spec.NoEndpoints:                   "reject",
		spec.InternalLocalWithoutEndpoints: "drop",
		spec.ExternalLocalWithoutEndpoints: "drop",
		spec.UnusedPort:                    "network",
		spec.NodePortLoopback:              "served",
		spec.Hairpin:                       "every-address",
		spec.HostAccess:                    "served",
	}
	if mode == IPVS {
		// The virtual server stays where no endpoint is (pkg/proxy/ipvs/proxier.go lines 846-856). The kernel refuses
		// what it has no backend for (ip_vs_leave in net/netfilter/ipvs/ip_vs_core.c of Linux).
		d[spec.InternalLocalWithoutEndpoints] = "reject"
		d[spec.NodePortLoopback] = "not-served" // pkg/proxy/ipvs/netlink_linux.go line 162: loopback addresses are no node addresses
	}
	if mode == NFTables {
		d[spec.UnusedPort], d[spec.NodePortLoopback] = "reject", "not-served"
	}
	return d
}

// ProxyModeCapability is what a data plane can be asked for that runs kube-proxy in a mode; empty for an unknown mode.
func ProxyModeCapability(mode string) spec.Capability {
	return map[string]spec.Capability{IPTables: spec.IPTablesMode, NFTables: spec.NFTablesMode, IPVS: spec.IPVS}[mode]
}
