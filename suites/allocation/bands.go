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
	for _, cidr := range check.Matrix(check.Fill) {
		if statedOf(cidr) == nil {
			others = append(others, cidr)
			continue
		}
		declareStatedFill(cidr, check.Timeout(fillTimeout))
	}
	check.It(spec.AllocUpperBandFirst, "hands out the whole upper band, then the whole lower one, then nothing", check.Exclusive(), decidedByFill,
		check.OnEachServiceCIDR(others...),
		func(ctx context.Context, cp *check.ControlPlane) { fillRange(ctx, cp).followBands() })
	for _, cidr := range check.Matrix(check.FillSlow) {
		declareStatedFill(cidr, check.Slow(), check.Timeout(slowFillTimeout))
	}

	check.It(spec.AllocBandOffsetMaximum, "hands out IPv6 addresses right above the 256th, and none below", check.Exclusive(), check.OnServiceCIDR("fd00:10:96::/112"),
		func(ctx context.Context, cp *check.ControlPlane) {
			beAboveStaticBand(ctx, cp, netip.MustParseAddr("fd00:10:96::100"))
		})

	for _, large := range []struct {
		cidr string
		id   spec.ID
	}{
		{"10.96.0.0/12", spec.AllocRangeIPv4Large}, {"fd00:10:96::/112", spec.AllocRangeIPv6112108}, {"fd00:10:96::/108", spec.AllocRangeIPv6112108},
		{"fd00:10:96::/64", spec.AllocRangeIPv664},
	} {
		check.It(large.id, "gives the last address of "+large.cidr+" to who names it, and dynamic ones from the whole upper band", check.Exclusive(), check.OnServiceCIDR(large.cidr),
			check.Also(spec.AllocDynamicRandom),
			func(ctx context.Context, cp *check.ControlPlane) {
				last := check.BandsOf(cp.CIDR()).Last
				check.Deciding(func() {
					a := cp.Create(ctx, check.Service("last", check.WithClusterIP(last.String())))
					Expect(a).To(check.BeAccepted())
					Expect(clusterIP(a)).To(Equal(last))
				}, large.id)
				// That they come from all over the range is what is said of a /64 itself.
				if large.id == spec.AllocRangeIPv664 {
					beRandom(ctx, cp, []spec.ID{large.id}, []spec.ID{large.id}, large.id)
				} else {
					beRandom(ctx, cp, []spec.ID{large.id}, []spec.ID{large.id}, spec.AllocDynamicRandom)
				}
			})
	}
	check.It(spec.AllocDynamicRandom, "hands out addresses of large ranges in no order, from every quarter of the upper band and from no other", check.Exclusive(),
		check.Also(spec.AllocUpperBandFirst, spec.AllocDynamicInRange), check.OnEachServiceCIDR(check.Matrix(check.FillSlow)...),
		func(ctx context.Context, cp *check.ControlPlane) {
			beRandom(ctx, cp, []spec.ID{spec.AllocDynamicInRange}, []spec.ID{spec.AllocUpperBandFirst}, spec.AllocDynamicRandom)
		})
})

// beRandom demands that dynamic addresses come in no order, from every quarter of the upper band and from no other. inside, band and
// spread are the requirements of the check that say that they lie in the range, in its upper band, and all over it.
func beRandom(ctx context.Context, cp *check.ControlPlane, inside, band []spec.ID, spread ...spec.ID) {
	b := check.BandsOf(cp.CIDR())
	missed := math.Log(check.FalseAlarm/4) / math.Log(3./4) // of so many none is in one of the four quarters
	n := max(int(math.Ceil(missed)), check.OrderedBy())
	if b.DynamicCount().Cmp(big.NewInt(int64(4*n))) < 0 {
		ginkgo.Skip("the range " + cp.CIDR().String() + " is too small for a sample")
	}
	addrs := sample(ctx, cp, n)
	check.Deciding(func() {
		for _, addr := range addrs {
			Expect(addr).To(check.BeInRange(cp.CIDR()))
		}
	}, inside...)
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

// decidedByFill are what every fill decides at once, each with a message of its own.
var decidedByFill = check.Also(
	spec.AllocLowerBandAfterUpper, spec.AllocBandOffsetFormula, spec.AllocDynamicNotNetworkOrBroadcast, spec.AllocDynamicInRange,
	spec.AllocDynamicFree, spec.AllocUnique, spec.AllocExhaustedRefused,
)

// declareStatedFill declares the check that fills a range of which numbers are stated.
func declareStatedFill(cidr string, options ...check.Option) {
	ginkgo.GinkgoHelper()
	stated := statedOf(cidr)
	if stated == nil {
		panic("no numbers are stated of " + cidr + ", which the matrix fills slowly")
	}
	args := []any{check.Exclusive(), decidedByFill, check.Also(stated.decides...), check.OnServiceCIDR(cidr)}
	for _, o := range options {
		args = append(args, o)
	}
	check.It(spec.AllocUpperBandFirst, "hands out the upper band, then the lower one, then nothing, in the numbers that are stated of "+cidr,
		append(args, func(ctx context.Context, cp *check.ControlPlane) {
			f := fillRange(ctx, cp)
			f.followBands(stated.decides...)
			check.Deciding(func() { f.haveNumbers(stated.numbers) }, stated.decides...)
		})...)
}

// followBands demands of a full range what the division into bands means for dynamic allocation. places are the requirements
// that state where the bands lie and how large they are.
func (f *fill) followBands(places ...spec.ID) {
	ginkgo.GinkgoHelper()
	check.Deciding(f.beUsable, spec.AllocDynamicInRange, spec.AllocDynamicNotNetworkOrBroadcast)
	check.Deciding(f.beFree, spec.AllocDynamicFree)
	check.Deciding(f.beDistinct, spec.AllocUnique)
	if places := append(slices.Clone(places), spec.AllocBandOffsetFormula); f.isDivided() { // in the right order, so what may be wrong is the place
		check.Deciding(func() { f.beUpperFirst(); f.beLowerAfterUpper() }, places...)
		check.Deciding(func() {}, spec.AllocUpperBandFirst, spec.AllocLowerBandAfterUpper) // are met where the place is right
	} else {
		check.Deciding(f.beUpperFirst, spec.AllocUpperBandFirst)
		check.Deciding(f.beLowerAfterUpper, spec.AllocLowerBandAfterUpper)
		check.Deciding(func() {}, places...)
	}
	if f.isUpperOnly() { // every number can be right but that of the lower band
		places = nil
	}
	check.Deciding(f.beComplete, append(places, spec.AllocLowerBandAfterUpper)...)
	check.Deciding(func() { Expect(f.refusal).To(check.BeExhausted()) }, spec.AllocExhaustedRefused)
}

// sample creates n Services one after the other and returns their addresses in that order.
func sample(ctx context.Context, cp *check.ControlPlane, n int) []netip.Addr {
	ginkgo.GinkgoHelper()
	addrs := make([]netip.Addr, n)
	for i := range addrs {
		a := cp.Create(ctx, check.Service(cp.Name("sample")))
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
		from := check.Add(b.DynamicFirst, new(big.Int).Mul(quarter, big.NewInt(i)))
		to := check.Add(from, quarter)
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
