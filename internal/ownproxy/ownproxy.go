// Package ownproxy is what a check does with the kube-proxy of a node of its own, whichever tier made the node: its configuration, and what somebody else does behind
// its back.
package ownproxy

import "github.com/service-conformance/conformance/framework/candidate"

// Default leaves a period to kube-proxy.
const Default = "default"

// Configure changes a KubeProxyConfiguration as a check asks. The mode and the minSyncPeriod are those of the tier, for a check that names none; an empty period leaves
// what the configuration has.
func Configure(config map[string]any, mode, minSyncPeriod string, p candidate.ProxyConfiguration) {
	if p.Mode != "" {
		mode = p.Mode
	}
	config["mode"] = mode
	if len(p.NodePortAddresses) > 0 {
		config["nodePortAddresses"] = p.NodePortAddresses
	}
	if len(p.FeatureGates) > 0 {
		config["featureGates"] = p.FeatureGates
	}
	section, has := config[mode].(map[string]any)
	if !has {
		section = map[string]any{}
		config[mode] = section
	}
	set := func(name, asked, otherwise string) {
		switch {
		case asked == Default:
			delete(section, name)
		case asked != "":
			section[name] = asked
		case otherwise != "":
			section[name] = otherwise
		}
	}
	set("minSyncPeriod", p.MinSyncPeriod, minSyncPeriod)
	set("syncPeriod", p.SyncPeriod, "")
	set("scheduler", p.Scheduler, "")
}
