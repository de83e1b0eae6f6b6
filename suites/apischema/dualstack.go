package apischema

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// dualStackPolicies are those that give a Service two families where there are two.
var dualStackPolicies = []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack}

// None of these checks demands that nobody else can get the address that an upgrade assigns: that is a matter of allocation.
var _ = ginkgo.Describe("the upgrade to dual-stack", func() {
	for _, c := range dualStackClusters {
		for _, policy := range dualStackPolicies {
			check.It(spec.APIDualStackUpgrade, "to "+string(policy)+" adds the second family and address "+c.where, c.on,
				func(ctx context.Context, cp *check.ControlPlane) {
					p, o := cp.PrimaryFamily(), cp.OtherFamily()
					for first, second := range map[corev1.IPFamily]corev1.IPFamily{p: o, o: p} {
						name := cp.Name("a")
						before := cp.Arrange(ctx, check.Service(name, check.WithFamilies(first)))
						Expect(cp.MergePatch(ctx, name, ipFamilyPolicyPatch(policy))).To(check.BeAccepted())
						after := typeStored(ctx, cp, name)
						ipFamilyPolicyDemand(after, policy)
						clusterIPsDemandFamilies(after, first, second)
						Expect(after.Spec.ClusterIP).To(Equal(before.Spec.ClusterIP), "the primary address must stay")
					}
				})
		}
	}

	check.It(spec.APIDualStackUpgrade, "takes the families that the client spells out", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		p, o := cp.PrimaryFamily(), cp.OtherFamily()
		patch := fmt.Sprintf(`{"spec":{"ipFamilyPolicy":"RequireDualStack","ipFamilies":%s}}`, ipFamiliesJSON(p, o))
		Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeAccepted())
		after := typeStored(ctx, cp, "a")
		clusterIPsDemandFamilies(after, p, o)
		Expect(after.Spec.ClusterIP).To(Equal(before.Spec.ClusterIP), "the primary address must stay")
	})

	check.It(spec.APIDualStackUpgrade, "takes the second address that the client names", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		var ips []string
		var a check.Response
		for range 20 { // other checks choose addresses too
			ips = []string{before.Spec.ClusterIP, clusterIPUnused(ctx, cp, cp.OtherFamily())}
			if a = cp.MergePatch(ctx, "a", fmt.Sprintf(`{"spec":{"ipFamilyPolicy":"PreferDualStack","clusterIPs":[%q,%q]}}`, ips[0], ips[1])); a.Accepted() {
				break
			}
		}
		Expect(a).To(check.BeAccepted())
		after := typeStored(ctx, cp, "a")
		clusterIPsDemandFamilies(after, cp.PrimaryFamily(), cp.OtherFamily())
		Expect(after.Spec.ClusterIPs).To(Equal(ips))
	})

	check.It(spec.APIDualStackUpgradeRefused, "changes nothing if the second address is in use or out of range", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			taken := cp.Arrange(ctx, check.Service("other", check.WithFamilies(cp.OtherFamily()))).Spec.ClusterIP
			before := cp.Arrange(ctx, check.Service("a"))
			for what, second := range map[string]string{"in use": taken, "out of range": clusterIPOutside(cp, cp.OtherFamily())} {
				patch := fmt.Sprintf(`{"spec":{"ipFamilyPolicy":"PreferDualStack","clusterIPs":[%q,%q]}}`, before.Spec.ClusterIP, second)
				Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid(clusterIPsFields...), what)
			}
			typeUnchanged(ctx, cp, before)
		})

	check.It(spec.APIDualStackUpgradeRefused, "keeps no second address if something else is wrong", check.DualStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("a"))
			ip := clusterIPUnused(ctx, cp, cp.OtherFamily())
			patch := fmt.Sprintf(`{"spec":{"ipFamilyPolicy":"PreferDualStack","clusterIPs":[%q,%q],"sessionAffinity":"Bogus"}}`, before.Spec.ClusterIP, ip)
			Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid())
			typeUnchanged(ctx, cp, before)
			clusterIPFree(ctx, cp, ip)
		})

	check.It(spec.APIIPFamiliesSecondaryNeedsPolicy, "is refused without a dual-stack policy", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		for what, patch := range map[string]string{
			"a second family":  ipFamiliesPatch(cp.PrimaryFamily(), cp.OtherFamily()),
			"a second address": fmt.Sprintf(`{"spec":{"clusterIPs":[%q,%q]}}`, before.Spec.ClusterIP, clusterIPUnused(ctx, cp, cp.OtherFamily())),
		} {
			Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid("spec.ipFamilyPolicy"), what)
		}
		typeUnchanged(ctx, cp, before)
	})
})

var _ = ginkgo.Describe("the downgrade to single-stack", func() {
	for _, c := range dualStackClusters {
		for _, policy := range dualStackPolicies {
			check.It(spec.APIDualStackDowngrade, "from "+string(policy)+" removes the second family and frees the address "+c.where, c.on, check.Aside(spec.AllocFreedStaysFree),
				func(ctx context.Context, cp *check.ControlPlane) {
					p, o := cp.PrimaryFamily(), cp.OtherFamily()
					for first, second := range map[corev1.IPFamily]corev1.IPFamily{p: o, o: p} {
						name := cp.Name("a")
						before := cp.Arrange(ctx, check.Service(name, check.WithPolicy(policy), check.WithFamilies(first, second)))
						Expect(before.Spec.ClusterIPs).To(HaveLen(2))
						object := cp.AddressObject(ctx, before.Spec.ClusterIPs[1])
						Expect(cp.MergePatch(ctx, name, ipFamilyPolicyPatch(corev1.IPFamilyPolicySingleStack))).To(check.BeAccepted())
						after := typeStored(ctx, cp, name)
						ipFamilyPolicyDemand(after, corev1.IPFamilyPolicySingleStack)
						clusterIPsDemandFamilies(after, first)
						Expect(after.Spec.ClusterIP).To(Equal(before.Spec.ClusterIP), "the primary address must stay")
						clusterIPHeld(ctx, cp, before.Spec.ClusterIPs[0])
						clusterIPFreed(ctx, cp, before.Spec.ClusterIPs[1], object)
					}
				})
		}
	}

	check.It(spec.APIDualStackDowngrade, "takes the lists that the client spells out", check.DualStack(), check.Aside(spec.AllocFreedStaysFree), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
		Expect(before.Spec.ClusterIPs).To(HaveLen(2))
		object := cp.AddressObject(ctx, before.Spec.ClusterIPs[1])
		patch := fmt.Sprintf(`{"spec":{"ipFamilyPolicy":"SingleStack","ipFamilies":%s,"clusterIPs":[%q]}}`, ipFamiliesJSON(cp.PrimaryFamily()), before.Spec.ClusterIP)
		Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeAccepted())
		after := typeStored(ctx, cp, "a")
		clusterIPsDemandFamilies(after, cp.PrimaryFamily())
		Expect(after.Spec.ClusterIP).To(Equal(before.Spec.ClusterIP), "the primary address must stay")
		clusterIPFreed(ctx, cp, before.Spec.ClusterIPs[1], object)
	})

	for _, policy := range dualStackPolicies {
		check.It(spec.APIIPFamiliesRemovalNeedsSingleStack, "is refused while the policy is "+string(policy), check.DualStack(),
			func(ctx context.Context, cp *check.ControlPlane) {
				before := cp.Arrange(ctx, check.Service("a", check.WithPolicy(policy)))
				Expect(before.Spec.ClusterIPs).To(HaveLen(2))
				for what, patch := range map[string]string{
					"without the second family":  ipFamiliesPatch(cp.PrimaryFamily()),
					"without the second address": fmt.Sprintf(`{"spec":{"clusterIPs":[%q]}}`, before.Spec.ClusterIP),
				} {
					Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid("spec.ipFamilyPolicy"), what)
				}
				typeUnchanged(ctx, cp, before)
				clusterIPHeld(ctx, cp, before.Spec.ClusterIPs[1])
			})
	}
})

var _ = ginkgo.Describe("a change of the dual-stack policy", func() {
	check.It(spec.APIDualStackPolicyChange, "keeps families and addresses", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		for from, to := range map[corev1.IPFamilyPolicy]corev1.IPFamilyPolicy{
			corev1.IPFamilyPolicyPreferDualStack:  corev1.IPFamilyPolicyRequireDualStack,
			corev1.IPFamilyPolicyRequireDualStack: corev1.IPFamilyPolicyPreferDualStack,
		} {
			name := cp.Name("a")
			before := cp.Arrange(ctx, check.Service(name, check.WithPolicy(from)))
			Expect(before.Spec.ClusterIPs).To(HaveLen(2))
			Expect(cp.MergePatch(ctx, name, ipFamilyPolicyPatch(to))).To(check.BeAccepted(), "from %s", from)
			after := typeStored(ctx, cp, name)
			ipFamilyPolicyDemand(after, to)
			Expect(after.Spec.IPFamilies).To(Equal(before.Spec.IPFamilies), "from %s", from)
			Expect(after.Spec.ClusterIPs).To(Equal(before.Spec.ClusterIPs), "from %s", from)
		}
	})
})
