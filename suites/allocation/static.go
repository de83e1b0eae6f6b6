package allocation

import (
	"context"
	"fmt"
	"math/big"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("static assignment", func() {
	check.It(spec.AllocStaticExact, "assigns the address that is named",
		func(ctx context.Context, cp *check.ControlPlane) {
			assignExactly(ctx, cp, corev1.ServiceTypeClusterIP)
		})

	for _, t := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer} {
		check.It(spec.AllocStaticExact, fmt.Sprintf("assigns the address that is named to type %s", t),
			func(ctx context.Context, cp *check.ControlPlane) {
				if a := cp.Create(ctx, check.Service("unnamed", check.OfType(t))); !a.Accepted() { // that there is the type is another requirement
					check.Abort("a Service of type %s was refused that names no address: %s", t, a)
				}
				assignExactly(ctx, cp, t)
			})
	}

	check.It(spec.AllocStaticExact, "assigns the addresses at the edges of the bands, and none beyond the range", check.Exclusive(), check.OnEachServiceCIDR(check.ServiceCIDRMatrix(check.Sample)...),
		check.Also(spec.AllocStaticWholeLowerBand, spec.AllocStaticUpperBand, spec.AllocStaticNetworkOrBroadcast, spec.AllocStaticOutOfRange),
		func(ctx context.Context, cp *check.ControlPlane) {
			b := check.BandsOf(cp.CIDR())
			edges := []netip.Addr{b.StaticLast, b.DynamicFirst}
			if b.Usable.Cmp(big.NewInt(largestFill)) < 0 { // the last address of a larger range is a requirement of its own
				edges = append(edges, b.Last)
			}
			used := cp.AddressesInUse(ctx, cp.CIDR())
			for _, addr := range edges {
				if !addr.IsValid() || used[addr] { // no bands; or the address of the Service "kubernetes"
					continue
				}
				a := cp.Create(ctx, check.Service(cp.Name("edge"), check.WithClusterIP(addr.String())))
				nameable := spec.AllocStaticUpperBand
				if addr == b.StaticLast {
					nameable = spec.AllocStaticWholeLowerBand
				}
				check.Deciding(func() { Expect(a).To(check.BeAccepted()) }, nameable)
				check.Deciding(func() { Expect(clusterIP(a)).To(Equal(addr)) }, spec.AllocStaticExact)
			}
			size := new(big.Int).Lsh(big.NewInt(1), uint(cp.CIDR().Addr().BitLen()-cp.CIDR().Bits()))
			for _, addr := range []netip.Addr{b.Network.Prev(), check.AddressPlus(b.Network, size)} {
				check.Deciding(func() { refuseAddress(ctx, cp, addr) }, spec.AllocStaticOutOfRange)
			}
			for _, addr := range []netip.Addr{b.Network, b.Broadcast} {
				if addr.IsValid() { // IPv6 has no broadcast address
					check.Deciding(func() { refuseAddress(ctx, cp, addr) }, spec.AllocStaticNetworkOrBroadcast)
				}
			}
		})

	check.It(spec.AllocStaticNetworkOrBroadcast, "refuses the network address and the broadcast address",
		func(ctx context.Context, cp *check.ControlPlane) {
			b := check.BandsOf(primaryRange(cp))
			for _, addr := range []netip.Addr{b.Network, b.Broadcast} {
				if addr.IsValid() {
					refuseAddress(ctx, cp, addr)
				}
			}
		})

	check.It(spec.AllocStaticOutOfRange, "refuses addresses far outside the range",
		func(ctx context.Context, cp *check.ControlPlane) {
			far := []string{"192.0.2.1", "198.51.100.7"}
			if primaryRange(cp).Addr().Is6() {
				far = []string{"2001:db8::1", "fe80::1"}
			}
			for _, ip := range far {
				refuseAddress(ctx, cp, netip.MustParseAddr(ip))
			}
		})

	check.It(spec.AllocNoRangeNoAddress, "refuses a Service of an IP family that has no range", check.SingleStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, check.Service("other", check.WithFamilies(cp.OtherFamily())))
			Expect(a).To(check.BeRefused())
			Expect(cp.Get(ctx, "other").Code).To(Equal(404), "the refused Service exists")
		})

	check.It(spec.AllocStaticWholeLowerBand, "assigns every address of the lower band but that of the Service kubernetes", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/27"),
		func(ctx context.Context, cp *check.ControlPlane) {
			b := check.BandsOf(cp.CIDR())
			used := cp.AddressesInUse(ctx, cp.CIDR())
			for addr := b.First; addr.Compare(b.StaticLast) <= 0; addr = addr.Next() {
				if !used[addr] {
					Expect(cp.Create(ctx, check.Service(cp.Name("lower"), check.WithClusterIP(addr.String())))).To(check.BeAccepted())
				}
			}
		})

	check.It(spec.AllocStaticUpperBand, "assigns every address of the upper band", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/27"),
		func(ctx context.Context, cp *check.ControlPlane) {
			b := check.BandsOf(cp.CIDR())
			for addr := b.DynamicFirst; addr.Compare(b.Last) <= 0; addr = addr.Next() {
				Expect(cp.Create(ctx, check.Service(cp.Name("upper"), check.WithClusterIP(addr.String())))).To(check.BeAccepted())
			}
		})
})

// assignExactly demands that a Service of a type is assigned the address that it names.
func assignExactly(ctx context.Context, cp *check.ControlPlane, t corev1.ServiceType) {
	ginkgo.GinkgoHelper()
	cidr := primaryRange(cp)
	svc := createOnChosen(ctx, cp, cidr, check.OfType(t), check.With(func(s *corev1.Service) {
		s.Annotations = map[string]string{"named": s.Spec.ClusterIP}
	}))
	Expect(svc.Spec.ClusterIP).To(Equal(svc.Annotations["named"]), "type %s in %s", t, cidr)
}

// refuseAddress demands that an address cannot be named.
func refuseAddress(ctx context.Context, cp *check.ControlPlane, addr netip.Addr) {
	ginkgo.GinkgoHelper()
	Expect(cp.Create(ctx, check.Service(cp.Name("refused"), check.WithClusterIP(addr.String())))).To(check.BeRefused())
}
