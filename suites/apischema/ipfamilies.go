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

// ipFamiliesFields are the fields that a refusal of a family may name.
var ipFamiliesFields = []string{"spec.ipFamilies", "spec.ipFamilies[0]", "spec.ipFamilies[1]", "spec.ipFamilies[2]"}

// dualStackCluster is a kind of dual-stack cluster that a check runs on.
type dualStackCluster struct {
	where string // completes the text of the check
	on    check.Option
}

// dualStackClusters differ in their default family, which is IPv4 in most clusters: what follows the order of the ranges is
// checked in both.
var dualStackClusters = []dualStackCluster{
	{"on a dual-stack cluster", check.DualStack()},
	{"on a dual-stack cluster with IPv6 as the default family", func(d *check.Declaration) {
		check.DualStack()(d)
		check.OnServiceCIDR("fd00:10:96::/112,10.96.0.0/16")(d)
	}},
}

func ipFamiliesPatch(families ...corev1.IPFamily) string {
	return fmt.Sprintf(`{"spec":{"ipFamilies":%s}}`, ipFamiliesJSON(families...))
}

func ipFamiliesJSON(families ...corev1.IPFamily) string {
	list := "["
	for i, f := range families {
		if i > 0 {
			list += ","
		}
		list += fmt.Sprintf("%q", f)
	}
	return list + "]"
}

var _ = ginkgo.Describe("ipFamilies", func() {
	check.It(spec.APIIPFamiliesDefault, "is the family of the cluster", check.SingleStack(), func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a"))
		clusterIPsDemandFamilies(typeStored(ctx, cp, "a"), cp.PrimaryFamily())
	})

	for _, c := range dualStackClusters {
		check.It(spec.APIIPFamiliesDefault, "is the default family "+c.where, c.on, func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("a"))
			clusterIPsDemandFamilies(typeStored(ctx, cp, "a"), cp.PrimaryFamily())
		})

		check.It(spec.APIIPFamiliesDefault, "puts the default family first "+c.where, c.on, func(ctx context.Context, cp *check.ControlPlane) {
			for _, policy := range []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack} {
				svc := cp.Arrange(ctx, check.Service(cp.Name("a"), check.WithPolicy(policy)))
				clusterIPsDemandFamilies(svc, cp.PrimaryFamily(), cp.OtherFamily())
			}
		})

		check.It(spec.APIIPFamiliesChosen, "is the family that the client names "+c.where, c.on, func(ctx context.Context, cp *check.ControlPlane) {
			for _, family := range []corev1.IPFamily{cp.PrimaryFamily(), cp.OtherFamily()} {
				a := cp.Create(ctx, check.Service(cp.Name("a"), check.WithFamilies(family)))
				Expect(a).To(check.BeAccepted(), "family %s", family)
				clusterIPsDemandFamilies(a.Service, family)
			}
		})

		check.It(spec.APIIPFamiliesChosen, "has the order that the client names "+c.where, c.on, func(ctx context.Context, cp *check.ControlPlane) {
			p, o := cp.PrimaryFamily(), cp.OtherFamily()
			for _, families := range [][]corev1.IPFamily{{p, o}, {o, p}} {
				for _, policy := range []corev1.IPFamilyPolicy{corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack} {
					a := cp.Create(ctx, check.Service(cp.Name("a"), check.WithFamilies(families...), check.WithPolicy(policy)))
					Expect(a).To(check.BeAccepted(), "families %v, policy %s", families, policy)
					clusterIPsDemandFamilies(a.Service, families...)
				}
			}
		})
	}

	check.It(spec.APIIPFamiliesNotConfigured, "is refused with a family that the cluster does not have", check.SingleStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			p, o := cp.PrimaryFamily(), cp.OtherFamily()
			prefer := check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack)
			for what, options := range map[string][]check.ServiceOption{
				"one family":                   {check.WithFamilies(o)},
				"headless, with a selector":    {check.WithFamilies(o), check.Headless()},
				"both, PreferDualStack":        {check.WithFamilies(p, o), prefer},
				"other first, PreferDualStack": {check.WithFamilies(o, p), prefer},
			} {
				name := cp.Name("a")
				Expect(cp.Create(ctx, check.Service(name, options...))).To(check.BeInvalid(ipFamiliesFields...), what)
				typeNotStored(ctx, cp, name)
			}
		})

	check.It(spec.APIIPFamiliesPolicy, "has one entry unless the policy allows two", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		for what, option := range map[string]check.ServiceOption{
			"no policy":   func(*corev1.Service) {},
			"SingleStack": check.WithPolicy(corev1.IPFamilyPolicySingleStack),
		} {
			svc := check.Service("a", check.WithFamilies(cp.PrimaryFamily(), cp.OtherFamily()), option)
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid("spec.ipFamilyPolicy"), what)
			typeNotStored(ctx, cp, "a")
		}
	})

	check.It(spec.APIIPFamiliesValues, "is refused with anything but IPv4 and IPv6", func(ctx context.Context, cp *check.ControlPlane) {
		for _, family := range []corev1.IPFamily{"IPv5", "ipv4", "IPV6", "inet", ""} {
			name := cp.Name("a")
			Expect(cp.Create(ctx, check.Service(name, check.WithFamilies(family)))).To(check.BeInvalid(ipFamiliesFields...), "family %q", family)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APIIPFamiliesAtMostTwo, "is refused with a family twice", func(ctx context.Context, cp *check.ControlPlane) {
		svc := check.Service("a", check.WithFamilies(cp.PrimaryFamily(), cp.PrimaryFamily()), check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack))
		Expect(cp.Create(ctx, svc)).To(check.BeInvalid(ipFamiliesFields...))
		typeNotStored(ctx, cp, "a")
	})

	check.It(spec.APIIPFamiliesAtMostTwo, "is refused with three entries", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		p, o := cp.PrimaryFamily(), cp.OtherFamily()
		for _, families := range [][]corev1.IPFamily{{p, o, p}, {p, o, o}} {
			svc := check.Service("a", check.WithFamilies(families...), check.WithPolicy(corev1.IPFamilyPolicyPreferDualStack))
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid(ipFamiliesFields...), "families %v", families)
			typeNotStored(ctx, cp, "a")
		}
	})

	check.It(spec.APIIPFamiliesPrimaryImmutable, "cannot be replaced", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		Expect(cp.MergePatch(ctx, "a", ipFamiliesPatch(cp.OtherFamily()))).To(check.BeInvalid())
		typeUnchanged(ctx, cp, before)
	})

	check.It(spec.APIIPFamiliesPrimaryImmutable, "cannot be swapped", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
		Expect(before.Spec.ClusterIPs).To(HaveLen(2))
		p, o := cp.PrimaryFamily(), cp.OtherFamily()
		for what, patch := range map[string]string{
			"families alone": ipFamiliesPatch(o, p),
			"addresses too": fmt.Sprintf(`{"spec":{"ipFamilies":%s,"clusterIP":%q,"clusterIPs":[%q,%q]}}`, ipFamiliesJSON(o, p),
				before.Spec.ClusterIPs[1], before.Spec.ClusterIPs[1], before.Spec.ClusterIPs[0]),
		} {
			Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid(), what)
		}
		typeUnchanged(ctx, cp, before)
	})

	check.It(spec.APIIPFamiliesPrimaryImmutable, "cannot lose its first entry with the policy", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.WithPolicy(corev1.IPFamilyPolicyRequireDualStack)))
		patch := fmt.Sprintf(`{"spec":{"ipFamilyPolicy":"SingleStack","ipFamilies":%s}}`, ipFamiliesJSON(cp.OtherFamily()))
		Expect(cp.MergePatch(ctx, "a", patch)).To(check.BeInvalid())
		typeUnchanged(ctx, cp, before)
	})
})

var _ = ginkgo.Describe("the families of a headless Service", func() {
	check.It(spec.APIHeadlessFamilies, "are that of the cluster", check.SingleStack(), func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.Headless()))
		headlessDemandFamilies(typeStored(ctx, cp, "a"), corev1.IPFamilyPolicySingleStack, cp.PrimaryFamily())
	})

	for _, c := range dualStackClusters {
		check.It(spec.APIHeadlessFamilies, "follow policy and families "+c.where, c.on, func(ctx context.Context, cp *check.ControlPlane) {
			p, o := cp.PrimaryFamily(), cp.OtherFamily()
			single, prefer, require := corev1.IPFamilyPolicySingleStack, corev1.IPFamilyPolicyPreferDualStack, corev1.IPFamilyPolicyRequireDualStack
			headlessDemandFamilies(cp.Arrange(ctx, check.Service("default", check.Headless())), single, p)
			headlessDemandFamilies(cp.Arrange(ctx, check.Service("other", check.Headless(), check.WithFamilies(o))), single, o)
			headlessDemandFamilies(cp.Arrange(ctx, check.Service("prefer", check.Headless(), check.WithPolicy(prefer))), prefer, p, o)
			headlessDemandFamilies(cp.Arrange(ctx, check.Service("require", check.Headless(), check.WithPolicy(require), check.WithFamilies(o))), require, o, p)
		})
	}

	check.It(spec.APIHeadlessSelectorlessFamilies, "are both without selector on a single-stack cluster", check.SingleStack(),
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("a", check.Headless(), headlessSelectorless()))
			headlessDemandFamilies(svc, corev1.IPFamilyPolicyRequireDualStack, cp.PrimaryFamily(), cp.OtherFamily())
		})

	for _, c := range dualStackClusters {
		check.It(spec.APIHeadlessSelectorlessFamilies, "are both without selector "+c.where, c.on, func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("a", check.Headless(), headlessSelectorless()))
			headlessDemandFamilies(svc, corev1.IPFamilyPolicyRequireDualStack, cp.PrimaryFamily(), cp.OtherFamily())
		})
	}

	check.It(spec.APIHeadlessPrimaryFamilyImmutable, "cannot be replaced", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a", check.Headless()))
		Expect(cp.MergePatch(ctx, "a", ipFamiliesPatch(cp.OtherFamily()))).To(check.BeInvalid())
		typeUnchanged(ctx, cp, before)
	})

	check.It(spec.APIHeadlessPrimaryFamilyImmutable, "stay if an update leaves them out", check.DualStack(), func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("a", check.Headless(), check.WithFamilies(cp.OtherFamily())))
		a := cp.Update(ctx, check.Service("a", check.Headless()))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.IPFamilies).To(Equal([]corev1.IPFamily{cp.OtherFamily()}))
	})
})

func headlessSelectorless() check.ServiceOption {
	return func(s *corev1.Service) { s.Spec.Selector = nil }
}

// headlessDemandFamilies demands policy and families of a Service without addresses.
func headlessDemandFamilies(svc *corev1.Service, policy corev1.IPFamilyPolicy, families ...corev1.IPFamily) {
	ginkgo.GinkgoHelper()
	Expect(svc.Spec.IPFamilies).To(Equal(families), "ipFamilies of %s", svc.Name)
	Expect(svc.Spec.IPFamilyPolicy).To(HaveValue(Equal(policy)), "ipFamilyPolicy of %s", svc.Name)
	Expect(svc.Spec.ClusterIPs).To(Equal([]string{corev1.ClusterIPNone}), "clusterIPs of %s", svc.Name)
}
