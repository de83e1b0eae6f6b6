package apischema

import (
	"context"
	"fmt"
	"math/big"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// clusterIPFields are the fields that a refusal of a cluster IP may name: the documents do not say which one it is.
var clusterIPFields = []string{"spec.clusterIP", "spec.clusterIPs", "spec.clusterIPs[0]"}

// clusterIPDemandAddress demands that a cluster IP is an address.
func clusterIPDemandAddress(ip string) {
	ginkgo.GinkgoHelper()
	_, err := netip.ParseAddr(ip)
	Expect(err).NotTo(HaveOccurred(), "the cluster IP must be an address")
}

// clusterIPUnused returns an address of a family that is likely to be free and to stay so. It is one of the lower band,
// which is left for users to choose from.
func clusterIPUnused(ctx context.Context, cp *check.ControlPlane, family corev1.IPFamily) string {
	ginkgo.GinkgoHelper()
	if cidr := cp.CIDROf(family); cidr.IsValid() {
		if bands := check.BandsOf(cidr); bands.Offset > 0 {
			return check.AddressPlus(bands.First, big.NewInt(cp.Rand().Int64N(int64(bands.Offset)))).String()
		}
	}
	name := cp.Name("probe")
	ip := cp.Arrange(ctx, check.Service(name, check.WithFamilies(family))).Spec.ClusterIP
	Expect(cp.Delete(ctx, name)).To(check.BeAccepted())
	return ip
}

// clusterIPClaim creates a Service that names a free address. service gets one that is likely to be free, and another
// one as long as the server refuses it: other checks choose addresses too.
func clusterIPClaim(ctx context.Context, cp *check.ControlPlane, family corev1.IPFamily, service func(ip string) *corev1.Service) (ip string, a check.Response) {
	ginkgo.GinkgoHelper()
	const attempts = 20
	for range attempts {
		ip = clusterIPUnused(ctx, cp, family)
		if a = cp.Create(ctx, service(ip)); a.Accepted() {
			break
		}
	}
	return ip, a
}

// clusterIPFree demands that nobody holds the address: another Service can have it, or somebody else's has it by now.
func clusterIPFree(ctx context.Context, cp *check.ControlPlane, ip string) {
	ginkgo.GinkgoHelper()
	check.Converge(ctx, "use of "+ip, othersPass, func(g Gomega) {
		g.Expect(clusterIPObstacle(ctx, cp, ip)).To(BeEmpty(), "%s should be free", ip)
	})
}

// othersPass bounds how long an address may be taken that no Service has: that of another check comes, or goes, between two looks. What is lost stays so
// for minutes.
const othersPass = 10 * time.Second

// clusterIPObstacle says why an address cannot be had although no Service has it; it is empty if the address is free.
func clusterIPObstacle(ctx context.Context, cp *check.ControlPlane, ip string) string {
	ginkgo.GinkgoHelper()
	a := cp.Create(ctx, check.Service(cp.Name("claim"), check.WithClusterIP(ip)))
	if a.Accepted() {
		return ""
	}
	all, err := cp.Client().CoreV1().Services(metav1.NamespaceAll).List(ctx, metav1.ListOptions{})
	check.Must(err)
	if slices.ContainsFunc(all.Items, func(s corev1.Service) bool { return slices.Contains(s.Spec.ClusterIPs, ip) }) {
		return ""
	}
	return "no Service has it, but " + a.String()
}

// clusterIPFreed demands that an address is free that a Service held. object is that which stood for it while it did.
func clusterIPFreed(ctx context.Context, cp *check.ControlPlane, ip string, object types.UID) {
	ginkgo.GinkgoHelper()
	var obstacle string
	for range 2 { // the object may go between the refusal and the look at it
		if obstacle = clusterIPObstacle(ctx, cp, ip); obstacle == "" {
			return
		}
		if cp.TakenAgain(ctx, ip, object) {
			cp.StaysFree(ctx, ip)
			return
		}
	}
	ginkgo.Fail(fmt.Sprintf("expected %s to be free again\nobserved %s", ip, obstacle))
}

// clusterIPHeld demands that the address is in use: no other Service can have it.
func clusterIPHeld(ctx context.Context, cp *check.ControlPlane, ip string) {
	ginkgo.GinkgoHelper()
	a := cp.Create(ctx, check.Service(cp.Name("claim"), check.WithClusterIP(ip)))
	Expect(a).To(check.BeInvalid(clusterIPFields...), "%s should be in use", ip)
}

// clusterIPOutside returns an address of a family that is in none of the ranges.
func clusterIPOutside(cp *check.ControlPlane, family corev1.IPFamily) string {
	if cidr := cp.CIDROf(family); cidr.IsValid() {
		bands := check.BandsOf(cidr)
		last := bands.Last
		if bands.Broadcast.IsValid() {
			last = bands.Broadcast
		}
		if last.IsValid() && last.Next().IsValid() {
			return last.Next().String()
		}
	}
	if family == corev1.IPv6Protocol {
		return "2001:db8::1"
	}
	return "192.0.2.1"
}

// clusterIPPatch is a merge patch of both fields.
func clusterIPPatch(ip string) string {
	return fmt.Sprintf(`{"spec":{"clusterIP":%q,"clusterIPs":[%q]}}`, ip, ip)
}

var _ = ginkgo.Describe("clusterIP", func() {
	check.It(spec.APIClusterIPAssigned, "is assigned if it is absent or empty", func(ctx context.Context, cp *check.ControlPlane) {
		for name, value := range map[string]string{"absent": `"clusterIP":null`, "empty": `"clusterIP":""`} {
			a := typeCreate(ctx, cp, name, value)
			Expect(a).To(check.BeAccepted(), "clusterIP %s", name)
			clusterIPDemandAddress(typeStored(ctx, cp, name).Spec.ClusterIP)
		}
	})

	check.It(spec.APIClusterIPRandom, "does not come in the order of the range", func(ctx context.Context, cp *check.ControlPlane) {
		var ips []netip.Addr
		for range check.OrderedBy() {
			ip, err := netip.ParseAddr(cp.Arrange(ctx, check.Service(cp.Name("a"))).Spec.ClusterIP)
			Expect(err).NotTo(HaveOccurred(), "the cluster IP must be an address")
			ips = append(ips, ip)
		}
		check.Record("assigned in this order", "%v", ips)
		Expect(slices.IsSortedFunc(ips, netip.Addr.Compare)).To(BeFalse(), "assigned in ascending order: %v", ips)
		Expect(slices.IsSortedFunc(ips, func(a, b netip.Addr) int { return b.Compare(a) })).To(BeFalse(), "assigned in descending order: %v", ips)
	})

	check.It(spec.APIClusterIPChosen, "is the one that the client names", func(ctx context.Context, cp *check.ControlPlane) {
		ip, a := clusterIPClaim(ctx, cp, cp.PrimaryFamily(), func(ip string) *corev1.Service { return check.Service("a", check.WithClusterIP(ip)) })
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.ClusterIP).To(Equal(ip))
	})

	check.It(spec.APIClusterIPOutOfRange, "is refused out of the range", func(ctx context.Context, cp *check.ControlPlane) {
		ip := clusterIPOutside(cp, cp.PrimaryFamily())
		Expect(cp.Create(ctx, check.Service("a", check.WithClusterIP(ip)))).To(check.BeInvalid(clusterIPFields...), "clusterIP %s", ip)
		typeNotStored(ctx, cp, "a")
	})

	check.It(spec.APIClusterIPOutOfRange, "is refused if it is of a family that the cluster does not have", check.SingleStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			ip := clusterIPOutside(cp, cp.OtherFamily())
			Expect(cp.Create(ctx, check.Service("a", check.WithClusterIP(ip)))).To(check.BeInvalid(clusterIPFields...), "clusterIP %s", ip)
			typeNotStored(ctx, cp, "a")
		})

	check.It(spec.APIClusterIPInUse, "is refused if another Service has it", func(ctx context.Context, cp *check.ControlPlane) {
		ip := cp.Arrange(ctx, check.Service("a")).Spec.ClusterIP
		Expect(cp.Create(ctx, check.Service("b", check.WithClusterIP(ip)))).To(check.BeInvalid(clusterIPFields...), "clusterIP %s", ip)
		typeNotStored(ctx, cp, "b")
	})

	check.It(spec.APIClusterIPSyntax, "is refused if it is no address", func(ctx context.Context, cp *check.ControlPlane) {
		for _, ip := range []string{"256.1.1.1", "10.96.0", "10.96.0.300", "abc", " ", "none", "NONE", "10.96.0.10/24", "fd00::g"} {
			name := cp.Name("a")
			Expect(cp.Create(ctx, check.Service(name, check.WithClusterIP(ip)))).To(check.BeInvalid(clusterIPFields...), "clusterIP %q", ip)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APIClusterIPStrict, "is refused in a form that parsers disagree on", func(ctx context.Context, cp *check.ControlPlane) {
		ip := netip.MustParseAddr("10.96.0.10") // a cluster without IPv4 refuses every form
		if cp.CIDROf(corev1.IPv4Protocol).IsValid() {
			ip = netip.MustParseAddr(clusterIPUnused(ctx, cp, corev1.IPv4Protocol))
		}
		b := ip.As4()
		for what, ip := range map[string]string{
			"leading zeros":       fmt.Sprintf("%03d.%03d.%03d.%03d", b[0], b[1], b[2], b[3]),
			"IPv4-mapped address": "::ffff:" + ip.String(),
		} {
			Expect(cp.Create(ctx, check.Service(cp.Name("a"), check.WithClusterIP(ip)))).To(check.BeInvalid(clusterIPFields...), "%s: %s", what, ip)
		}
	})

	check.It(spec.APIClusterIPImmutable, "cannot be changed to another address", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		ip := clusterIPUnused(ctx, cp, cp.PrimaryFamily())
		for _, patch := range []string{
			clusterIPPatch(ip),
			fmt.Sprintf(`{"spec":{"clusterIP":%q}}`, ip),
			fmt.Sprintf(`{"spec":{"clusterIPs":[%q]}}`, ip),
		} {
			Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid(clusterIPFields...), "patch %s", patch)
		}
		typeUnchanged(ctx, cp, before)
		clusterIPFree(ctx, cp, ip)
	})

	check.It(spec.APIClusterIPImmutable, "cannot be changed to None", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		Expect(cp.MergePatch(ctx, "a", clusterIPPatch(corev1.ClusterIPNone))).To(check.BeInvalid(clusterIPFields...))
		typeUnchanged(ctx, cp, before)
		clusterIPHeld(ctx, cp, before.Spec.ClusterIP)
	})

	check.It(spec.APIClusterIPImmutable, "cannot be changed from None to an address", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.Headless()))
		ip := clusterIPUnused(ctx, cp, cp.PrimaryFamily())
		Expect(cp.MergePatch(ctx, "a", clusterIPPatch(ip))).To(check.BeInvalid(clusterIPFields...))
		typeUnchanged(ctx, cp, before)
		clusterIPFree(ctx, cp, ip)
	})

	for _, c := range []struct {
		what   string
		option check.ServiceOption
	}{
		{"an address", func(*corev1.Service) {}},
		{"None", check.Headless()},
	} {
		check.It(spec.APIClusterIPKept, "stays "+c.what+" if an update leaves it out", func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("a", c.option))
			for what, update := range map[string]func() check.Response{
				"a PUT without cluster IPs":  func() check.Response { return cp.Update(ctx, check.Service("a")) },
				"a patch that removes both":  func() check.Response { return cp.MergePatch(ctx, "a", `{"spec":{"clusterIP":null,"clusterIPs":null}}`) },
				"a patch that removes one":   func() check.Response { return cp.MergePatch(ctx, "a", `{"spec":{"clusterIP":null}}`) },
				"a patch that sets it to ''": func() check.Response { return cp.MergePatch(ctx, "a", `{"spec":{"clusterIP":""}}`) },
			} {
				a := update()
				Expect(a).To(check.BeAccepted(), what)
				Expect(a.Service.Spec.ClusterIP).To(Equal(before.Spec.ClusterIP), what)
				Expect(a.Service.Spec.ClusterIPs).To(Equal(before.Spec.ClusterIPs), what)
			}
		})
	}
})

var _ = ginkgo.Describe("a headless Service", func() {
	check.It(spec.APIClusterIPNone, "has None instead of an address", func(ctx context.Context, cp *check.ControlPlane) {
		for name, option := range map[string]check.ServiceOption{
			"singular": check.Headless(),
			"plural":   check.WithClusterIPs(corev1.ClusterIPNone),
		} {
			a := cp.Create(ctx, check.Service(name, option))
			Expect(a).To(check.BeAccepted(), name)
			svc := typeStored(ctx, cp, name)
			Expect(svc.Spec.ClusterIP).To(Equal(corev1.ClusterIPNone), name)
		}
	})

	check.It(spec.APIHeadlessType, "cannot be created as NodePort or LoadBalancer", func(ctx context.Context, cp *check.ControlPlane) {
		for name, option := range map[string]check.ServiceOption{
			"nodeport":     check.OfType(corev1.ServiceTypeNodePort),
			"loadbalancer": typeLoadBalancer(),
		} {
			Expect(cp.Create(ctx, check.Service(name, check.Headless(), option))).To(check.BeInvalid(clusterIPFields...), name)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APIHeadlessType, "cannot be changed to NodePort or LoadBalancer", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.Headless()))
		for _, typ := range []string{`"NodePort"`, `"LoadBalancer","loadBalancerClass":"` + typeClass + `"`} {
			Expect(cp.MergePatch(ctx, "a", `{"spec":{"type":`+typ+`}}`)).To(check.BeInvalid(clusterIPFields...), "type %s", typ)
		}
		typeUnchanged(ctx, cp, before)
	})
})
