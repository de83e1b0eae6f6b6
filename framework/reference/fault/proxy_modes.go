package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of modes and configuration.
var (
	ModeIgnored = New("mode-ignored", "The proxy runs in iptables mode whatever it is told.",
		spec.ProxyModeConfigured, spec.ProxyNftablesUnusedPortRejected, spec.ProxyNftablesUnallocatedAddressDropped, spec.ProxyNftablesNodePortsPrimary, spec.ProxyIPVSBalances, spec.ProxyIPVSSchedulerRr)
	ConfigurationLost = New("configuration-lost", "Most of the configuration file is ignored.",
		spec.ProxyNodePortAddresses, spec.ProxyExternalIPsGate, spec.ProxySyncConfigurable, spec.ProxySyncPeriodInterference)
	FlagsWin = New("flags-win", "Flags win over the configuration file.",
		spec.ProxyConfigFileWins)
	ConfigurationReloaded = New("configuration-reloaded", "A changed configuration file takes effect at once.",
		spec.ProxyConfigNotReloaded)
	StopFlushes = New("stopped-proxy-flushes", "A proxy that ends takes its rules along.",
		spec.ProxyRestartKeepsTraffic)
	RestartFlushes = New("restarted-proxy-flushes", "A proxy that starts flushes what was there and forgets to sync.",
		spec.ProxyRestartKeepsTraffic)
	HealthzAlwaysFails = New("healthz-always-fails", "The health of the proxy is never good.",
		spec.ProxyHealthz, spec.ProxyNodeDrainHealth)
	OverdueHealthy = New("overdue-healthy", "healthz stays good however long a change cannot be programmed.",
		spec.ProxyHealthz)
	LivezFollowsNode = New("livez-follows-node", "livez fails when the node is about to be removed.",
		spec.ProxyHealthz)
	NodePortAddressesIgnored = New("node-port-addresses-ignored", "Node ports are served on all addresses whatever the configuration says.",
		spec.ProxyNodePortAddresses, spec.ProxyNftablesNodePortsPrimary)
	ExternalIPsGateIgnored = New("external-ips-gate-ignored", "External IPs are served with the feature gate off.",
		spec.ProxyExternalIPsGate)
	NFTablesUnusedSilent = New("nftables-unused-port-silent", "In nftables mode an unused port of a virtual IP is silent.",
		spec.ProxyNftablesUnusedPortRejected)
	NFTablesUnallocatedRefused = New("nftables-unallocated-address-refused", "In nftables mode an address that no Service has refuses connections.",
		spec.ProxyNftablesUnallocatedAddressDropped)
	NFTablesRangeNotAdded = New("nftables-range-not-added", "In nftables mode addresses of a range that a ServiceCIDR adds are not dropped.",
		spec.ProxyNftablesUnallocatedRangeAdded)
	NFTablesAllAddresses = New("nftables-node-ports-everywhere", "In nftables mode node ports are served on all addresses.",
		spec.ProxyNftablesNodePortsPrimary)
	NFTablesLoopback = New("nftables-node-ports-on-loopback", "In nftables mode node ports are served on loopback addresses.",
		spec.ProxyNftablesNodePortsPrimary)
	NodePortLoopbackNotServed = New("node-port-loopback-not-served", "In iptables mode node ports are not served on loopback addresses, which is declared otherwise.",
		spec.ProxyNodePortLoopbackDeclared)
	RetriesDead = New("dead-endpoint-retried", "A connection to a pod that does not respond is retried on another one.",
		spec.ProxyIptablesNoRetry)
)
