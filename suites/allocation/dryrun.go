package allocation

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("dry run", func() {
	check.It(spec.AllocDryRunCreateKeepsNothing, "leaves the address and the node port that it names free, and no Service", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			port := nodePorts(createOnChosenPort(ctx, cp))[0]
			Expect(cp.Do(ctx, "DELETE", cp.Path(""), "", nil)).To(check.BeAccepted())
			ip := freeAddress(ctx, cp)
			svc := check.Service("tried", check.WithClusterIP(ip), onNodePort(port))
			Expect(cp.Create(ctx, svc, check.DryRun())).To(check.BeAccepted())
			Expect(cp.Get(ctx, "tried").Code).To(Equal(404), "the code of reading a Service that was created dry")
			Expect(cp.Create(ctx, svc)).To(check.BeAccepted())
		})

	check.It(spec.AllocDryRunCreateKeepsNothing, "takes no address of a range with five", check.Exclusive(), check.OnServiceCIDR(small),
		func(ctx context.Context, cp *check.ControlPlane) {
			for range 6 {
				Expect(cp.Create(ctx, check.Service(cp.Name("tried")), check.DryRun())).To(check.BeAccepted())
			}
			for range 5 {
				Expect(cp.Create(ctx, check.Service(cp.Name("created")))).To(check.BeAccepted())
			}
		})

	check.It(spec.AllocDryRunUpdateKeepsNothing, "neither frees nor takes an address when the type changes",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := createOnChosen(ctx, cp, primaryRange(cp))
			away := cp.MergePatch(ctx, svc.Name, `{"spec":{"type":"ExternalName","externalName":"example.org"}}`, check.DryRun())
			Expect(away).To(check.BeAccepted())
			refuseTaken(ctx, cp, svc.Spec.ClusterIP)
			Expect(cp.Get(ctx, svc.Name).Service).To(HaveField("Spec.ClusterIP", svc.Spec.ClusterIP))

			cp.Arrange(ctx, check.Service("alias", check.ExternalName("example.org")))
			_, back := onFreeAddress(ctx, cp, func(free string) check.Response {
				back := cp.MergePatch(ctx, "alias", `{"spec":{"type":"ClusterIP","clusterIP":"`+free+`","externalName":null,"ports":[{"port":80}]}}`, check.DryRun())
				if !back.Accepted() {
					return back
				}
				Expect(cp.Get(ctx, "alias").Service).To(HaveField("Spec.Type", corev1.ServiceTypeExternalName))
				return cp.Create(ctx, check.Service("next", check.WithClusterIP(free)))
			})
			Expect(back).To(check.BeAccepted())
		})

	check.It(spec.AllocDryRunUpdateKeepsNothing, "neither frees nor takes a node port when the type changes",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := createOnChosenPort(ctx, cp)
			Expect(cp.MergePatch(ctx, svc.Name, `{"spec":{"type":"ClusterIP"}}`, check.DryRun())).To(check.BeAccepted())
			Expect(cp.Get(ctx, svc.Name).Service).To(HaveField("Spec.Ports", svc.Spec.Ports))
			Expect(cp.Create(ctx, check.Service("duplicate", onNodePort(nodePorts(svc)[0])))).NotTo(check.BeAccepted())
		})

	check.It(spec.AllocDryRunDeleteKeepsAddress, "leaves the Service, its address and its node port",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := createOnChosenPort(ctx, cp)
			Expect(cp.Delete(ctx, svc.Name, check.DryRun())).To(check.BeAccepted())
			Expect(cp.Get(ctx, svc.Name)).To(check.BeAccepted())
			refuseTaken(ctx, cp, svc.Spec.ClusterIP)
			Expect(cp.Create(ctx, check.Service("duplicate", onNodePort(nodePorts(svc)[0])))).NotTo(check.BeAccepted())
		})

	check.It(spec.AllocDryRunOutOfRangeRefused, "refuses an address outside the range",
		func(ctx context.Context, cp *check.ControlPlane) {
			outside := primaryRange(cp).Addr().Prev().String()
			Expect(cp.Create(ctx, check.Service("tried", check.WithClusterIP(outside)), check.DryRun())).To(check.BeRefused())
		})

	check.It(spec.AllocDryRunDuplicateRefused, "refuses an address in use",
		func(ctx context.Context, cp *check.ControlPlane) {
			ip := cp.Arrange(ctx, check.Service("taken")).Spec.ClusterIP
			Expect(cp.Create(ctx, check.Service("tried", check.WithClusterIP(ip)), check.DryRun())).To(check.BeRefused())
		})

	check.It(spec.AllocDryRunNodePortInUseRefused, "refuses a node port in use",
		func(ctx context.Context, cp *check.ControlPlane) {
			port := nodePorts(createOnChosenPort(ctx, cp))[0]
			Expect(cp.Create(ctx, check.Service("tried", onNodePort(port)), check.DryRun())).NotTo(check.BeAccepted())
		})

	check.It(spec.AllocDryRunNodePortOutOfRangeRefused, "refuses a node port outside the range",
		func(ctx context.Context, cp *check.ControlPlane) {
			first, _ := cp.NodePorts()
			Expect(cp.Create(ctx, check.Service("tried", onNodePort(first-1)), check.DryRun())).NotTo(check.BeAccepted())
		})
})
