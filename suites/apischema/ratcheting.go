package apischema

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("a value that older rules let pass", func() {
	check.It(spec.APIRatcheting, "stays valid while an update changes something else", check.Exclusive(), check.OnServiceCIDR("10.96.0.0/24"),
		func(ctx context.Context, cp *check.ControlPlane) {
			older := cp.Another(ctx, map[string]bool{"StrictIPCIDRValidation": false})
			for _, v := range olderValues {
				if v.feature != "" && !cp.Claims(v.feature) {
					continue
				}
				name := cp.Name("older")
				svc := check.Service(name, v.with)
				Expect(cp.Create(ctx, svc)).To(check.BeRefused(), "a new Service with a sloppy %s", v.what)
				stored := older.Arrange(ctx, svc)
				Expect(v.of(stored)).To(Equal(v.of(svc)), "the %s that the other API server stored", v.what)
				for _, body := range []string{`{"metadata":{"labels":{"a":"b"}}}`, `{"spec":{"ports":[{"port":81}]}}`} {
					a := cp.MergePatch(ctx, name, body)
					Expect(a).To(check.BeAccepted(), "%s of a Service with a stored %s", body, v.what)
					Expect(v.of(a.Service)).To(Equal(v.of(svc)), "the %s after the update", v.what)
				}
				Expect(cp.Delete(ctx, name)).To(check.BeAccepted())
			}
		})
})

// olderValues are what an API server without strict validation of addresses accepts (KEP-4858).
var olderValues = []struct {
	what, feature string
	with          check.ServiceOption
	of            func(*corev1.Service) string
}{
	{
		"cluster IP", "", check.WithClusterIP("10.096.0.200"), func(s *corev1.Service) string { return s.Spec.ClusterIP },
	},
	{
		"external IP", spec.FeatureExternalIPs, func(s *corev1.Service) { s.Spec.ExternalIPs = []string{"192.0.02.10"} },
		func(s *corev1.Service) string { return s.Spec.ExternalIPs[0] },
	},
	{
		"source range", spec.FeatureSourceRanges, func(s *corev1.Service) {
			s.Spec.Type, s.Spec.LoadBalancerSourceRanges = corev1.ServiceTypeLoadBalancer, []string{"192.0.2.1/24"}
		},
		func(s *corev1.Service) string { return s.Spec.LoadBalancerSourceRanges[0] },
	},
}
