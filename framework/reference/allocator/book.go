package allocator

import (
	"net/netip"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// The kinds of rules.
type (
	// A dividing rule returns the size of the lower band of a range of size numbers, of which some are usable.
	dividing = func(size, usable uint64) (offset uint64)
	// An admitting rule reports whether a client can choose a number.
	admitting = func(b *bands, n uint64) bool
	// A giving rule takes a number that nobody chose. It returns false if the range is full.
	giving = func(b *bands) (n uint64, ok bool)
	// A banding rule returns the band that the next number comes from; nil if the range is full.
	banding = func(b *bands) *pool
	// A drawing rule takes a free number of a band that has one. It returns its place in the band.
	drawing = func(b *bands, p *pool) (place uint64)
)

// bandRules are the rules of a range in two bands.
type bandRules struct {
	pure   rule.Pure
	offset rule.Rule[dividing]
	admits rule.Rule[admitting]
	gives  rule.Rule[giving]
	next   rule.Rule[banding]
	draw   rule.Rule[drawing]
}

// addressBook is the rules of a Service range. It is read only once it is in use.
type addressBook struct {
	bandRules
	usable  rule.Rule[func(prefix netip.Prefix, size uint64) (first netip.Addr, n uint64)]
	atStart rule.Rule[func(b *bands)]
	inRange rule.Rule[func(a *addresses, n uint64) netip.Addr]
}

// portBook is the rules of a node-port range. It is read only once it is in use.
type portBook struct{ bandRules }

func newAddressBook() *addressBook {
	return &addressBook{
		bandRules: bandRules{pure: pureKinds, offset: addressOffset, admits: addressAdmitted, gives: addressGiven, next: addressUpperBandFirst, draw: addressRandom},
		usable:    usableAddresses,
		atStart:   allFreeAtStart,
		inRange:   addressInRange,
	}
}

func newPortBook() *portBook {
	return &portBook{bandRules{pure: pureKinds, offset: portOffset, admits: portAdmitted, gives: portGiven, next: portUpperBandFirst, draw: portRandom}}
}

// Book returns the rules of both allocators with the requirements that they follow, sorted by name.
func Book() []rule.Entry {
	return rule.Entries(struct {
		addressBook
		portBook
	}{*newAddressBook(), *newPortBook()})
}

// Rules for Service ranges (document "Service ClusterIP allocation" and KEP-3070).
var (
	usableAddresses = rule.New("allocator-usable-addresses", func(prefix netip.Prefix, size uint64) (first netip.Addr, n uint64) {
		return prefix.Addr().Next(), usable(prefix, size)
	}, spec.AllocDynamicNotNetworkOrBroadcast, spec.AllocStaticNetworkOrBroadcast, spec.AllocRangeIPv43132, spec.AllocRangeIPv6124)

	// No address is reserved, that of the DNS Service neither.
	allFreeAtStart = rule.New("allocator-all-free-at-start", func(*bands) {}, spec.AllocDNSAddressNotReserved)

	addressInRange = rule.New("allocator-dynamic-in-range", (*addresses).address, spec.AllocDynamicInRange)

	// The size counts the network address and the broadcast address, too.
	addressOffset = rule.New("allocator-band-offset", func(size, _ uint64) uint64 {
		return bandOffset(size, 16, 16, 256)
	}, spec.AllocBandOffsetFormula, spec.AllocBandOffsetMinimum, spec.AllocBandOffsetMaximum, spec.AllocBandOffsetSteps, spec.AllocBandOffsetCIDRSize)

	// A user may choose any address of the range.
	addressAdmitted = rule.New("allocator-static-any-band", anyNumber, spec.AllocStaticWholeLowerBand, spec.AllocStaticUpperBand)

	addressGiven = rule.New("allocator-dynamic-free", freeNumber, spec.AllocDynamicFree, spec.AllocDynamicSkipsStatic, spec.AllocExhaustedRefused)

	addressUpperBandFirst = rule.New("allocator-upper-band-first", upperBandFirst,
		spec.AllocUpperBandFirst, spec.AllocLowerBandAfterUpper, spec.AllocUpperBandAgain)

	addressRandom = rule.New("allocator-dynamic-random", randomNumber, spec.AllocDynamicRandom)
)

// Rules for node ports (KEP-3668).
var (
	portOffset = rule.New("allocator-node-port-band-offset", func(size, _ uint64) uint64 {
		return bandOffset(size, 16, 32, 128)
	}, spec.AllocNodePortBandOffset)

	portAdmitted = rule.New("allocator-node-port-static-any-band", anyNumber, spec.AllocNodePortStaticAnyBand)

	portGiven = rule.New("allocator-node-port-dynamic-free", freeNumber, spec.AllocNodePortConcurrentDynamic, spec.AllocNodePortExhaustedRefused)

	portUpperBandFirst = rule.New("allocator-node-port-upper-band-first", upperBandFirst,
		spec.AllocNodePortUpperBandFirst, spec.AllocNodePortLowerBandAfterUpper)

	portRandom = rule.New("allocator-node-port-random", randomNumber, spec.AllocNodePortRandom)
)
