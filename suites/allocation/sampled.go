package allocation

import (
	"context"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Bands can be seen without filling a range: Services are created and deleted again, a few at a time, until a server without bands would have
// handed out something of the lower one.
const (
	// sampleClients is how many clients do so, each with one address at a time. One client takes samplePorts node ports at a time: kube-apiserver
	// writes one record for each port, which several clients would have to write again and again.
	sampleClients = 8
	samplePorts   = 32
	// largestSample bounds how many addresses or ports are looked at. A /16 whose bands are free takes 5,295.
	largestSample = 6000
	// quickSample is what is looked at unless the run asks for slow checks, where other checks have the range for themselves.
	quickSample = 1000
)

var _ = ginkgo.Describe("bands of a range in use", func() {
	check.It(spec.AllocUpperBandFirst, "gives no address of the lower band to Services that come and go, a few at a time", check.OnEachServiceCIDR("10.96.0.0/24"),
		check.Also(spec.AllocDynamicInRange, spec.AllocDynamicNotNetworkOrBroadcast, spec.AllocDynamicRandom), check.Long(), check.Timeout(fillTimeout),
		func(ctx context.Context, cp *check.ControlPlane) {
			cidr := primaryRange(cp)
			b := check.BandsOf(cidr)
			free := freeAddresses(ctx, cp, cidr)
			n := free.sampleSize()
			if n > quickSample && cp.Has(spec.ExhaustibleRange) && !check.SlowAsked() {
				check.LeaveUnjudged(check.BySlow, "it takes %d Services; checks that have the range for themselves see its bands by fewer", n)
			}
			addrs := comeAndGo(ctx, cp, n, sampleClients, func() *corev1.Service { return check.Service(cp.Name("sample"), check.Unserved()) },
				func(svc *corev1.Service) []netip.Addr { return []netip.Addr{clusterIP(check.Response{Service: svc})} })
			different := distinct(addrs)
			check.RecordAddresses("sample", fmt.Sprintf("%d dynamic addresses, %d different ones, the first of them %v", len(addrs), len(different), addrs[:min(len(addrs), 8)]), cidr, different, 0)
			check.Deciding(func() {
				for _, addr := range addrs {
					Expect(cidr.Contains(addr)).To(BeTrue(), "the address %s lies in %s", addr, cidr)
				}
			}, spec.AllocDynamicInRange)
			check.Deciding(func() {
				for _, addr := range addrs {
					Expect(addr).To(check.BeInRange(cidr))
				}
			}, spec.AllocDynamicNotNetworkOrBroadcast)
			check.Deciding(func() {
				if slices.ContainsFunc(addrs, b.InStatic) {
					freeAddresses(ctx, cp, cidr).haveRoom() // others may have filled the upper band meanwhile
				}
				for _, addr := range addrs {
					Expect(addr).To(check.BeInBand(check.Upper, cidr), "the range had %d free addresses in its lower band and %d in its upper one", free.lower, free.upper)
				}
			}, spec.AllocUpperBandFirst)
			check.Deciding(func() {
				if free.upper > int(b.DynamicCount().Int64())/2 { // or whole quarters may be taken
					beSpread(cidr, addrs)
				}
				beInNoOrder(addrs[:check.OrderedBy()])
			}, spec.AllocDynamicRandom)
		})

	check.It(spec.AllocNodePortUpperBandFirst, "gives no node port of the lower band to Services that come and go, a few at a time", check.Also(spec.AllocNodePortRandom), check.Long(),
		check.Timeout(fillTimeout),
		func(ctx context.Context, cp *check.ControlPlane) {
			first, last := cp.NodePorts()
			lower := check.NodePortBand(first, last)
			if lower == 0 {
				check.DoesNotBind("the node-port range %d-%d has no bands", first, last)
			}
			room := func() freeNumbers {
				free := freeNumbers{what: fmt.Sprintf("node-port range %d-%d", first, last), lower: lower, upper: last - first + 1 - lower}
				for port := range cp.NodePortsInUse(ctx) {
					switch i := int(port) - first; {
					case i < 0 || int(port) > last:
					case i < lower:
						free.lower--
					default:
						free.upper--
					}
				}
				return free
			}
			free := room()
			ports := comeAndGo(ctx, cp, free.sampleSize(), 1, func() *corev1.Service {
				return check.Service(cp.Name("sample"), check.Unserved(), manyPorts(samplePorts))
			}, nodePorts)
			inLower := func(port int) bool { return port < first+lower }
			check.Deciding(func() {
				if slices.ContainsFunc(ports, inLower) {
					room().haveRoom()
				}
				Expect(slices.Min(ports)).To(BeNumerically(">=", first+lower), "the lowest of %d dynamic node ports, while %d were free in the lower band and %d in the upper one",
					len(ports), free.lower, free.upper)
			}, spec.AllocNodePortUpperBandFirst)
			check.Deciding(func() {
				head := slices.Clone(ports[:check.OrderedBy()])
				Expect(slices.IsSorted(head)).To(BeFalse(), "node ports were handed out in ascending order: %v", head)
				slices.Reverse(head)
				Expect(slices.IsSorted(head)).To(BeFalse(), "node ports were handed out in descending order, seen from the last: %v", head)
			}, spec.AllocNodePortRandom)
		})

	check.It(spec.AllocStaticUpperBand, "gives the addresses at the edges of the bands to who names them, unless they are taken", check.OnEachServiceCIDR("10.96.0.0/24"),
		check.Also(spec.AllocStaticWholeLowerBand, spec.AllocStaticExact, spec.AllocStaticOutOfRange),
		func(ctx context.Context, cp *check.ControlPlane) {
			cidr := primaryRange(cp)
			b := check.BandsOf(cidr)
			for _, addr := range []netip.Addr{b.StaticLast, b.DynamicFirst, lastNameable(b)} {
				if !addr.IsValid() {
					continue
				}
				a, free := atFreeAddress(ctx, cp, cidr, addr, func() check.Response {
					return cp.Create(ctx, check.Service(cp.Name("edge"), check.Unserved(), check.WithClusterIP(addr.String())))
				})
				if !free {
					continue
				}
				nameable := spec.AllocStaticUpperBand
				if addr == b.StaticLast {
					nameable = spec.AllocStaticWholeLowerBand
				}
				check.Deciding(func() { Expect(a).To(check.BeAccepted()) }, nameable)
				check.Deciding(func() { Expect(clusterIP(a)).To(Equal(addr)) }, spec.AllocStaticExact)
				Expect(cp.Delete(ctx, a.Service.Name)).To(check.BeAccepted())
			}
			size := new(big.Int).Lsh(big.NewInt(1), uint(cidr.Addr().BitLen()-cidr.Bits()))
			for _, addr := range []netip.Addr{b.Network.Prev(), check.AddressPlus(b.Network, size)} {
				check.Deciding(func() { refuseAddress(ctx, cp, addr) }, spec.AllocStaticOutOfRange)
			}
		})

	check.It(spec.AllocNodePortStaticAnyBand, "gives ports of both bands to who names them, one at a time",
		func(ctx context.Context, cp *check.ControlPlane) {
			first, last := cp.NodePorts()
			if check.NodePortBand(first, last) == 0 {
				check.DoesNotBind("the node-port range %d-%d has no bands", first, last)
			}
			port := int(cp.UnusedNodePort(ctx)) // of the lower band, and no other check's
			a := cp.Create(ctx, check.Service("lower", onNodePort(port)))
			Expect(a).To(check.BeAccepted())
			Expect(nodePorts(a.Service)).To(Equal([]int{port}))
			createOnChosenPort(ctx, cp)
		})

	check.It(spec.AllocNodePortDeleteReleases, "lets a node port of the lower band be named again when its Service is deleted",
		func(ctx context.Context, cp *check.ControlPlane) {
			port := int(cp.FreeNodePorts(ctx, 1)[0])
			Expect(cp.Create(ctx, check.Service("first", onNodePort(port)))).To(check.BeAccepted())
			Expect(cp.Create(ctx, check.Service("duplicate", onNodePort(port)))).NotTo(check.BeAccepted())
			Expect(cp.Delete(ctx, "first")).To(check.BeAccepted())
			check.Converge(ctx, fmt.Sprintf("reuse of node port %d", port), named, func(g Gomega) {
				g.Expect(cp.Create(ctx, check.Service("again", onNodePort(port)))).To(check.BeAccepted())
			})
		})

	check.It(spec.AllocNodePortConcurrentStatic, "gives a node port of the lower band that 32 clients name at a time to one of them",
		func(ctx context.Context, cp *check.ControlPlane) {
			port := int(cp.FreeNodePorts(ctx, 1)[0])
			oneWins(ctx, cp, func(int) *corev1.Service { return check.Service(cp.Name("racer"), onNodePort(port)) }, Not(check.BeAccepted()))
		})
})

// distinct are the different ones of addresses, in the order in which they came.
func distinct(addrs []netip.Addr) (different []netip.Addr) {
	seen := map[netip.Addr]bool{}
	for _, addr := range addrs {
		if !seen[addr] {
			seen[addr] = true
			different = append(different, addr)
		}
	}
	return different
}

// lastNameable is the last address of a range. In ranges larger than a /16, whether it can be named is a requirement of its own.
func lastNameable(b check.Bands) netip.Addr {
	if b.Usable.Cmp(big.NewInt(largestFill)) < 0 {
		return b.Last
	}
	return netip.Addr{}
}

// freeNumbers is how many addresses or node ports of each band nobody has.
type freeNumbers struct {
	what         string
	lower, upper int
}

// freeAddresses counts those of an address range.
func freeAddresses(ctx context.Context, cp *check.ControlPlane, cidr netip.Prefix) freeNumbers {
	ginkgo.GinkgoHelper()
	b := check.BandsOf(cidr)
	if b.Offset == 0 {
		check.DoesNotBind("the range %s has no bands", cidr)
	}
	if !b.Usable.IsInt64() {
		check.LeaveUnjudged(check.ByAnotherRange+" of at most a /16", "the range %s is too large for a sample to tell its bands", cidr)
	}
	free := freeNumbers{what: "range " + cidr.String(), lower: b.Offset, upper: int(b.DynamicCount().Int64())}
	for addr := range cp.AddressesInUse(ctx, cidr) {
		switch {
		case b.InStatic(addr):
			free.lower--
		case b.InDynamic(addr):
			free.upper--
		}
	}
	return free
}

// haveRoom ends the check as not judged where others leave too little of the upper band: the lower one may be used then.
func (f freeNumbers) haveRoom() {
	ginkgo.GinkgoHelper()
	if f.upper < 3*samplePorts {
		check.LeaveUnjudged(check.ByFreeRange, "%d are free in the upper band of the %s, and this check takes up to %d at a time", max(0, f.upper), f.what, samplePorts)
	}
}

// sampleSize is how many have to be handed out until one of the lower band is among them, if there are no bands.
func (f freeNumbers) sampleSize() int {
	ginkgo.GinkgoHelper()
	f.haveRoom()
	if f.lower <= 0 {
		check.LeaveUnjudged(check.ByFreeRange, "nothing is free in the lower band of the %s", f.what)
	}
	n := check.TrialsUntil(float64(f.lower) / float64(f.lower+f.upper))
	if n > largestSample {
		check.LeaveUnjudged(check.ByAnotherRange+" of at most a /16", "the %s has %d free in its lower band and %d in its upper one, so that %d had to be handed out", f.what, f.lower, f.upper, n)
	}
	return max(n, check.OrderedBy())
}

// comeAndGo creates Services and deletes each at once, until at least n addresses or ports were handed out. The first of them, as many as tell an
// order, come to one client in that order; the rest to as many clients as clients says.
func comeAndGo[T any](ctx context.Context, cp *check.ControlPlane, n, clients int, service func() *corev1.Service, of func(*corev1.Service) []T) []T {
	ginkgo.GinkgoHelper()
	var mu sync.Mutex
	var all []T
	once := func() bool {
		svc := service()
		a := cp.Create(ctx, svc)
		Expect(a).To(check.BeAccepted())
		mu.Lock()
		all = append(all, of(a.Service)...)
		enough := len(all) >= n
		mu.Unlock()
		Expect(cp.Delete(ctx, svc.Name)).To(check.BeAccepted())
		return !enough
	}
	for len(all) < check.OrderedBy() {
		once()
	}
	var stop atomic.Bool
	check.Concurrently(clients, func(int) {
		defer stop.Store(true)
		for !stop.Load() && once() {
		}
	})
	return all
}
