package fault

import "github.com/service-conformance/conformance/framework/spec"

// The usable addresses of a range, and which of them can be named.
var (
	LastAddressUnused = New("last-address-unused", "the last usable address of a range is not used",
		spec.AllocStaticExact, spec.AllocExample24Size, spec.AllocExample24RangeEnd, spec.AllocExample20Size, spec.AllocExample20RangeEnd,
		spec.AllocExample16Size, spec.AllocExample16RangeEnd, spec.AllocRangeIPv428, spec.AllocRangeIPv429, spec.AllocRangeIPv430,
		spec.AllocRangeIPv6112108, spec.AllocRangeIPv664, spec.AllocRangeIPv6123)
	BroadcastUsable = New("broadcast-usable", "the broadcast address of an IPv4 range is used",
		spec.AllocDynamicNotNetworkOrBroadcast, spec.AllocStaticNetworkOrBroadcast, spec.AllocExample24RangeEnd, spec.AllocExample20RangeEnd,
		spec.AllocExample16RangeEnd, spec.AllocRangeIPv430)
	NetworkUsable = New("network-usable", "the network address of a range is used",
		spec.AllocDynamicNotNetworkOrBroadcast, spec.AllocStaticNetworkOrBroadcast, spec.AllocExample24StaticStart, spec.AllocExample20StaticStart,
		spec.AllocExample16StaticStart)
	TinyRangeUsable      = New("tiny-range-usable", "ranges of one or two addresses have usable ones", spec.AllocRangeIPv43132)
	IPv6LastReserved     = New("ipv6-last-reserved", "the last address of an IPv6 range is treated as a broadcast address", spec.AllocRangeIPv6124, spec.AllocRangeIPv6123)
	RangeLimited         = New("range-limited", "only the first 65536 addresses of a range are used", spec.AllocRangeIPv6112108, spec.AllocRangeIPv664, spec.AllocRangeIPv4Large)
	KubernetesNotOnFirst = New("kubernetes-not-on-first", `the Service "kubernetes" has the second address of the range`,
		spec.AllocFirstAddressKubernetes, spec.AllocExample24StaticStart, spec.AllocExample20StaticStart, spec.AllocExample16StaticStart)

	StaticOnlyLowerBand = New("static-only-lower-band", "only addresses of the lower band can be named",
		spec.AllocStaticExact, spec.AllocStaticUpperBand, spec.AllocWellKnownStays, spec.AllocExample24RangeEnd, spec.AllocExample20RangeEnd, spec.AllocExample16RangeEnd)
	StaticOnlyUpperBand = New("static-only-upper-band", "addresses of the lower band cannot be named",
		spec.AllocStaticWholeLowerBand, spec.AllocStaticExact, spec.AllocExample24StaticEnd, spec.AllocExample20StaticEnd, spec.AllocExample16StaticEnd, spec.AllocDNSManifest, spec.APIClusterIPChosen)
	TenthAddressReserved = New("tenth-address-reserved", "the tenth address of a range is kept for the DNS Service and given to nobody",
		spec.AllocDNSAddressNotReserved, spec.AllocDNSManifest, spec.AllocDNSAddressDynamic, spec.AllocStaticWholeLowerBand, spec.AllocLowerBandAfterUpper, spec.AllocRangeIPv6123)
	StaticOutOfRange = New("static-out-of-range", "addresses outside the range can be named",
		spec.AllocStaticOutOfRange, spec.AllocStaticNetworkOrBroadcast, spec.AllocRangeIPv43132)
)
