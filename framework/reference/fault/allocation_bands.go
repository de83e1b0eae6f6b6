package fault

import "github.com/service-conformance/conformance/framework/spec"

// The division of a Service range into bands, and which address dynamic allocation picks.
var (
	BandOffsetOneLess = New("band-offset-one-less", "the static band is counted from the network address and ends one address early",
		spec.AllocBandOffsetFormula, spec.AllocUpperBandFirst, spec.AllocExample24Offset, spec.AllocExample24StaticEnd, spec.AllocExample24StaticCount,
		spec.AllocExample24DynamicCount, spec.AllocRangeIPv427, spec.AllocRangeIPv6123)
	BandOffsetFromUsable = New("band-offset-from-usable", "the formula is given the number of usable addresses instead of the size of the CIDR",
		spec.AllocBandOffsetCIDRSize, spec.AllocBandOffsetSteps, spec.AllocBandOffsetFormula, spec.AllocUpperBandFirst,
		spec.AllocExample20Offset, spec.AllocExample20StaticCount, spec.AllocExample20DynamicCount)
	BandOffsetNoMinimum = New("band-offset-no-minimum", "the static band is a 16th of the range however small that is",
		spec.AllocBandOffsetMinimum, spec.AllocBandOffsetFormula, spec.AllocRangeIPv427, spec.AllocRangeIPv6123)
	BandOffsetNoMaximum = New("band-offset-no-maximum", "the static band is a 16th of the range however large that is",
		spec.AllocBandOffsetMaximum, spec.AllocExample16Offset, spec.AllocExample16StaticCount, spec.AllocExample16DynamicCount, spec.AllocExample16StaticEnd,
		spec.AllocExample16Size)
	BandOffset255 = New("band-offset-255", "the static band has at most 255 addresses",
		spec.AllocBandOffsetFormula, spec.AllocExample20Offset, spec.AllocExample20StaticEnd, spec.AllocExample20StaticCount, spec.AllocExample20DynamicCount,
		spec.AllocUpperBandFirst)
	BandOffsetCoarse = New("band-offset-coarse", "the static band has 16, 64 or 256 addresses",
		spec.AllocBandOffsetSteps, spec.AllocBandOffsetCIDRSize, spec.AllocBandOffsetFormula, spec.AllocUpperBandFirst)
	OnePool = New("one-pool", "the range is not divided",
		spec.AllocUpperBandFirst, spec.AllocBandOffsetFormula, spec.AllocExample20Offset, spec.AllocExample20StaticCount, spec.AllocExample20DynamicCount,
		spec.AllocRangeIPv427, spec.AllocRangeIPv6123, spec.AllocLowerBandAfterUpper)
	LowerBandFirst = New("lower-band-first", "dynamic allocation uses the lower band before the upper one",
		spec.AllocUpperBandFirst, spec.AllocUpperBandAgain, spec.AllocDNSAddressDynamic, spec.AllocDNSAddressNotReserved, spec.AllocDualStackEachFamily, spec.AllocLowerBandAfterUpper)
	LowerBandUnused = New("lower-band-unused", "dynamic allocation says that the range is full when the upper band is",
		spec.AllocLowerBandAfterUpper, spec.AllocDNSAddressDynamic, spec.AllocExample24Size)
	LowerBandKept = New("lower-band-kept", "dynamic allocation stays in the lower band once it has begun with it", spec.AllocUpperBandAgain)

	DynamicAscending    = New("dynamic-ascending", "dynamic allocation picks the first free address of a band", spec.AllocDynamicRandom, spec.APIClusterIPRandom, spec.AllocRangeIPv664)
	DynamicRepeated     = New("dynamic-repeated", "every eighth dynamic address is the one before it", spec.AllocConcurrentDynamic, spec.AllocDynamicFree, spec.AllocUnique)
	DynamicIgnoresTaken = New("dynamic-ignores-taken", "dynamic allocation picks any address of the upper band, free or not",
		spec.AllocDynamicFree, spec.AllocDynamicSkipsStatic, spec.AllocUnique)
	DynamicStopsAtTaken = New("dynamic-stops-at-taken", "dynamic allocation fails when the first address that it picks is taken",
		spec.AllocDynamicSkipsStatic, spec.AllocLowerBandAfterUpper)
	DynamicOutOfRange = New("dynamic-out-of-range", "dynamic addresses come from the range after the configured one", spec.AllocDynamicInRange)

	ExhaustedGivesTaken = New("exhausted-gives-taken", "an exhausted range hands out addresses in use",
		spec.AllocExhaustedRefused, spec.AllocConcurrentLastAddress, spec.AllocExhaustedOthersUnaffected, spec.AllocUnique, spec.AllocDynamicFree, spec.AllocDynamicSkipsStatic)
	ExhaustedForever = New("exhausted-forever", "a range that was exhausted once stays exhausted", spec.AllocExhaustedRefused)
)
