package allocation

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// refusals are reasons to refuse a Service whatever its address.
var refusals = []struct {
	name  string
	shape check.ServiceOption
}{
	{"a node port that is out of range", onNodePort(80)},
	{"an invalid port", check.WithPorts(check.Port("", corev1.ProtocolTCP, 70000, 0))},
	{"an unknown session affinity", check.With(func(s *corev1.Service) { s.Spec.SessionAffinity = "Never" })},
	{"an invalid name", check.With(func(s *corev1.Service) { s.Name = "-" + s.Name })},
	{"a name that exists", check.With(func(s *corev1.Service) { s.Name = "exists" })},
	{"a namespace that does not exist", check.InNamespace("conformance-no-such-namespace")},
}

var _ = ginkgo.Describe("refused creates", func() {
	check.It(spec.AllocRefusedCreateLeaksNothing, "leave an address that they named free",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("exists"))
			for _, r := range refusals {
				_, a := onFreeAddress(ctx, cp, func(ip string) check.Response {
					Expect(cp.Create(ctx, check.Service(cp.Name("refused"), check.WithClusterIP(ip), r.shape))).NotTo(check.BeAccepted(), r.name)
					return cp.Create(ctx, check.Service(cp.Name("next"), check.WithClusterIP(ip)))
				})
				Expect(a).To(check.BeAccepted(), "after a refusal because of %s", r.name)
			}
		})

	check.It(spec.AllocRefusedCreateLeaksNothing, "leave the addresses that they were given free", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("exists"))
			for _, r := range refusals {
				Expect(cp.Create(ctx, check.Service(cp.Name("refused"), r.shape))).NotTo(check.BeAccepted(), r.name)
			}
			check.Converge(ctx, "use of the five addresses", reuse, func(g Gomega) {
				for len(cp.List(ctx)) < 5 {
					g.Expect(cp.Create(ctx, check.Service(cp.Name("next")))).To(check.BeAccepted())
				}
			})
		})

	check.It(spec.AllocRefusedCreateLeaksNothing, "leave no Service",
		func(ctx context.Context, cp *check.ControlPlane) {
			ip := cp.Arrange(ctx, check.Service("taken")).Spec.ClusterIP
			Expect(cp.Create(ctx, check.Service("duplicate", check.WithClusterIP(ip)))).To(check.BeRefused())
			Expect(cp.Get(ctx, "duplicate").Code).To(Equal(404), "the code of reading a Service that was refused")
			Expect(cp.Get(ctx, "taken").Service.Spec.ClusterIP).To(Equal(ip), "the address that the other Service has")
			beyond := check.BandsOf(primaryRange(cp)).Network
			Expect(cp.Create(ctx, check.Service("beyond", check.WithClusterIP(beyond.String())))).To(check.BeRefused())
			Expect(cp.Get(ctx, "beyond").Code).To(Equal(404), "the code of reading a Service that was refused for its address")
		})

	check.It(spec.AllocRefusedCreateLeaksNothing, "leave an address in use to the Service that has it",
		func(ctx context.Context, cp *check.ControlPlane) {
			ip := cp.Arrange(ctx, check.Service("taken")).Spec.ClusterIP
			for range 3 {
				refuseTaken(ctx, cp, ip)
			}
		})
})
