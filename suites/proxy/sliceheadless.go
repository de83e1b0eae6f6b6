package proxy

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("the label for headless Services", func() {
	check.It(spec.ProxySliceHeadlessLabel, "is on the EndpointSlices of headless Services, and on no others", func(ctx context.Context, net *check.Network) {
		podObjects(ctx, net, "app", 1, net.Node(0))
		headless := net.Expose(ctx, check.Service("headless", selecting("app"), check.Headless()))
		plain := net.Expose(ctx, check.Service("plain", selecting("app"), check.With(func(s *corev1.Service) {
			s.Labels = map[string]string{corev1.IsHeadlessService: "", "mark": "1"}
		})))
		generated(ctx, net, headless, "a headless Service is created", func(g Gomega, found []discoveryv1.EndpointSlice) {
			g.Expect(addressesIn(found)).To(HaveLen(1))
			for _, s := range found {
				g.Expect(s.Labels).To(HaveKeyWithValue(corev1.IsHeadlessService, ""), "labels of the slice")
			}
		})
		generated(ctx, net, plain, "a Service with a cluster IP is created, which has the label itself", func(g Gomega, found []discoveryv1.EndpointSlice) {
			g.Expect(addressesIn(found)).To(HaveLen(1))
			for _, s := range found {
				g.Expect(s.Labels).NotTo(HaveKey(corev1.IsHeadlessService), "labels of the slice")
			}
		})
	})
})
