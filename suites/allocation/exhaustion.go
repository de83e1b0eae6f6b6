package allocation

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// small is a range with five addresses besides that of the Service "kubernetes". It has no bands.
const small = "10.96.0.0/29"

// deleted is one for checks that delete its ServiceCIDR. Kubernetes 1.33 keeps addresses of it afterwards, which must not be missing elsewhere.
const deleted = "10.96.64.0/29"

var _ = ginkgo.Describe("exhaustion", func() {
	check.It(spec.AllocExhaustedRefused, "refuses a create when nothing is free, stores nothing, and goes on when something is", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			full := exhaust(ctx, cp)
			for range 2 {
				Expect(cp.Create(ctx, check.Service("late"))).To(check.BeExhausted())
			}
			Expect(cp.Get(ctx, "late").Code).To(Equal(404), "the code of reading the refused Service")
			Expect(cp.List(ctx)).To(HaveLen(len(full)), "Services after the refusal")

			Expect(cp.Delete(ctx, full[0].Name)).To(check.BeAccepted())
			check.Converge(ctx, "reuse of the only free address", reuse, func(g Gomega) {
				a := cp.Create(ctx, check.Service("late"))
				g.Expect(a).To(check.BeAccepted())
				g.Expect(a.Service.Spec.ClusterIP).To(Equal(full[0].Spec.ClusterIP))
			})
		})

	check.It(spec.AllocExhaustedOthersUnaffected, "creates Services that need no address", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			Expect(cp.Create(ctx, check.Service("headless", check.Headless()))).To(check.BeAccepted())
			Expect(cp.Create(ctx, check.Service("alias", check.ExternalName("example.org")))).To(check.BeAccepted())
		})

	check.It(spec.AllocExhaustedOthersUnaffected, "refuses an update that needs an address, and leaves the Service as it was", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			alias := cp.Arrange(ctx, check.Service("alias", check.ExternalName("example.org")))
			Expect(cp.MergePatch(ctx, "alias", `{"spec":{"type":"ClusterIP","externalName":null,"ports":[{"port":80}]}}`)).To(check.BeExhausted())
			after := cp.Get(ctx, "alias")
			Expect(after.Service.Spec.Type).To(Equal(corev1.ServiceTypeExternalName))
			Expect(after.Service.ResourceVersion).To(Equal(alias.ResourceVersion), "the version of the Service that was not updated")
		})

	check.It(spec.AllocExhaustedOthersUnaffected, "updates and deletes Services that have an address", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			full := exhaust(ctx, cp)
			for _, body := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"type":"NodePort"}}`, `{"spec":{"type":"ClusterIP"}}`} {
				a := cp.MergePatch(ctx, full[0].Name, body)
				Expect(a).To(check.BeAccepted())
				Expect(a.Service.Spec.ClusterIP).To(Equal(full[0].Spec.ClusterIP))
			}
			Expect(cp.Delete(ctx, full[0].Name)).To(check.BeAccepted())
		})

	check.It(spec.AllocFailureNamed, "says that no address could be allocated when none is free", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			exhaust(ctx, cp)
			speakOfAllocation(cp.Create(ctx, check.Service("late")))
		})

	check.It(spec.AllocUpperBandAgain, "hands out a freed address of the upper band although it has begun with the lower one", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/27"),
		func(ctx context.Context, cp *check.ControlPlane) {
			b := check.BandsOf(cp.CIDR())
			for addr := b.DynamicFirst; addr.Compare(b.Last) <= 0; addr = addr.Next() {
				cp.Arrange(ctx, check.Service(cp.Name("upper"), check.Unserved(), check.WithClusterIP(addr.String())))
			}
			Expect(clusterIP(cp.Create(ctx, check.Service("lower")))).To(check.BeInBand(check.Lower, cp.CIDR()), "with no address of the upper band free")
			Expect(cp.Delete(ctx, "upper-1")).To(check.BeAccepted())
			check.Converge(ctx, "reuse of the upper band", reuse, func(g Gomega) {
				a := cp.Create(ctx, check.Service("again"))
				g.Expect(a).To(check.BeAccepted())
				if !b.InDynamic(clusterIP(a)) { // the freed address is not known to be free yet
					g.Expect(cp.Delete(ctx, "again")).To(check.BeAccepted())
				}
				g.Expect(clusterIP(a)).To(check.BeInBand(check.Upper, cp.CIDR()))
			})
		})
})

// exhaust creates Services until the range has no free address, and returns them.
func exhaust(ctx context.Context, cp *check.ControlPlane) []*corev1.Service {
	ginkgo.GinkgoHelper()
	b := check.BandsOf(cp.CIDR())
	used := cp.AddressesInUse(ctx, cp.CIDR())
	var all []*corev1.Service
	for addr := b.First; addr.Compare(b.Last) <= 0; addr = addr.Next() {
		if !used[addr] {
			all = append(all, cp.Arrange(ctx, check.Service(cp.Name("full"), check.Unserved(), check.WithClusterIP(addr.String()))))
		}
	}
	return all
}
