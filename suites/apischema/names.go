package apischema

import (
	"context"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// namesService is a Service with any name: the selector, whose values have a syntax of their own, is left out.
func namesService(name string) *corev1.Service {
	return check.Service(name, check.With(func(s *corev1.Service) { s.Spec.Selector = nil }))
}

var _ = ginkgo.Describe("a name", func() {
	check.It(spec.APINameLabel, "may be any DNS label",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, name := range []string{"a", "with-dash", "a--b", "a1", "z9-z", strings.Repeat("l", 63)} {
				Expect(cp.Create(ctx, namesService(name))).To(check.BeAccepted(), "name %q", name)
				Expect(cp.Get(ctx, name).Service).To(HaveField("Name", name))
			}
		})

	check.It(spec.APINameLabel, "may be nothing but a DNS label",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, name := range []string{strings.Repeat("l", 64), "-dash", "dash-", "-", "Upper", "with.dot", "under_score", "with space", "ünïcode", "*"} {
				Expect(cp.Create(ctx, namesService(name))).To(check.BeInvalid("metadata.name"), "name %q", name)
			}
			Expect(cp.List(ctx)).To(BeEmpty(), "refused Services must not be stored")
		})

	check.It(spec.APINameLeadingDigit, "may begin with a digit", check.Versions(">=1.36"),
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, name := range []string{"1", "0abc", "9-9"} {
				Expect(cp.Create(ctx, namesService(name))).To(check.BeAccepted(), "name %q", name)
			}
		})

	check.It(spec.APINameLeadingDigit, "begins with a letter", check.Versions("<1.36"),
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, name := range []string{"1", "0abc", "9-9"} {
				Expect(cp.Create(ctx, namesService(name))).To(check.BeInvalid("metadata.name"), "name %q", name)
			}
			Expect(cp.List(ctx)).To(BeEmpty(), "refused Services must not be stored")
		})
})
