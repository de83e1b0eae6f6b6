package apischema

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// ipFamilyPolicyPatch is a merge patch of the policy alone.
func ipFamilyPolicyPatch(policy corev1.IPFamilyPolicy) string {
	return `{"spec":{"ipFamilyPolicy":"` + string(policy) + `"}}`
}

func ipFamilyPolicyDemand(svc *corev1.Service, policy corev1.IPFamilyPolicy) {
	ginkgo.GinkgoHelper()
	Expect(svc.Spec.IPFamilyPolicy).To(HaveValue(Equal(policy)), "ipFamilyPolicy")
}

var _ = ginkgo.Describe("ipFamilyPolicy", func() {
	for _, c := range append([]dualStackCluster{{"on a single-stack cluster", check.SingleStack()}}, dualStackClusters...) {
		check.It(spec.APIIPFamilyPolicyDefault, "is SingleStack "+c.where, c.on, func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("a"))
			svc := typeStored(ctx, cp, "a")
			ipFamilyPolicyDemand(svc, corev1.IPFamilyPolicySingleStack)
			Expect(svc.Spec.ClusterIPs).To(HaveLen(1))
		})
	}

	check.It(spec.APIIPFamilyPolicyKept, "stays dual-stack if an update leaves it out", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		for _, policy := range []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack} {
			name := cp.Name("a")
			before := cp.Arrange(ctx, check.Service(name, check.WithPolicy(policy)))
			Expect(before.Spec.ClusterIPs).To(HaveLen(2))
			a := cp.Update(ctx, check.Service(name))
			Expect(a).To(check.BeAccepted())
			ipFamilyPolicyDemand(a.Service, policy)
			Expect(a.Service.Spec.IPFamilies).To(Equal(before.Spec.IPFamilies))
			Expect(a.Service.Spec.ClusterIPs).To(Equal(before.Spec.ClusterIPs))
		}
	})

	check.It(spec.APIIPFamilyPolicyKept, "stays of the other family if an update leaves it out", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.WithFamilies(cp.OtherFamily())))
		a := cp.Update(ctx, check.Service("a"))
		Expect(a).To(check.BeAccepted())
		ipFamilyPolicyDemand(a.Service, corev1.IPFamilyPolicySingleStack)
		clusterIPsDemandFamilies(a.Service, cp.OtherFamily())
		Expect(a.Service.Spec.ClusterIPs).To(Equal(before.Spec.ClusterIPs))
	})

	check.It(spec.APIIPFamilyPolicyValues, "is one of three", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		for _, policy := range []corev1.IPFamilyPolicy{
			corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack,
		} {
			a := cp.Create(ctx, check.Service(cp.Name("a"), check.WithPolicy(policy)))
			Expect(a).To(check.BeAccepted(), "policy %s", policy)
			ipFamilyPolicyDemand(a.Service, policy)
		}
	})

	check.It(spec.APIIPFamilyPolicyValues, "is refused if it is none of the three", func(ctx context.Context, cp *check.ControlPlane) {
		for _, policy := range []corev1.IPFamilyPolicy{"Bogus", "singlestack", "DualStack", "PreferDualstack", ""} {
			name := cp.Name("a")
			Expect(cp.Create(ctx, check.Service(name, check.WithPolicy(policy)))).To(check.BeInvalid("spec.ipFamilyPolicy"), "policy %q", policy)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APISingleStack, "of SingleStack gives one address", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		single := check.WithPolicy(corev1.IPFamilyPolicySingleStack)
		clusterIPsDemandFamilies(cp.Arrange(ctx, check.Service("default", single)), cp.PrimaryFamily())
		clusterIPsDemandFamilies(cp.Arrange(ctx, check.Service("other", single, check.WithFamilies(cp.OtherFamily()))), cp.OtherFamily())
	})

	check.It(spec.APIPreferDualStack, "of PreferDualStack gives an address of each family", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack)))
		clusterIPsDemandFamilies(svc, cp.PrimaryFamily(), cp.OtherFamily())
		for _, ip := range svc.Spec.ClusterIPs {
			clusterIPHeld(ctx, cp, ip)
		}
	})

	check.It(spec.APIPreferDualStackOnSingleStack, "of PreferDualStack gives one address where there is one family", check.SingleStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack)))
			Expect(a).To(check.BeAccepted())
			ipFamilyPolicyDemand(a.Service, corev1.IPFamilyPolicyPreferDualStack)
			clusterIPsDemandFamilies(a.Service, cp.PrimaryFamily())
		})

	check.It(spec.APIPreferDualStackOnSingleStack, "can be changed to PreferDualStack where there is one family", check.SingleStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("a"))
			a := cp.MergePatch(ctx, "a", ipFamilyPolicyPatch(corev1.IPFamilyPolicyPreferDualStack))
			Expect(a).To(check.BeAccepted())
			ipFamilyPolicyDemand(a.Service, corev1.IPFamilyPolicyPreferDualStack)
			Expect(a.Service.Spec.ClusterIPs).To(Equal(before.Spec.ClusterIPs))
		})

	check.It(spec.APIRequireDualStack, "of RequireDualStack gives an address of each family", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
		clusterIPsDemandFamilies(svc, cp.PrimaryFamily(), cp.OtherFamily())
		for _, ip := range svc.Spec.ClusterIPs {
			clusterIPHeld(ctx, cp, ip)
		}
	})

	check.It(spec.APIRequireDualStackOnSingleStack, "of RequireDualStack is refused where there is one family", check.SingleStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			require := check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)
			for name, options := range map[string][]check.ServiceOption{
				"with-address": {require},
				"with-family":  {require, check.WithFamilies(cp.PrimaryFamily())},
				"headless":     {require, check.Headless()},
				"nodeport":     {require, check.OfType(corev1.ServiceTypeNodePort)},
			} {
				Expect(cp.Create(ctx, check.Service(name, options...))).To(check.BeInvalid("spec.ipFamilyPolicy"), name)
				typeNotStored(ctx, cp, name)
			}
		})

	check.It(spec.APIRequireDualStackOnSingleStack, "cannot be changed to RequireDualStack where there is one family", check.SingleStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			before := cp.Arrange(ctx, check.Service("a"))
			Expect(cp.MergePatch(ctx, "a", ipFamilyPolicyPatch(corev1.IPFamilyPolicyRequireDualStack))).To(check.BeInvalid("spec.ipFamilyPolicy"))
			typeUnchanged(ctx, cp, before)
		})

	for _, c := range dualStackClusters {
		check.It(spec.APIDualStackCompletesFamilies, "adds the family that is missing "+c.where, c.on, func(ctx context.Context, cp *check.ControlPlane) {
			p, o := cp.PrimaryFamily(), cp.OtherFamily()
			for _, policy := range []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack} {
				for first, second := range map[corev1.IPFamily]corev1.IPFamily{p: o, o: p} {
					svc := cp.Arrange(ctx, check.Service(cp.Name("a"), check.WithPolicy(policy), check.WithFamilies(first)))
					clusterIPsDemandFamilies(svc, first, second)
				}
			}
		})
	}
})
