package apischema

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// distributionOf sets spec.trafficDistribution.
func distributionOf(preference string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.TrafficDistribution = new(preference) })
}

// distributionKept demands that the preferences are accepted and come back.
func distributionKept(ctx context.Context, cp *check.ControlPlane, preferences ...string) {
	ginkgo.GinkgoHelper()
	for _, p := range preferences {
		a := cp.Create(ctx, check.Service(cp.Name("near"), distributionOf(p)))
		Expect(a).To(check.BeAccepted(), "trafficDistribution %s", p)
		Expect(a.Service.Spec.TrafficDistribution).To(HaveValue(Equal(p)))
	}
}

// topologyAnnotated adds the topology annotation and its deprecated form; an empty value leaves one out.
func topologyAnnotated(mode, hints string) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		s.Annotations = map[string]string{}
		if mode != "" {
			s.Annotations[corev1.AnnotationTopologyMode] = mode
		}
		if hints != "" {
			s.Annotations[corev1.DeprecatedAnnotationTopologyAwareHints] = hints
		}
	})
}

var _ = ginkgo.Describe("trafficDistribution", func() {
	check.It(spec.APITrafficDistributionOptional, "is absent unless it is set, and can be removed", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(cp.Arrange(ctx, check.Service("anywhere")).Spec.TrafficDistribution).To(BeNil())
		cp.Arrange(ctx, check.Service("near", distributionOf(corev1.ServiceTrafficDistributionPreferClose)))
		a := cp.MergePatch(ctx, "near", `{"spec":{"trafficDistribution":null}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.TrafficDistribution).To(BeNil())
	})

	check.It(spec.APITrafficDistributionPreferClose, "may be PreferClose", func(ctx context.Context, cp *check.ControlPlane) {
		distributionKept(ctx, cp, corev1.ServiceTrafficDistributionPreferClose)
	})

	check.It(spec.APITrafficDistributionPreferSame, "may be PreferSameZone or PreferSameNode", func(ctx context.Context, cp *check.ControlPlane) {
		distributionKept(ctx, cp, corev1.ServiceTrafficDistributionPreferSameZone, corev1.ServiceTrafficDistributionPreferSameNode)
	})

	check.It(spec.APITrafficDistributionUnknown, "may be nothing that Kubernetes does not define", func(ctx context.Context, cp *check.ControlPlane) {
		for _, p := range []string{"", "preferClose", "PreferFar"} {
			Expect(cp.Create(ctx, check.Service(cp.Name("far"), distributionOf(p)))).To(check.BeInvalid("spec.trafficDistribution"), "trafficDistribution %q", p)
		}
	})
})

var _ = ginkgo.Describe("the topology annotation", func() {
	check.It(spec.APITopologyAnnotation, "is accepted in its present and in its deprecated form", func(ctx context.Context, cp *check.ControlPlane) {
		for _, form := range [][2]string{{"Auto", ""}, {"", "Auto"}, {"Auto", "Auto"}} {
			sent := check.Service(cp.Name("topology"), topologyAnnotated(form[0], form[1]))
			a := cp.Create(ctx, sent)
			Expect(a).To(check.BeAccepted(), "annotations %v", sent.Annotations)
			Expect(a.Service.Annotations).To(Equal(sent.Annotations))
		}
	})

	check.It(spec.APITopologyAnnotationMismatch, "is refused where its forms differ", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("topology", topologyAnnotated("Auto", "Disabled")))
		Expect(a).To(check.BeInvalid("metadata.annotations[" + corev1.AnnotationTopologyMode + "]"))
		typeNotStored(ctx, cp, "topology")
	})
})
