package allocation

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("bands", func() {
	var others []string // ranges of which no numbers are stated
	for _, cidr := range check.ServiceCIDRMatrix(check.Fill) {
		if statedOf(cidr) == nil {
			others = append(others, cidr)
			continue
		}
		declareStatedFill(cidr, check.Timeout(fillTimeout))
	}
	check.It(spec.AllocUpperBandFirst, "hands out the whole upper band, then the whole lower one, then nothing", check.Exclusive(), decidedByFill, decidedByAny,
		check.Also(spec.AllocDynamicSkipsStatic), check.OnEachServiceCIDR(others...), check.Timeout(fillTimeout),
		func(ctx context.Context, cp *check.ControlPlane) {
			if statedOf(cp.CIDR().String()) != nil { // --service-cidr has put it in the place of the others
				check.DoesNotBind("numbers are stated of %s, and the check of these fills it", cp.CIDR())
			}
			f := fillRange(ctx, cp)
			f.followBands()
			check.Deciding(func() { f.beCompleteIn(check.Upper) }, spec.AllocDynamicSkipsStatic)
			f.beRefused()
		})
	for _, cidr := range check.ServiceCIDRMatrix(check.FillSlow) {
		declareStatedFill(cidr, check.Slow(), check.Timeout(slowFillTimeout))
	}

	check.It(spec.AllocBandOffsetMaximum, "hands out IPv6 addresses right above the 256th, and none below", check.Exclusive(), check.OnServiceCIDR("fd00:10:96::/112"),
		func(ctx context.Context, cp *check.ControlPlane) {
			beAboveStaticBand(ctx, cp, netip.MustParseAddr("fd00:10:96::100"))
		})

	for _, large := range []struct {
		cidr string
		id   spec.ID
		band spec.ID // that dynamic addresses lie in the upper band
	}{
		{"10.96.0.0/12", spec.AllocRangeIPv4Large, spec.AllocUpperBandFirst}, {"fd00:10:96::/112", spec.AllocRangeIPv6112108, spec.AllocRangeIPv6112108},
		{"fd00:10:96::/108", spec.AllocRangeIPv6112108, spec.AllocRangeIPv6112108}, {"fd00:10:96::/64", spec.AllocRangeIPv664, spec.AllocRangeIPv664},
	} {
		also := []spec.ID{spec.AllocDynamicRandom, spec.AllocDynamicInRange}
		if large.band != large.id {
			also = append(also, large.band)
		}
		check.It(large.id, "gives the last address of "+large.cidr+" to who names it, and dynamic ones from the whole upper band", check.Exclusive(), check.OnServiceCIDR(large.cidr),
			check.Also(also...),
			func(ctx context.Context, cp *check.ControlPlane) {
				last := check.BandsOf(cp.CIDR()).Last
				check.Deciding(func() {
					a := cp.Create(ctx, check.Service("last", check.WithClusterIP(last.String())))
					Expect(a).To(check.BeAccepted())
					Expect(clusterIP(a)).To(Equal(last))
				}, large.id)
				spread := spec.AllocDynamicRandom
				if large.id == spec.AllocRangeIPv664 { // that they come from all over the range is what is said of a /64 itself
					spread = large.id
				}
				beRandom(ctx, cp, []spec.ID{large.band}, spread)
			})
	}
	check.It(spec.AllocDynamicRandom, "hands out addresses of large ranges in no order, from every quarter of the upper band and from no other", check.Exclusive(),
		check.Also(spec.AllocUpperBandFirst, spec.AllocDynamicInRange), check.OnEachServiceCIDR(check.ServiceCIDRMatrix(check.FillSlow)...),
		func(ctx context.Context, cp *check.ControlPlane) {
			beRandom(ctx, cp, []spec.ID{spec.AllocUpperBandFirst}, spec.AllocDynamicRandom)
		})
})

// beRandom demands that dynamic addresses lie in the range and come in no order, from every quarter of the upper band
// and from no other. band is the requirement that they lie in the upper band, and spread that they lie all over it.
func beRandom(ctx context.Context, cp *check.ControlPlane, band []spec.ID, spread ...spec.ID) {
	b := check.BandsOf(cp.CIDR())
	missed := math.Log(check.FalseAlarm/4) / math.Log(3./4) // of so many none is in one of the four quarters
	n := max(int(math.Ceil(missed)), check.OrderedBy())
	if b.DynamicCount().Cmp(big.NewInt(int64(4*n))) < 0 {
		check.LeaveUnjudged(check.ByAnotherRange+" of at least a /23", "the range %s is too small for a sample", cp.CIDR())
	}
	addrs := sample(ctx, cp, n)
	check.Deciding(func() {
		for _, addr := range addrs {
			Expect(cp.CIDR().Contains(addr)).To(BeTrue(), "the address %s lies in %s", addr, cp.CIDR())
		}
	}, spec.AllocDynamicInRange)
	check.Deciding(func() {
		for _, addr := range addrs {
			Expect(addr).To(check.BeInBand(check.Upper, cp.CIDR()))
		}
	}, band...)
	check.Deciding(func() {
		beSpread(cp.CIDR(), addrs)
		beInNoOrder(addrs)
	}, spread...)
}

// What every fill decides at once, each with a message of its own: of a range that has bands, and of any.
var (
	decidedByFill = check.Also(spec.AllocLowerBandAfterUpper, spec.AllocBandOffsetFormula)
	decidedByAny  = check.Also(
		spec.AllocDynamicNotNetworkOrBroadcast, spec.AllocDynamicInRange, spec.AllocDynamicFree, spec.AllocUnique, spec.AllocExhaustedRefused)
)

// declareUndividedFill declares the check that fills a range which is too small for bands: it tells nothing of these.
func declareUndividedFill(stated *stated, options ...check.Option) {
	ginkgo.GinkgoHelper()
	args := []any{check.Exclusive(), decidedByAny, check.OnServiceCIDR(stated.cidr)}
	for _, o := range options {
		args = append(args, o)
	}
	check.It(stated.sizes[0], "is how many addresses dynamic allocation hands out of "+stated.cidr+", and then none",
		append(args, func(ctx context.Context, cp *check.ControlPlane) {
			f := fillRange(ctx, cp)
			f.beSound()
			check.Deciding(func() { f.beComplete(); f.haveSize(stated.numbers) }, stated.sizes...)
			f.beRefused()
		})...)
}

// declareStatedFill declares the check that fills a range of which numbers are stated.
func declareStatedFill(cidr string, options ...check.Option) {
	ginkgo.GinkgoHelper()
	stated := statedOf(cidr)
	if stated == nil {
		panic("no numbers are stated of " + cidr + ", which the matrix fills slowly")
	}
	if stated.offset == 0 {
		declareUndividedFill(stated, options...)
		return
	}
	sizes := stated.sizes
	if len(sizes) == 0 { // nothing is said of the size itself
		sizes = []spec.ID{spec.AllocDynamicSkipsStatic}
	}
	decides := slices.Concat(sizes, stated.ends, stated.bands)
	slices.Sort(decides)
	args := []any{check.Exclusive(), decidedByFill, decidedByAny, check.Also(slices.Compact(decides)...), check.OnServiceCIDR(cidr)}
	for _, o := range options {
		args = append(args, o)
	}
	check.It(spec.AllocUpperBandFirst, "hands out the upper band, then the lower one, then nothing, in the numbers that are stated of "+cidr,
		append(args, func(ctx context.Context, cp *check.ControlPlane) {
			f := fillRange(ctx, cp)
			f.followBands(stated.bands...)
			check.Deciding(func() { f.beCompleteIn(check.Upper); f.haveSize(stated.numbers) }, sizes...)
			if len(stated.ends) > 0 {
				check.Deciding(func() { f.haveEnd(stated.numbers) }, stated.ends...)
			}
			if len(stated.bands) > 0 {
				check.Deciding(func() { f.haveBands(stated.numbers) }, stated.bands...)
			}
			f.beRefused()
		})...)
}

// followBands demands of a full range what the division into bands means for dynamic allocation. places are the requirements
// that state where the bands lie and how large they are.
func (f *fill) followBands(places ...spec.ID) {
	ginkgo.GinkgoHelper()
	f.beSound()
	if places := append(slices.Clone(places), spec.AllocBandOffsetFormula); f.isDivided() { // in the right order, so what may be wrong is the place
		check.Deciding(func() { f.beUpperFirst(); f.beLowerAfterUpper() }, places...)
		check.Deciding(func() {}, spec.AllocUpperBandFirst, spec.AllocLowerBandAfterUpper) // are met where the place is right
	} else {
		check.Deciding(f.beUpperFirst, spec.AllocUpperBandFirst)
		check.Deciding(f.beLowerAfterUpper, spec.AllocLowerBandAfterUpper)
		check.Deciding(func() {}, places...)
	}
	check.Deciding(func() { f.beCompleteIn(check.Lower) }, spec.AllocLowerBandAfterUpper)
}

// beSound demands that every address that was handed out is a usable one of the range, was free, and was given to one Service.
func (f *fill) beSound() {
	ginkgo.GinkgoHelper()
	check.Deciding(f.beInRange, spec.AllocDynamicInRange)
	check.Deciding(f.beUsable, spec.AllocDynamicNotNetworkOrBroadcast)
	check.Deciding(f.beFree, spec.AllocDynamicFree)
	check.Deciding(f.beDistinct, spec.AllocUnique)
}

// beRefused demands that the create after the last address was refused.
func (f *fill) beRefused() {
	ginkgo.GinkgoHelper()
	check.Deciding(func() { Expect(f.refusal).To(check.BeExhausted()) }, spec.AllocExhaustedRefused)
}

// sample creates n Services one after the other and returns their addresses in that order.
func sample(ctx context.Context, cp *check.ControlPlane, n int) []netip.Addr {
	ginkgo.GinkgoHelper()
	addrs := make([]netip.Addr, n)
	for i := range addrs {
		a := cp.Create(ctx, check.Service(cp.Name("sample"), check.Unserved()))
		Expect(a).To(check.BeAccepted())
		addrs[i] = clusterIP(a)
	}
	check.RecordAddresses("sample", fmt.Sprintf("%d dynamic addresses, the first of them %v", n, addrs[:min(n, 8)]), cp.CIDR(), addrs, 0)
	return addrs
}

// beSpread demands that some addresses lie in each quarter of the upper band.
func beSpread(cidr netip.Prefix, addrs []netip.Addr) {
	ginkgo.GinkgoHelper()
	b := check.BandsOf(cidr)
	quarter := new(big.Int).Div(b.DynamicCount(), big.NewInt(4))
	for i := range int64(4) {
		from := check.AddressPlus(b.DynamicFirst, new(big.Int).Mul(quarter, big.NewInt(i)))
		to := check.AddressPlus(from, quarter)
		in := func(addr netip.Addr) bool { return !addr.Less(from) && (i == 3 || addr.Less(to)) }
		Expect(slices.ContainsFunc(addrs, in)).To(BeTrue(), "one of %d dynamic addresses lies in quarter %d of the upper band, from %s", len(addrs), i+1, from)
	}
}

// beInNoOrder demands that addresses are neither ascending nor descending.
func beInNoOrder(addrs []netip.Addr) {
	ginkgo.GinkgoHelper()
	descending := func(a, b netip.Addr) int { return b.Compare(a) }
	Expect(slices.IsSortedFunc(addrs, netip.Addr.Compare)).To(BeFalse(), "%d dynamic addresses were handed out in ascending order: %v", len(addrs), addrs)
	Expect(slices.IsSortedFunc(addrs, descending)).To(BeFalse(), "%d dynamic addresses were handed out in descending order: %v", len(addrs), addrs)
}
