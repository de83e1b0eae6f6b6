package apischema

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// healthChecked makes the Service a load balancer with local endpoints only, which needs a health check node port; 0 leaves
// the choice to the server.
func healthChecked(port int32) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		typeLoadBalancer()(s)
		s.Spec.ExternalTrafficPolicy, s.Spec.HealthCheckNodePort = trafficLocal, port
	})
}

// healthCheckAssigned demands that the Service has a health check node port of the range, and one that is in use.
func healthCheckAssigned(ctx context.Context, cp *check.ControlPlane, a check.Response, when string) {
	ginkgo.GinkgoHelper()
	Expect(a).To(check.BeAccepted(), when)
	first, last := cp.NodePorts()
	Expect(a.Service.Spec.HealthCheckNodePort).To(And(BeNumerically(">=", first), BeNumerically("<=", last)), when)
	nodePortTaken(ctx, cp, a.Service.Spec.HealthCheckNodePort, "it is a health check node port: "+when)
}

// healthCheckSuperfluous are updates of a Service with a health check node port after which it needs none.
var healthCheckSuperfluous = []struct{ what, patch string }{
	{"of the policy", `{"spec":{"externalTrafficPolicy":"Cluster"}}`},
	{"of the type", `{"spec":{"type":"NodePort"}}`},
}

// healthCheckless are kinds of Services that need no health check node port.
var healthCheckless = []trafficCase{
	{what: "type ClusterIP", option: check.OfType(corev1.ServiceTypeClusterIP)},
	{what: "type ClusterIP with external IPs and policy Local", versions: sincePolicyOfExternalIPs, option: check.With(func(s *corev1.Service) {
		s.Spec.ExternalIPs, s.Spec.ExternalTrafficPolicy = []string{"192.0.2.10"}, trafficLocal
	})},
	{what: "type NodePort with policy Local", option: check.With(func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeNodePort, trafficLocal
	})},
	{what: "type LoadBalancer with policy Cluster", option: typeLoadBalancer()},
}

var _ = ginkgo.Describe("the health check node port", func() {
	check.It(spec.APIHealthCheckNodePortApplies, "is absent where it is not needed", func(ctx context.Context, cp *check.ControlPlane) {
		for _, c := range casesOf(cp, healthCheckless) {
			a := cp.Create(ctx, check.Service(cp.Name("unchecked"), c.option))
			Expect(a).To(check.BeAccepted(), c.what)
			Expect(a.Service.Spec.HealthCheckNodePort).To(BeZero(), c.what)
		}
	})

	check.It(spec.APIHealthCheckNodePortApplies, "is set for type LoadBalancer with policy Local", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(cp.Arrange(ctx, check.Service("checked", healthChecked(0))).Spec.HealthCheckNodePort).NotTo(BeZero())
	})

	check.It(spec.APIHealthCheckNodePortAssigned, "is assigned to a new Service", func(ctx context.Context, cp *check.ControlPlane) {
		healthCheckAssigned(ctx, cp, cp.Create(ctx, check.Service("checked", healthChecked(0))), "with node ports")
		healthCheckAssigned(ctx, cp, cp.Create(ctx, check.Service("portless", healthChecked(0), balancerAllocate(false))), "without node ports")
	})

	check.It(spec.APIHealthCheckNodePortAssigned, "is assigned by an update that makes it necessary", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("policy", typeLoadBalancer()))
		healthCheckAssigned(ctx, cp, cp.MergePatch(ctx, "policy", `{"spec":{"externalTrafficPolicy":"Local"}}`), "a change of the policy")
		cp.Arrange(ctx, check.Service("type"))
		healthCheckAssigned(ctx, cp, cp.Update(ctx, check.Service("type", healthChecked(0))), "a change of the type")
	})

	check.It(spec.APIHealthCheckNodePortChosen, "is the one that the client names", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		a := cp.Create(ctx, check.Service("checked", healthChecked(port)))
		healthCheckAssigned(ctx, cp, a, "named by the client")
		Expect(a.Service.Spec.HealthCheckNodePort).To(Equal(port))
	})

	check.It(spec.APIHealthCheckNodePortOutOfRange, "makes the creation fail if it is out of range", func(ctx context.Context, cp *check.ControlPlane) {
		for _, port := range nodePortsOutside(cp) {
			svc := check.Service(cp.Name("outside"), healthChecked(port))
			Expect(cp.Create(ctx, svc)).NotTo(check.BeAccepted(), "health check node port %d", port)
			typeNotStored(ctx, cp, svc.Name)
		}
	})

	check.It(spec.APIHealthCheckNodePortClientError, "is told if it is out of range", func(ctx context.Context, cp *check.ControlPlane) {
		for _, port := range nodePortsOutside(cp) {
			Expect(cp.Create(ctx, check.Service(cp.Name("outside"), healthChecked(port)))).To(check.BeRefused(), "health check node port %d", port)
		}
	})

	check.It(spec.APIHealthCheckNodePortInUse, "makes the creation fail if it is in use", func(ctx context.Context, cp *check.ControlPlane) {
		owner := cp.Arrange(ctx, check.Service("owner", healthChecked(0)))
		taken := []int32{owner.Spec.HealthCheckNodePort}
		if cp.Claims(spec.FeatureNodePort) {
			taken = append(taken, owner.Spec.Ports[0].NodePort)
		}
		for _, port := range taken {
			svc := check.Service(cp.Name("second"), healthChecked(port))
			Expect(cp.Create(ctx, svc)).NotTo(check.BeAccepted(), "health check node port %d", port)
			typeNotStored(ctx, cp, svc.Name)
		}
	})

	check.It(spec.APIHealthCheckNodePortClientError, "is told if it is in use", func(ctx context.Context, cp *check.ControlPlane) {
		taken := cp.Arrange(ctx, check.Service("owner", healthChecked(0))).Spec.HealthCheckNodePort
		Expect(cp.Create(ctx, check.Service("second", healthChecked(taken)))).To(check.BeRefused())
	})

	check.It(spec.APIHealthCheckNodePortUnneeded, "is refused where it is not needed", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		for _, c := range casesOf(cp, healthCheckless) {
			svc := check.Service(cp.Name("unchecked"), c.option)
			svc.Spec.HealthCheckNodePort = port
			Expect(cp.Create(ctx, svc)).NotTo(check.BeAccepted(), c.what)
			typeNotStored(ctx, cp, svc.Name)
		}
	})

	for _, change := range healthCheckSuperfluous {
		check.It(spec.APIHealthCheckNodePortCleared, "is cleared by a change "+change.what, func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("checked", healthChecked(0)))
			a := cp.MergePatch(ctx, "checked", change.patch)
			Expect(a).To(check.BeAccepted())
			Expect(a.Service.Spec.HealthCheckNodePort).To(BeZero())
		})

		check.It(spec.APIHealthCheckNodePortCleared, "is freed by a change "+change.what, func(ctx context.Context, cp *check.ControlPlane) {
			port := cp.FreeNodePorts(ctx, 1)[0]
			cp.Arrange(ctx, check.Service("checked", healthChecked(port)))
			Expect(cp.MergePatch(ctx, "checked", change.patch)).To(check.BeAccepted())
			nodePortFree(ctx, cp, port, "the Service needs no health check node port")
		})
	}

	check.It(spec.APIHealthCheckNodePortReleased, "is free when its Service is deleted", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		cp.Arrange(ctx, check.Service("checked", healthChecked(port)))
		Expect(cp.Delete(ctx, "checked")).To(check.BeAccepted())
		nodePortFree(ctx, cp, port, "its Service is deleted")
	})

	check.It(spec.APIHealthCheckNodePortImmutable, "cannot be changed", func(ctx context.Context, cp *check.ControlPlane) {
		other := cp.FreeNodePorts(ctx, 1)[0]
		svc := cp.Arrange(ctx, check.Service("checked", healthChecked(0)))
		Expect(cp.Update(ctx, check.Service("checked", healthChecked(other)))).To(check.BeRefused())
		typeUnchanged(ctx, cp, svc)
		nodePortFree(ctx, cp, other, "the update that named it was refused")
	})

	check.It(spec.APIHealthCheckNodePortImmutable, "is kept by an update that leaves it out", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("checked", healthChecked(0)))
		a := cp.Update(ctx, check.Service("checked", healthChecked(0)))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.HealthCheckNodePort).To(Equal(svc.Spec.HealthCheckNodePort))
	})

	check.It(spec.APIHealthCheckNodePortRefusedWhole, "is free when the Service that named it is refused", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		Expect(cp.Create(ctx, check.Service("refused", healthChecked(port), affinityOf("Cookie")))).To(check.BeInvalid("spec.sessionAffinity"))
		nodePortFree(ctx, cp, port, "the Service that named it was refused")
	})
})
