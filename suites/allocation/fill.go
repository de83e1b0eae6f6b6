package allocation

import (
	"context"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// fill is what dynamic allocation handed out until it refused to go on.
type fill struct {
	cidr  netip.Prefix
	bands check.Bands
	// before are the addresses that were in use already, and reserved those that the check itself keeps from Services (reserveInside).
	before, reserved map[netip.Addr]bool
	// bulk was handed out to several clients at a time, while the upper band had room for all of them. rest was handed
	// out to one client, in this order.
	bulk, rest []netip.Addr
	// refusal is the response to the create after the last address, early one to a create while the upper band had room.
	refusal, early check.Response
}

const (
	// largestFill bounds what a check fills when a run replaces its ranges (--service-cidr).
	largestFill = 1 << 16
	// quickFill is what a check fills unless the run asks for slow checks: a /20.
	quickFill   = 1 << 12
	fillClients = 8
	// orderedTail is how many addresses of the upper band are left for the one client whose order is observed.
	orderedTail = 16
)

// fillRange creates Services, each with a dynamic address, until the range is exhausted. Up to the last addresses of
// the upper band several clients do so at a time. As long as addresses of the upper band are left, the order does not
// matter.
func fillRange(ctx context.Context, cp *check.ControlPlane) *fill {
	ginkgo.GinkgoHelper()
	f := &fill{cidr: cp.CIDR(), bands: check.BandsOf(cp.CIDR()), before: cp.AddressesInUse(ctx, cp.CIDR())}
	switch {
	case f.bands.Usable.Cmp(big.NewInt(largestFill)) > 0:
		check.LeaveUnjudged(check.ByAnotherRange+" of at most a /20", "the range %s is too large to be filled", f.cidr)
	case f.bands.Usable.Cmp(big.NewInt(quickFill)) > 0 && !check.SlowAsked():
		check.LeaveUnjudged(check.BySlow+", or "+check.ByAnotherRange+" of at most a /20", "to fill the range %s takes minutes on a real server", f.cidr)
	}
	if f.bands.Usable.Cmp(big.NewInt(quickFill)) > 0 && cp.Has(spec.ManageServiceCIDRs) {
		f.reserveInside(ctx, cp)
	}
	f.fillConcurrently(ctx, cp, f.freeIn(check.Upper)-orderedTail)
	most := int(f.bands.Usable.Int64()) - len(f.reserved) + 1
	for len(f.bulk)+len(f.rest) <= most {
		a := cp.Create(ctx, check.Service(cp.Name("fill"), check.Unserved()))
		if !a.Accepted() {
			f.refusal = a
			break
		}
		f.rest = append(f.rest, clusterIP(a))
	}
	f.beAlone(ctx, cp)
	f.respectReserved()
	words := fmt.Sprintf("%d, the last %d of them in this order: %v", len(f.bulk)+len(f.rest), min(len(f.rest), 2*orderedTail), f.rest[max(0, len(f.rest)-2*orderedTail):])
	if f.refusal.Code != 0 {
		words += "; then " + f.refusal.String()
	}
	check.RecordAddresses("addresses handed out", words, f.cidr, slices.Concat(f.bulk, f.rest), len(f.bulk))
	return f
}

// beAlone ends the check as unknown where somebody else's Service has taken an address since the fill began: the numbers mean nothing then.
func (f *fill) beAlone(ctx context.Context, cp *check.ControlPlane) {
	ginkgo.GinkgoHelper()
	own := map[netip.Addr]bool{}
	for _, addr := range f.all() {
		own[addr] = true
	}
	for addr, owner := range cp.AddressOwners(ctx, f.cidr) {
		if !own[addr] && !f.before[addr] && !strings.HasPrefix(owner, cp.Namespace()+"/") {
			check.Abort("the Service %s, which is not of this check, has taken %s while the range %s was filled", owner, addr, f.cidr)
		}
	}
}

func (f *fill) fillConcurrently(ctx context.Context, cp *check.ControlPlane, n int) {
	var next atomic.Int64
	var mu sync.Mutex
	var refused check.Response
	check.Concurrently(fillClients, func(int) {
		for int(next.Add(1)) <= n {
			a := cp.Create(ctx, check.Service(cp.Name("fill"), check.Unserved()))
			mu.Lock()
			if a.Accepted() {
				f.bulk = append(f.bulk, clusterIP(a))
			} else {
				refused = a
			}
			mu.Unlock()
			if !a.Accepted() {
				return
			}
		}
	})
	f.early = refused
}

// freeIn is the number of addresses of a band that were free before the fill.
func (f *fill) freeIn(band check.Band) int {
	in, size := f.bands.InStatic, f.bands.Offset
	if band == check.Upper {
		in, size = f.bands.InDynamic, int(f.bands.DynamicCount().Int64())
	}
	for _, taken := range []map[netip.Addr]bool{f.before, f.reserved} {
		for addr := range taken {
			if in(addr) {
				size--
			}
		}
	}
	return size
}

// all is everything that was handed out, in a slice of its own.
func (f *fill) all() []netip.Addr { return slices.Concat(f.bulk, f.rest) }

// beInRange demands that every address lies in the range.
func (f *fill) beInRange() {
	ginkgo.GinkgoHelper()
	for _, addr := range f.all() {
		Expect(f.cidr.Contains(addr)).To(BeTrue(), "the address %s, which was handed out, lies in %s", addr, f.cidr)
	}
}

// beUsable demands that none of them is the network address, nor the broadcast address of an IPv4 range.
func (f *fill) beUsable() {
	ginkgo.GinkgoHelper()
	for _, addr := range f.all() {
		Expect(addr).To(check.BeInRange(f.cidr))
	}
}

// beFree demands that no address was in use before.
func (f *fill) beFree() {
	ginkgo.GinkgoHelper()
	for _, addr := range f.all() {
		Expect(f.before[addr]).To(BeFalse(), "%s was handed out although it was in use before", addr)
	}
}

// beDistinct demands that no address was handed out twice.
func (f *fill) beDistinct() {
	ginkgo.GinkgoHelper()
	seen := map[netip.Addr]bool{}
	for _, addr := range f.all() {
		Expect(seen[addr]).To(BeFalse(), "%s was handed out twice", addr)
		seen[addr] = true
	}
}

// beUpperFirst demands that the addresses of the upper band, all of them, came before any other.
func (f *fill) beUpperFirst() {
	ginkgo.GinkgoHelper()
	upper := f.freeIn(check.Upper)
	for i, addr := range f.all()[:min(upper, len(f.all()))] {
		Expect(addr).To(check.BeInBand(check.Upper, f.cidr), "after %d of %d addresses of the upper band", i, upper)
	}
}

// beLowerAfterUpper demands that those of the lower band came then.
func (f *fill) beLowerAfterUpper() {
	ginkgo.GinkgoHelper()
	upper := f.freeIn(check.Upper)
	for _, addr := range f.all()[min(upper, len(f.all())):] {
		Expect(addr).To(check.BeInBand(check.Lower, f.cidr), "after all %d addresses of the upper band", upper)
	}
}

// isDivided reports whether the addresses came in two parts, the higher ones first. They may be divided at another
// place than they should be.
func (f *fill) isDivided() bool {
	all := f.all()
	lowest, highest := slices.Clone(all), slices.Clone(all) // of those up to each place, and of those from it on
	for i := 1; i < len(all); i++ {
		if lowest[i-1].Less(lowest[i]) {
			lowest[i] = lowest[i-1]
		}
		if k := len(all) - 1 - i; highest[k].Less(highest[k+1]) {
			highest[k] = highest[k+1]
		}
	}
	for i := 1; i < len(all); i++ {
		if highest[i].Less(lowest[i-1]) {
			return true
		}
	}
	return false
}

// beCompleteIn demands that every free address of a band was handed out, and no create refused before.
func (f *fill) beCompleteIn(band check.Band) {
	ginkgo.GinkgoHelper()
	in := f.bands.InStatic
	if band == check.Upper {
		Expect(f.early.Code).To(BeZero(), "a create was refused while addresses of the upper band of %s were free: %s", f.cidr, f.early)
		in = f.bands.InDynamic
	}
	handed := slices.DeleteFunc(f.all(), func(addr netip.Addr) bool { return !in(addr) })
	Expect(handed).To(HaveLen(f.freeIn(band)), "addresses handed out of the %s band of %s, which has %s to give, %s", band, f.cidr, f.bands.Usable, f.takenBefore())
}

// beComplete demands the same of both bands.
func (f *fill) beComplete() {
	ginkgo.GinkgoHelper()
	f.beCompleteIn(check.Upper)
	f.beCompleteIn(check.Lower)
}

// clusterIP is the address in a response; it is invalid, and belongs to no range, where there is none.
func clusterIP(a check.Response) netip.Addr {
	if a.Service == nil {
		return netip.Addr{}
	}
	addr, _ := netip.ParseAddr(a.Service.Spec.ClusterIP)
	return addr
}
