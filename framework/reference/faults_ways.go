package reference

import (
	"slices"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/proxy"
)

// What can be wrong with single ways from a client to an endpoint: all others are open.
var wayFaults = []wrong{
	{fault.HostBackendOutside, closed(func(w *way) bool { return w.byOutside() && w.to.HostNetwork })},
	{fault.HostBackendOwnPods, closed(func(w *way) bool { return w.byPod() && w.home() && w.to.HostNetwork && w.kind == proxy.ClusterIP })},
	{fault.HostOwnNodePort, closed(func(w *way) bool {
		return w.byHost() && w.home() && w.kind == proxy.NodePort && w.entry == w.from.entry
	})},
	{fault.HostFarNodePort, closed(func(w *way) bool { return w.byHost() && !w.home() && w.kind == proxy.NodePort && w.entry == w.to.host })},
	{fault.PodNodePortBack, closed(func(w *way) bool { return w.byPod() && w.home() && w.kind == proxy.NodePort && w.entry != w.from.entry })},
	{fault.HostOwnClusterIP, closed(func(w *way) bool { return w.byHost() && w.home() && w.kind == proxy.ClusterIP })},
	{fault.OutsideFarBackend, closed(func(w *way) bool { return w.byOutside() && w.outward() && w.to.host != w.entry })},
	{fault.OutsideFarNodePort, closed(func(w *way) bool { return w.byOutside() && w.kind == proxy.NodePort && w.to.host != w.entry })},
	{fault.LocalHostBalancer, closed(func(w *way) bool { return w.local && w.byHost() && w.home() && w.kind == proxy.LoadBalancer })},
	{fault.LocalPodExternalIP, closed(func(w *way) bool { return w.local && w.byPod() && w.kind == proxy.ExternalIP })},
	{fault.LocalHostFar, closed(func(w *way) bool { return w.local && w.byHost() && !w.home() && w.outward() })},
	{fault.LoopbackFarBackend, closed(func(w *way) bool { return w.at.IsLoopback() && w.to.host != w.entry })},
	{fault.NodeExternalIPOwnBackend, closed(func(w *way) bool {
		return w.byOutside() && w.kind == proxy.ExternalIP && w.to.host == w.entry && slices.Contains(w.entry.Addresses, w.at)
	})},
	{fault.PodFarBalancer, closed(func(w *way) bool {
		return w.byPod() && w.kind == proxy.LoadBalancer && !w.local && w.to.host != w.from.entry
	})},
	{fault.FarExternalIP, closed(func(w *way) bool { return w.kind == proxy.ExternalIP && !w.local && w.to.host != w.entry })},
	{fault.HostOwnNodePorts, closed(func(w *way) bool { return w.byHost() && w.kind == proxy.NodePort && w.entry == w.from.entry })},
	{fault.HostHairpin, closed(func(w *way) bool { return w.byHost() && w.home() && w.to.HostNetwork })},
	{fault.OutsideBackendBalancer, closed(func(w *way) bool { return w.to.Outside && w.kind == proxy.LoadBalancer })},
	{fault.OutsideBackendNodePort, closed(func(w *way) bool { return w.to.Outside && w.byOutside() && w.kind == proxy.NodePort })},
	{fault.PodNodePortAround, closed(func(w *way) bool {
		return w.byPod() && w.kind == proxy.NodePort && w.entry != w.from.entry && w.to.host != w.entry && w.to.host != w.from.entry
	})},
	{fault.LocalPodNodePort, closed(func(w *way) bool { return w.local && w.byPod() && w.kind == proxy.NodePort && w.entry != w.from.entry })},
}

// closed is a fault: some ways are closed.
func closed(some func(*way) bool) func(*book) {
	return func(b *book) { b.wayOpen.Replace(func(w *way) bool { return !some(w) }) }
}
