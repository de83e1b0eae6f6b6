package apischema

import (
	"context"
	"fmt"
	"math/big"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// clusterIPsFields are the fields that a refusal of one of several cluster IPs may name.
var clusterIPsFields = append(slices.Clone(clusterIPFields), "spec.clusterIPs[1]", "spec.clusterIPs[2]")

// clusterIPsClaim creates a dual-stack Service that names a free address of each of the families, in this order.
func clusterIPsClaim(ctx context.Context, cp *check.ControlPlane, name string, families ...corev1.IPFamily) (ips []string, a check.Response) {
	ginkgo.GinkgoHelper()
	const attempts = 20 // other checks choose addresses too
	for range attempts {
		ips = nil
		for _, family := range families {
			ips = append(ips, clusterIPUnused(ctx, cp, family))
		}
		service := check.Service(name, check.WithClusterIPs(ips...), check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack))
		if a = cp.Create(ctx, service); a.Accepted() {
			break
		}
	}
	return ips, a
}

// clusterIPsDemandFamilies demands one address of each of the families, in this order, and that ipFamilies says the same.
func clusterIPsDemandFamilies(svc *corev1.Service, families ...corev1.IPFamily) {
	ginkgo.GinkgoHelper()
	Expect(svc.Spec.IPFamilies).To(Equal(families), "ipFamilies")
	Expect(svc.Spec.ClusterIPs).To(HaveLen(len(families)), "clusterIPs")
	Expect(svc.Spec.ClusterIP).To(Equal(svc.Spec.ClusterIPs[0]), "clusterIP and the first of clusterIPs")
	for i, s := range svc.Spec.ClusterIPs {
		ip, err := netip.ParseAddr(s)
		Expect(err).NotTo(HaveOccurred(), "the cluster IP must be an address")
		Expect(ip.Is4()).To(Equal(families[i] == corev1.IPv4Protocol), "%s must be an %s address", ip, families[i])
	}
}

var _ = ginkgo.Describe("clusterIPs", func() {
	check.It(spec.APIClusterIPsAssigned, "lists the address", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a"))
		svc := typeStored(ctx, cp, "a")
		clusterIPDemandAddress(svc.Spec.ClusterIP)
		Expect(svc.Spec.ClusterIPs).To(Equal([]string{svc.Spec.ClusterIP}))
	})

	check.It(spec.APIClusterIPsAssigned, "lists None for a headless Service", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.Headless()))
		Expect(typeStored(ctx, cp, "a").Spec.ClusterIPs).To(Equal([]string{corev1.ClusterIPNone}))
	})

	check.It(spec.APIClusterIPsAssigned, "lists both addresses of a dual-stack Service", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
		svc := typeStored(ctx, cp, "a")
		if len(svc.Spec.IPFamilies) != 2 {
			check.Abort("a Service that requires dual stack has the families %v, so that it need not list two addresses", svc.Spec.IPFamilies)
		}
		Expect(svc.Spec.ClusterIPs).To(HaveLen(2))
		Expect(svc.Spec.ClusterIPs[0]).To(Equal(svc.Spec.ClusterIP))
	})

	check.It(spec.APIClusterIPsFromClusterIP, "is initialized from clusterIP", func(ctx context.Context, cp *check.ControlPlane) {
		ip, a := clusterIPClaim(ctx, cp, cp.PrimaryFamily(), func(ip string) *corev1.Service { return check.Service("a", check.WithClusterIP(ip)) })
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ClusterIPs).To(Equal([]string{ip}))
	})

	check.It(spec.APIClusterIPsFirst, "is refused if it contradicts clusterIP", func(ctx context.Context, cp *check.ControlPlane) {
		ip := clusterIPUnused(ctx, cp, cp.PrimaryFamily())
		other := check.AddressPlus(netip.MustParseAddr(ip), big.NewInt(1)).String()
		for what, set := range map[string]func(*corev1.ServiceSpec){
			"another address":      func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = other, []string{ip} },
			"None beside address":  func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = corev1.ClusterIPNone, []string{ip} },
			"address beside None":  func(s *corev1.ServiceSpec) { s.ClusterIP, s.ClusterIPs = ip, []string{corev1.ClusterIPNone} },
			"no clusterIP":         func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{ip} },
			"no clusterIP of None": func(s *corev1.ServiceSpec) { s.ClusterIPs = []string{corev1.ClusterIPNone} },
		} {
			name := cp.Name("a")
			svc := check.Service(name, func(s *corev1.Service) { set(&s.Spec) })
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid(clusterIPFields...), what)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APIClusterIPsValues, "is refused with entries that are no addresses", func(ctx context.Context, cp *check.ControlPlane) {
		ip := clusterIPUnused(ctx, cp, cp.PrimaryFamily())
		for _, ips := range [][]string{{"abc"}, {"10.96.0.10/24"}, {"none"}, {corev1.ClusterIPNone, ip}, {ip, corev1.ClusterIPNone}, {corev1.ClusterIPNone, corev1.ClusterIPNone}} {
			name := cp.Name("a")
			Expect(cp.Create(ctx, check.Service(name, check.WithClusterIPs(ips...)))).To(check.BeInvalid(clusterIPsFields...), "clusterIPs %q", ips)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APIClusterIPsEmptyEntry, "never keeps an empty entry", func(ctx context.Context, cp *check.ControlPlane) {
		a := typeCreate(ctx, cp, "a", `"clusterIP":"","clusterIPs":[""]`)
		if !a.Accepted() {
			Expect(a).To(check.BeInvalid(clusterIPFields...))
			typeNotStored(ctx, cp, "a")
			return
		}
		svc := typeStored(ctx, cp, "a")
		clusterIPDemandAddress(svc.Spec.ClusterIP)
		Expect(svc.Spec.ClusterIPs).To(Equal([]string{svc.Spec.ClusterIP}))
	})

	check.It(spec.APIClusterIPsAtMostTwo, "has at most two entries", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		four, six := clusterIPUnused(ctx, cp, corev1.IPv4Protocol), clusterIPUnused(ctx, cp, corev1.IPv6Protocol)
		third := check.AddressPlus(netip.MustParseAddr(four), big.NewInt(1)).String()
		svc := check.Service("a", check.WithClusterIPs(four, six, third), check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack))
		Expect(cp.Create(ctx, svc)).To(check.BeInvalid(clusterIPsFields...))
		typeNotStored(ctx, cp, "a")
	})

	check.It(spec.APIClusterIPsOnePerFamily, "is refused with two addresses of a family", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		for _, family := range []corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol} {
			ip := clusterIPUnused(ctx, cp, family)
			svc := check.Service("a", check.WithClusterIPs(ip, check.AddressPlus(netip.MustParseAddr(ip), big.NewInt(1)).String()),
				check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack))
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid(clusterIPsFields...), "two %s addresses", family)
			typeNotStored(ctx, cp, "a")
		}
	})

	check.It(spec.APIClusterIPsOnePerFamily, "takes the families in either order", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		for name, families := range map[string][]corev1.IPFamily{
			"four-six": {corev1.IPv4Protocol, corev1.IPv6Protocol},
			"six-four": {corev1.IPv6Protocol, corev1.IPv4Protocol},
		} {
			_, a := clusterIPsClaim(ctx, cp, name, families...)
			Expect(a).To(check.BeAccepted(), name)
			clusterIPsDemandFamilies(a.Service, families...)
		}
	})

	check.It(spec.APIClusterIPsChosen, "are the addresses that the client names", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		ips, a := clusterIPsClaim(ctx, cp, "a", cp.PrimaryFamily(), cp.OtherFamily())
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ClusterIPs).To(Equal(ips))
		for _, ip := range ips {
			clusterIPHeld(ctx, cp, ip)
		}
	})

	check.It(spec.APIClusterIPsChosen, "is refused if the second address is in use or out of range", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		taken := cp.Arrange(ctx, check.Service("other", check.WithFamilies(cp.OtherFamily()))).Spec.ClusterIP
		for what, second := range map[string]string{"in use": taken, "out of range": clusterIPOutside(cp, cp.OtherFamily())} {
			ips := []string{clusterIPUnused(ctx, cp, cp.PrimaryFamily()), second}
			svc := check.Service("a", check.WithClusterIPs(ips...), check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack))
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid(clusterIPsFields...), what)
			typeNotStored(ctx, cp, "a")
		}
	})

	check.It(spec.APIClusterIPsMatchFamilies, "is refused if it contradicts ipFamilies", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		p, o := cp.PrimaryFamily(), cp.OtherFamily()
		first, second := clusterIPUnused(ctx, cp, p), clusterIPUnused(ctx, cp, o)
		for what, options := range map[string][]check.ServiceOption{
			"one address":   {check.WithClusterIPs(first), check.WithFamilies(o)},
			"two addresses": {check.WithClusterIPs(first, second), check.WithFamilies(o, p), check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)},
		} {
			name := cp.Name("a")
			Expect(cp.Create(ctx, check.Service(name, options...))).To(check.BeInvalid("spec.clusterIPs[0]", "spec.ipFamilies[0]"), what)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APIClusterIPsMatchFamilies, "says which families there are if the client does not", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		p, o := cp.PrimaryFamily(), cp.OtherFamily()
		_, a := clusterIPClaim(ctx, cp, o, func(ip string) *corev1.Service { return check.Service("one", check.WithClusterIP(ip)) })
		Expect(a).To(check.BeAccepted())
		clusterIPsDemandFamilies(a.Service, o)
		_, a = clusterIPsClaim(ctx, cp, "two", o, p)
		Expect(a).To(check.BeAccepted())
		clusterIPsDemandFamilies(a.Service, o, p)
	})

	check.It(spec.APIClusterIPsPolicy, "has one entry unless the policy allows two", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		ips := []string{clusterIPUnused(ctx, cp, cp.PrimaryFamily()), clusterIPUnused(ctx, cp, cp.OtherFamily())}
		for what, option := range map[string]check.ServiceOption{
			"no policy":   func(*corev1.Service) {},
			"SingleStack": check.WithPolicy(corev1.IPFamilyPolicySingleStack),
		} {
			Expect(cp.Create(ctx, check.Service("a", check.WithClusterIPs(ips...), option))).To(check.BeInvalid("spec.ipFamilyPolicy"), what)
			typeNotStored(ctx, cp, "a")
		}
	})

	check.It(spec.APIClusterIPsSecondaryImmutable, "cannot have its second entry replaced", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
		Expect(before.Spec.ClusterIPs).To(HaveLen(2))
		ip := clusterIPUnused(ctx, cp, cp.OtherFamily())
		patch := fmt.Sprintf(`{"spec":{"clusterIPs":[%q,%q]}}`, before.Spec.ClusterIP, ip)
		Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid(clusterIPsFields...))
		typeUnchanged(ctx, cp, before)
		clusterIPHeld(ctx, cp, before.Spec.ClusterIPs[1])
		clusterIPFree(ctx, cp, ip)
	})
})
