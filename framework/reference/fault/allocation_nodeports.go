package fault

import "github.com/service-conformance/conformance/framework/spec"

// How node ports are handed out and given back.
var (
	PortRangeOnePool        = New("node-port-one-pool", "the node-port range is not divided", spec.AllocNodePortBandOffset, spec.AllocNodePortUpperBandFirst)
	PortRangeLowerBandFirst = New("node-port-lower-band-first", "dynamic allocation of node ports uses the lower band before the upper one", spec.AllocNodePortUpperBandFirst)
	PortRangeLowerUnused    = New("node-port-lower-band-unused", "no node port is said to be free when the upper band is exhausted", spec.AllocNodePortLowerBandAfterUpper)
	PortRangeAscending      = New("node-port-ascending", "dynamic allocation picks the first free node port of a band", spec.AllocNodePortRandom)
	PortRangeRepeated       = New("node-port-given-twice", "every eighth dynamic node port is the one before it", spec.AllocNodePortConcurrentDynamic)
	PortRangeOnlyUpperBand  = New("node-port-static-only-upper-band", "node ports of the lower band cannot be named", spec.AllocNodePortStaticAnyBand, spec.APINodePortChosen)
	PortRangeExhaustedGives = New("node-port-exhausted-gives-taken", "an exhausted node-port range hands out ports in use", spec.AllocNodePortExhaustedRefused)
	PortRangeForEveryone    = New("node-port-for-everyone", "every Service takes a node port, shown or not", spec.AllocNodePortExhaustedOthersUnaffected)
	PortRangeRefusedKeeps   = New("refused-create-keeps-node-ports", "a create that is refused keeps its node ports", spec.AllocNodePortRefusedCreateLeaksNothing, spec.APINodePortRefusedWhole)
	PortRangeDeleteKeeps    = New("delete-keeps-node-ports", "the node ports of a deleted Service stay in use", spec.AllocNodePortDeleteReleases, spec.AllocNodePortExhaustedRefused)
	PortRangeDuplicate      = New("node-port-duplicate-accepted", "a node port in use can be named again", spec.AllocNodePortConcurrentStatic, spec.APINodePortInUse)
)
