package apischema

import (
	"context"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("publishNotReadyAddresses", func() {
	check.It(spec.APIPublishNotReadyAddresses, "is false unless it is set", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(cp.Arrange(ctx, check.Service("ready")).Spec.PublishNotReadyAddresses).To(BeFalse(), "publishNotReadyAddresses is set")
	})

	check.It(spec.APIPublishNotReadyAddresses, "can be switched on and off", func(ctx context.Context, cp *check.ControlPlane) {
		publish := check.With(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
		Expect(cp.Arrange(ctx, check.Service("peers", check.Headless(), publish)).Spec.PublishNotReadyAddresses).To(BeTrue(), "publishNotReadyAddresses is set")
		a := cp.MergePatch(ctx, "peers", `{"spec":{"publishNotReadyAddresses":false}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.PublishNotReadyAddresses).To(BeFalse(), "publishNotReadyAddresses is set")
		Expect(cp.MergePatch(ctx, "peers", `{"spec":{"publishNotReadyAddresses":"true"}}`)).NotTo(check.BeAccepted(), "a text is no boolean")
		a = typeCreate(ctx, cp, "text", `"publishNotReadyAddresses":"true"`)
		Expect(a).To(check.BeRefusedWith(http.StatusBadRequest, metav1.StatusReasonBadRequest), "a text is no boolean")
	})
})
