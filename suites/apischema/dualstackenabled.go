package apischema

import (
	"context"
	"net/netip"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	// enabledRange is that of a single-stack cluster, enabledSecond what it gets beside it.
	enabledRange, enabledSecond = "10.96.0.0/24", "fd00:10:96::/112"
	// rangeUsed bounds how long a range may be unused that a server was restarted with.
	rangeUsed = 30 * time.Second
)

var _ = ginkgo.Describe("a cluster that becomes dual-stack", func() {
	check.It(spec.APIDualStackEnabledExisting, "leaves Services that exist as they are", check.Exclusive(), check.OnServiceCIDR(enabledRange),
		func(ctx context.Context, cp *check.ControlPlane) {
			before := []*corev1.Service{
				cp.Arrange(ctx, check.Service("default")),
				cp.Arrange(ctx, check.Service("prefer", check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack))),
				cp.Arrange(ctx, check.Service("headless", check.Headless())),
			}
			becomeDualStack(ctx, cp)
			for _, old := range before {
				a := cp.Get(ctx, old.Name)
				Expect(a).To(check.BeAccepted(), old.Name)
				Expect(a.Service.Spec.IPFamilyPolicy).To(Equal(old.Spec.IPFamilyPolicy), old.Name)
				Expect(a.Service.Spec.ClusterIPs).To(Equal(old.Spec.ClusterIPs), old.Name)
				Expect(a.Service.Spec.IPFamilies).To(Equal(old.Spec.IPFamilies), old.Name)
			}
		})

	check.It(spec.APIDualStackEnabledNew, "gives new Services that prefer it two addresses", check.Exclusive(), check.OnServiceCIDR(enabledRange),
		func(ctx context.Context, cp *check.ControlPlane) {
			becomeDualStack(ctx, cp)
			check.Converge(ctx, "use of the second range", rangeUsed, func(g Gomega) {
				a := cp.Create(ctx, check.Service(cp.Name("new"), check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack)))
				g.Expect(a).To(check.BeAccepted())
				g.Expect(a.Service.Spec.IPFamilies).To(Equal([]corev1.IPFamily{corev1.IPv4Protocol, corev1.IPv6Protocol}))
				g.Expect(a.Service.Spec.ClusterIPs).To(HaveLen(2))
			})
		})
})

// becomeDualStack restarts the server with a range of each family.
func becomeDualStack(ctx context.Context, cp *check.ControlPlane) {
	cp.Restart(ctx, netip.MustParsePrefix(enabledRange), netip.MustParsePrefix(enabledSecond))
}
