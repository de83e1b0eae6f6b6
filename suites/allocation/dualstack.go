package allocation

import (
	"context"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// A race that a server may lose is run often enough for a loss to show: by raceClients clients, raceRounds times each. One
// that is lost in every second round stays hidden with a probability of 2^-24.
const (
	raceClients = 4
	raceRounds  = 6
)

// belongsToOne lets updates give addresses of a family to Services, and demands that nobody else can have these. It
// looks at once, when a controller may still repair what it saw too early, and a little later.
func belongsToOne(ctx context.Context, cp *check.ControlPlane, family corev1.IPFamily, update func() string) {
	ginkgo.GinkgoHelper()
	ips := make([][]string, raceClients)
	check.Concurrently(raceClients, func(i int) {
		for range raceRounds {
			ip := update()
			for range 3 {
				refuseTaken(ctx, cp, ip, check.WithFamilies(family))
			}
			ips[i] = append(ips[i], ip)
		}
	})
	for _, ip := range slices.Concat(ips...) {
		refuseTaken(ctx, cp, ip, check.WithFamilies(family))
	}
}

var _ = ginkgo.Describe("dual-stack allocation", func() {
	check.It(spec.AllocDualStackEachFamily, "gives an address of the upper band of each range", check.Exclusive(), check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			for range 8 {
				a := cp.Create(ctx, check.Service(cp.Name("dual"), check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
				Expect(a).To(check.BeAccepted())
				Expect(a.Service.Spec.ClusterIPs).To(HaveLen(2))
				for i, ip := range a.Service.Spec.ClusterIPs {
					Expect(ip).To(check.BeInBand(check.Upper, cp.CIDRs()[i]))
				}
			}
		})

	check.It(spec.AllocDualStackEachFamily, "exhausts each range by itself", check.Exclusive(), check.Needs(spec.DualStack), check.OnServiceCIDR("10.96.0.0/29,fd00:10:96::/124"),
		func(ctx context.Context, cp *check.ControlPlane) {
			dual := check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)
			for range 5 { // the primary range has five addresses besides that of the Service "kubernetes"
				cp.Arrange(ctx, check.Service(cp.Name("dual"), dual))
			}
			Expect(cp.Create(ctx, check.Service("late", dual))).To(check.BeExhausted())
			Expect(cp.Create(ctx, check.Service("other", check.WithFamilies(corev1.IPv6Protocol)))).To(check.BeAccepted())
		})

	check.It(spec.AllocUnique, "refuses an address that another Service has as its secondary one", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			dual := cp.Arrange(ctx, check.Service("dual", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
			Expect(dual.Spec.ClusterIPs).To(HaveLen(2))
			refuseTaken(ctx, cp, dual.Spec.ClusterIPs[1], check.WithFamilies(cp.OtherFamily()))
		})

	check.It(spec.AllocRefusedDualStackCreateLeaksNothing, "leaves the primary address free when the secondary one is taken", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			taken := cp.Arrange(ctx, check.Service("taken", check.WithFamilies(cp.OtherFamily()))).Spec.ClusterIP
			leaveFree(ctx, cp, cp.PrimaryFamily(), func(free string) []string { return []string{free, taken} })
		})

	check.It(spec.AllocRefusedDualStackCreateLeaksNothing, "leaves the secondary address free when the primary one is taken", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			taken := cp.Arrange(ctx, check.Service("taken")).Spec.ClusterIP
			leaveFree(ctx, cp, cp.OtherFamily(), func(free string) []string { return []string{taken, free} })
		})

	check.It(spec.AllocRefusedDualStackCreateLeaksNothing, "leaves both addresses free when the create is refused for another reason", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			ips := []string{freeAddressOf(ctx, cp, cp.CIDRs()[0]), freeAddressOf(ctx, cp, cp.CIDRs()[1])}
			both := []check.ServiceOption{check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack), check.WithClusterIPs(ips...)}
			Expect(cp.Create(ctx, check.Service("refused", append(both, onNodePort(80))...))).NotTo(check.BeAccepted())
			Expect(cp.Create(ctx, check.Service("next", both...))).To(check.BeAccepted())
		})

	check.It(spec.AllocUpgradeSecondaryUnique, "never gives the secondary address of a Service that has just become dual-stack to another one", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			belongsToOne(ctx, cp, cp.OtherFamily(), func() string {
				name := cp.Name("upgraded")
				cp.Arrange(ctx, check.Service(name))
				a := cp.MergePatch(ctx, name, `{"spec":{"ipFamilyPolicy":"RequireDualStack"}}`)
				Expect(a).To(check.BeAccepted())
				Expect(a.Service.Spec.ClusterIPs).To(HaveLen(2))
				return a.Service.Spec.ClusterIPs[1]
			})
		})

	check.It(spec.AllocDowngradeReleasesSecondary, "frees the secondary address of a Service that becomes single-stack, and only that", check.DualStack(), check.Aside(spec.AllocFreedStaysFree),
		func(ctx context.Context, cp *check.ControlPlane) {
			dual := cp.Arrange(ctx, check.Service("dual", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
			Expect(dual.Spec.ClusterIPs).To(HaveLen(2))
			object := cp.AddressObject(ctx, dual.Spec.ClusterIPs[1])
			a := cp.MergePatch(ctx, "dual", `{"spec":{"ipFamilyPolicy":"SingleStack"}}`)
			Expect(a).To(check.BeAccepted())
			Expect(a.Service.Spec.ClusterIPs).To(HaveExactElements(dual.Spec.ClusterIPs[0]))
			refuseTaken(ctx, cp, dual.Spec.ClusterIPs[0])
			becomesFree(ctx, cp, dual.Spec.ClusterIPs[1], object, check.WithFamilies(cp.OtherFamily()))
		})

	check.It(spec.AllocDeleteReleases, "frees both addresses of a dual-stack Service that is deleted", check.DualStack(), check.Aside(spec.AllocFreedStaysFree),
		func(ctx context.Context, cp *check.ControlPlane) {
			dual := cp.Arrange(ctx, check.Service("dual", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
			var objects []types.UID
			for _, ip := range dual.Spec.ClusterIPs {
				objects = append(objects, cp.AddressObject(ctx, ip))
			}
			Expect(cp.Delete(ctx, "dual")).To(check.BeAccepted())
			for i, ip := range dual.Spec.ClusterIPs {
				becomesFree(ctx, cp, ip, objects[i], check.WithFamilies(familyOf(ip)))
			}
		})
})

// orders is how often a create with two addresses is tried. A server may leave to chance which one it allocates first.
// The one of interest is first in at least one of eight cases, and so in one of so many tries.
var orders = check.TrialsUntil(1. / 8)

// leaveFree lets dual-stack creates fail that name a free address of a family besides a taken one of the other. It
// demands that the free one can be named afterwards.
func leaveFree(ctx context.Context, cp *check.ControlPlane, family corev1.IPFamily, with func(free string) []string) {
	ginkgo.GinkgoHelper()
	cidr := cp.CIDROf(family)
	for range orders {
		free := randomAddress(cp, cidr).String()
		a := cp.Create(ctx, check.Service(cp.Name("refused"), check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack), check.WithClusterIPs(with(free)...)))
		Expect(a).To(check.BeRefused())
		next := cp.Create(ctx, check.Service(cp.Name("next"), check.WithFamilies(family), check.WithClusterIP(free)))
		if !next.Accepted() && cp.AddressesInUse(ctx, cidr)[netip.MustParseAddr(free)] {
			continue // another Service happens to have the address
		}
		Expect(next).To(check.BeAccepted(), "%s was named in a create that was refused because of its other address", free)
	}
}

func familyOf(ip string) corev1.IPFamily {
	if addr, err := netip.ParseAddr(ip); err == nil && addr.Is6() {
		return corev1.IPv6Protocol
	}
	return corev1.IPv4Protocol
}
