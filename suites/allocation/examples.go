package allocation

import (
	"context"
	"math/big"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// numbers are what a document states of a range. They are not computed: the checks compare them with what the control plane does.
type numbers struct {
	usable              int
	offset              int // 0: no bands
	staticEnd, rangeEnd string
	dynamic             int
}

// stated are the numbers of a range and the requirements that say so, which a fill decides. They are how many addresses
// it has, what the last one is, and where its bands lie and how large they are.
type stated struct {
	cidr string
	numbers
	sizes, ends, bands []spec.ID
}

// workedExample is one of the three examples of the allocation document.
type workedExample struct {
	stated
	staticStart string
	start       spec.ID   // the static band starts at staticStart, which is taken before a fill
	end         spec.ID   // the static band ends at staticEnd; empty where a few addresses do not decide it
	rangeEnds   []spec.ID // what naming the address at the end of the range, and the one after it, decides
}

var workedExamples = []workedExample{
	{
		stated: stated{"10.96.0.0/24", numbers{254, 16, "10.96.0.16", "10.96.0.254", 238}, []spec.ID{spec.AllocExample24Size}, []spec.ID{spec.AllocExample24RangeEnd}, []spec.ID{
			spec.AllocExample24Offset, spec.AllocExample24StaticEnd, spec.AllocExample24StaticCount, spec.AllocExample24DynamicCount,
		}},
		staticStart: "10.96.0.1", start: spec.AllocExample24StaticStart,
		end: spec.AllocExample24StaticEnd, rangeEnds: []spec.ID{spec.AllocExample24RangeEnd},
	},
	{
		stated: stated{"10.96.0.0/20", numbers{4094, 256, "10.96.1.0", "10.96.15.254", 3838}, []spec.ID{spec.AllocExample20Size}, []spec.ID{spec.AllocExample20RangeEnd}, []spec.ID{
			spec.AllocExample20Offset, spec.AllocExample20StaticEnd, spec.AllocExample20StaticCount, spec.AllocExample20DynamicCount,
		}},
		staticStart: "10.96.0.1", start: spec.AllocExample20StaticStart,
		end: spec.AllocExample20StaticEnd, rangeEnds: []spec.ID{spec.AllocExample20RangeEnd, spec.AllocExample20Size},
	},
	{
		stated: stated{"10.96.0.0/16", numbers{65534, 256, "10.96.1.0", "10.96.255.254", 65278}, []spec.ID{spec.AllocExample16Size}, []spec.ID{spec.AllocExample16RangeEnd}, []spec.ID{
			spec.AllocExample16Offset, spec.AllocExample16StaticEnd, spec.AllocExample16StaticCount, spec.AllocExample16DynamicCount, spec.AllocBandOffsetMaximum,
		}},
		staticStart: "10.96.0.1", start: spec.AllocExample16StaticStart,
		rangeEnds: []spec.ID{spec.AllocExample16RangeEnd},
	},
}

// derived are further ranges, with the numbers that follow from the formula.
var derived = []stated{
	{"10.96.0.0/30", numbers{usable: 2, rangeEnd: "10.96.0.2", dynamic: 2}, []spec.ID{spec.AllocRangeIPv430}, nil, nil},
	{"10.96.0.0/29", numbers{usable: 6, rangeEnd: "10.96.0.6", dynamic: 6}, []spec.ID{spec.AllocRangeIPv429}, nil, nil},
	{"10.96.0.0/28", numbers{usable: 14, rangeEnd: "10.96.0.14", dynamic: 14}, []spec.ID{spec.AllocRangeIPv428}, nil, nil},
	{"10.96.0.0/27", numbers{30, 16, "10.96.0.16", "10.96.0.30", 14}, []spec.ID{spec.AllocRangeIPv427}, nil, []spec.ID{spec.AllocBandOffsetMinimum, spec.AllocRangeIPv427}},
	{"10.96.0.0/23", numbers{510, 32, "10.96.0.32", "10.96.1.254", 478}, nil, nil, []spec.ID{spec.AllocBandOffsetSteps, spec.AllocBandOffsetCIDRSize}},
	{"10.96.0.0/22", numbers{1022, 64, "10.96.0.64", "10.96.3.254", 958}, nil, nil, []spec.ID{spec.AllocBandOffsetSteps, spec.AllocBandOffsetCIDRSize}},
	{"10.96.0.0/21", numbers{2046, 128, "10.96.0.128", "10.96.7.254", 1918}, nil, nil, []spec.ID{spec.AllocBandOffsetSteps, spec.AllocBandOffsetCIDRSize}},
	{"fd00:10:96::/124", numbers{usable: 15, rangeEnd: "fd00:10:96::f", dynamic: 15}, []spec.ID{spec.AllocRangeIPv6124}, nil, nil},
	{"fd00:10:96::/123", numbers{31, 16, "fd00:10:96::10", "fd00:10:96::1f", 15}, []spec.ID{spec.AllocRangeIPv6123}, nil, []spec.ID{spec.AllocBandOffsetMinimum, spec.AllocRangeIPv6123}},
}

// statedOf returns what is stated of a range, nil if nothing is.
func statedOf(cidr string) *stated {
	for i := range workedExamples {
		if workedExamples[i].cidr == cidr {
			return &workedExamples[i].stated
		}
	}
	if i := slices.IndexFunc(derived, func(s stated) bool { return s.cidr == cidr }); i >= 0 {
		return &derived[i]
	}
	return nil
}

// fillTimeout is enough for 4094 creates at 5 per second: a server that is slow, and goes on, is none that hangs.
const fillTimeout = 15 * time.Minute

// slowFillTimeout is enough for 65534 creates at 36 per second.
const slowFillTimeout = 30 * time.Minute

var _ = ginkgo.Describe("worked examples", func() {
	for i := range workedExamples {
		e := &workedExamples[i]
		check.It(e.start, "starts the static band of "+e.cidr+" at "+e.staticStart+", ends it at "+e.staticEnd+" and the range at "+e.rangeEnd, check.Exclusive(),
			check.Also(e.boundaries()...), check.OnServiceCIDR(e.cidr), e.haveBoundaries)
	}
	check.It(spec.AllocBandOffsetMaximum, "hands out no address up to 10.96.1.0 of 10.96.0.0/16, and some of those that a larger static band would have", check.Exclusive(),
		check.OnServiceCIDR("10.96.0.0/16"),
		func(ctx context.Context, cp *check.ControlPlane) {
			beAboveStaticBand(ctx, cp, netip.MustParseAddr("10.96.1.0"))
		})
})

// boundaries are the requirements beside the start that naming a few addresses decides.
func (e *workedExample) boundaries() []spec.ID {
	if e.end == "" {
		return e.rangeEnds
	}
	return append([]spec.ID{e.end}, e.rangeEnds...)
}

// haveBoundaries: the last address can be named, but not the one after it. Both addresses at the end of the static band can be
// named, and a dynamic one lies above it. The Service "kubernetes" has the first address, and the one before it is none of the range.
func (e *workedExample) haveBoundaries(ctx context.Context, cp *check.ControlPlane) {
	name := func(addr netip.Addr) {
		ginkgo.GinkgoHelper()
		a := cp.Create(ctx, check.Service(cp.Name("boundary"), check.WithClusterIP(addr.String())))
		Expect(a).To(check.BeAccepted())
		Expect(clusterIP(a)).To(Equal(addr))
	}
	end, last, start := netip.MustParseAddr(e.staticEnd), netip.MustParseAddr(e.rangeEnd), netip.MustParseAddr(e.staticStart)
	check.Deciding(func() {
		name(last) // before there is a dynamic Service, which could have it
		refuseAddress(ctx, cp, last.Next())
	}, e.rangeEnds...)
	if e.end != "" {
		check.Deciding(func() {
			name(end)
			name(end.Next())
			Expect(end.Less(clusterIP(cp.Create(ctx, check.Service("dynamic"))))).To(BeTrue(), "a dynamic address lies above the static band")
		}, e.end)
	}
	check.Deciding(func() {
		own, err := cp.Client().CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
		check.Must(err)
		Expect(own.Spec.ClusterIP).To(Equal(e.staticStart))
		refuseTaken(ctx, cp, e.staticStart)
		refuseAddress(ctx, cp, start.Prev())
	}, e.start)
}

// haveSize demands the number of addresses that is stated of a full range.
func (f *fill) haveSize(n numbers) {
	ginkgo.GinkgoHelper()
	Expect(len(f.all())+len(f.before)+len(f.reserved)).To(Equal(n.usable), "addresses that %s had to give, %s", f.cidr, f.takenBefore())
}

// haveEnd demands the last address that is stated.
func (f *fill) haveEnd(n numbers) {
	ginkgo.GinkgoHelper()
	Expect(slices.MaxFunc(f.all(), netip.Addr.Compare)).To(Equal(netip.MustParseAddr(n.rangeEnd)), "the last address of %s", f.cidr)
}

// haveBands demands the bands that are stated, if there are any.
func (f *fill) haveBands(n numbers) {
	ginkgo.GinkgoHelper()
	if n.offset == 0 {
		return
	}
	all, end := f.all(), netip.MustParseAddr(n.staticEnd)
	inStatic := func(addr netip.Addr) bool { return addr.Compare(end) <= 0 }
	dynamic := slices.IndexFunc(all, inStatic)
	for addr := range f.before {
		Expect(inStatic(addr)).To(BeTrue(), "%s, in use before, lies in the static band", addr)
	}
	Expect(dynamic+len(f.reserved)).To(Equal(n.dynamic), "dynamic addresses before the first one up to %s, the end of the static band", end)
	Expect(slices.MinFunc(all[:dynamic], netip.Addr.Compare)).To(Equal(end.Next()), "the first address of the dynamic band")
	Expect(len(all)-dynamic+len(f.before)).To(Equal(n.offset), "addresses of the static band")
}

// beAboveStaticBand demands that no dynamic address lies in the static band. The sample would have one if dynamic
// allocation used the whole range. It also demands that some lie right above the band, if a 16th of the range is more
// than the band may have.
func beAboveStaticBand(ctx context.Context, cp *check.ControlPlane, staticEnd netip.Addr) {
	ginkgo.GinkgoHelper()
	size := float64(int(1) << (cp.CIDR().Addr().BitLen() - cp.CIDR().Bits()))
	excess := size/16 - 256
	n := check.TrialsUntil(1 / 16.0)
	if excess > 0 {
		n = check.TrialsUntil(excess / (size - 256))
	}
	addrs := sample(ctx, cp, n)
	for _, addr := range addrs {
		Expect(staticEnd.Less(addr)).To(BeTrue(), "%s, which was handed out, lies above the static band, which ends at %s", addr, staticEnd)
	}
	if excess > 0 {
		limit := check.AddressPlus(staticEnd, big.NewInt(int64(excess)))
		below := func(addr netip.Addr) bool { return addr.Compare(limit) <= 0 }
		Expect(slices.ContainsFunc(addrs, below)).To(BeTrue(), "one of %d dynamic addresses lies between %s, the end of the static band, and %s, the end of one without an upper bound", n, staticEnd, limit)
	}
}
