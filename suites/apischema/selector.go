package apischema

import (
	"context"
	"fmt"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// selectorOf sets spec.selector.
func selectorOf(selector map[string]string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.Selector = selector })
}

var _ = ginkgo.Describe("the selector", func() {
	check.It(spec.APISelectorOptional, "may be absent or empty", func(ctx context.Context, cp *check.ControlPlane) {
		some := selectorOf(map[string]string{"app": "a"})
		for _, selector := range []map[string]string{nil, {}} {
			svc := acceptedUnlike(ctx, cp, selectorOf(selector), some, nil)
			Expect(svc.Spec.Selector).To(BeEmpty())
		}
		a := cp.Create(ctx, check.Service("selecting", some))
		if !a.Accepted() {
			check.Abort("there is no Service to update, for one with a selector was refused: %s", a)
		}
		svc := a.Service
		svc.Spec.Selector = nil
		a = cp.Update(ctx, svc)
		Expect(a).To(check.BeAccepted(), "an update that removes the selector")
		Expect(a.Service.Spec.Selector).To(BeEmpty())
	})

	check.It(spec.APISelectorExternalName, "does no harm to type ExternalName", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("alias", check.ExternalName("example.com"), selectorOf(map[string]string{"app": "a"})))
		Expect(a).To(check.BeAccepted())
	})

	check.It(spec.APISelectorSyntax, "may have any label", func(ctx context.Context, cp *check.ControlPlane) {
		selector := map[string]string{"app": "", "example.com/tier": "Front_end.1", strings.Repeat("k", 63): strings.Repeat("v", 63)}
		a := cp.Create(ctx, check.Service("labels", selectorOf(selector)))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.Selector).To(Equal(selector))
	})

	check.It(spec.APISelectorSyntax, "may have nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		for _, label := range [][2]string{
			{"a b", "v"}, {"", "v"}, {strings.Repeat("k", 64), "v"}, {"Upper.com/k", "v"},
			{"k", "a b"}, {"k", "-v"}, {"k", strings.Repeat("v", 64)},
		} {
			// Whether the path ends in the key depends on the version.
			Expect(cp.Create(ctx, check.Service(cp.Name("label"), selectorOf(map[string]string{label[0]: label[1]})))).
				To(check.BeInvalid("spec.selector", fmt.Sprintf("spec.selector[%s]", label[0])), "label %q: %q", label[0], label[1])
		}
	})
})
