package apischema

import (
	"context"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// typeClass is a load-balancer class that no implementation answers to, so that no balancer is paid for.
const typeClass = "service-conformance.example/none"

// typeLoadBalancer makes the Service a load balancer of a class that nobody implements.
func typeLoadBalancer() check.ServiceOption {
	return func(s *corev1.Service) {
		s.Spec.Type, s.Spec.LoadBalancerClass = corev1.ServiceTypeLoadBalancer, new(typeClass)
	}
}

// typeBody is a Service with one port and the given fields of its spec, as JSON.
func typeBody(name, spec string) []byte {
	return []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"` + name + `"},"spec":{"ports":[{"port":80}],"selector":{"app":"a"},` + spec + `}}`)
}

// typeCreate sends a Service as JSON, for values that the Go type cannot express.
func typeCreate(ctx context.Context, cp *check.ControlPlane, name, spec string) check.Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodPost, "/api/v1/namespaces/"+cp.Namespace()+"/services", "application/json", typeBody(name, spec))
}

// typeStored reads a Service that must be there.
func typeStored(ctx context.Context, cp *check.ControlPlane, name string) *corev1.Service {
	ginkgo.GinkgoHelper()
	a := cp.Get(ctx, name)
	Expect(a).To(check.BeAccepted())
	return a.Service
}

// typeNotStored demands that a refused creation left nothing behind.
func typeNotStored(ctx context.Context, cp *check.ControlPlane, name string) {
	ginkgo.GinkgoHelper()
	Expect(cp.Get(ctx, name).Code).To(Equal(http.StatusNotFound), "a refused Service must not be stored")
}

// typeUnchanged demands that the Service is stored as it was: a refused update must not write.
func typeUnchanged(ctx context.Context, cp *check.ControlPlane, before *corev1.Service) {
	ginkgo.GinkgoHelper()
	after := typeStored(ctx, cp, before.Name)
	Expect(after.Spec).To(Equal(before.Spec), "a refused update must not change the Service")
	Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "a refused update must not write")
}

var _ = ginkgo.Describe("the type", func() {
	check.It(spec.APITypeDefault, "is ClusterIP if none is named", func(ctx context.Context, cp *check.ControlPlane) {
		for name, typ := range map[string]string{"absent": `"type":null`, "empty": `"type":""`} {
			a := typeCreate(ctx, cp, name, typ)
			Expect(a).To(check.BeAccepted(), "type %s", name)
			Expect(typeStored(ctx, cp, name).Spec.Type).To(Equal(corev1.ServiceTypeClusterIP), "type %s", name)
		}
	})

	for _, option := range []check.ServiceOption{
		check.OfType(corev1.ServiceTypeClusterIP), check.OfType(corev1.ServiceTypeNodePort), typeLoadBalancer(), check.ExternalName("db.example.com"),
	} {
		svc := check.Service("a", option)
		check.It(spec.APITypeValues, "may be "+string(svc.Spec.Type), func(ctx context.Context, cp *check.ControlPlane) {
			a := cp.Create(ctx, svc)
			Expect(a).To(check.BeAccepted())
			Expect(a.Service.Spec.Type).To(Equal(svc.Spec.Type))
		})
	}

	check.It(spec.APITypeValues, "is refused if it is none of the four", func(ctx context.Context, cp *check.ControlPlane) {
		for i, typ := range []corev1.ServiceType{"Bogus", "clusterip", "nodePort", "ClusterIP ", "None"} {
			name := cp.Name("a")
			Expect(cp.Create(ctx, check.Service(name, check.OfType(typ)))).To(check.BeInvalid("spec.type"), "type %q, case %d", typ, i)
			typeNotStored(ctx, cp, name)
		}
	})

	check.It(spec.APITypeValues, "cannot be changed to a value that is none of the four", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("a"))
		Expect(cp.MergePatch(ctx, "a", `{"spec":{"type":"Bogus"}}`)).To(check.BeInvalid("spec.type"))
		typeUnchanged(ctx, cp, before)
	})

	check.It(spec.APITypeClusterIP, "gives ClusterIP an address and no node port", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("a", check.OfType(corev1.ServiceTypeClusterIP)))
		clusterIPDemandAddress(svc.Spec.ClusterIP)
		Expect(svc.Spec.Ports).To(HaveLen(1))
		Expect(svc.Spec.Ports[0].NodePort).To(BeZero(), "nodePort")
		Expect(svc.Spec.HealthCheckNodePort).To(BeZero(), "healthCheckNodePort")
		Expect(svc.Spec.ExternalTrafficPolicy).To(BeEmpty(), "externalTrafficPolicy")
	})

	check.It(spec.APITypeNodePort, "gives NodePort an address and a node port for each port", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("a", check.OfType(corev1.ServiceTypeNodePort), typeTwoPorts()))
		clusterIPDemandAddress(svc.Spec.ClusterIP)
		typeDemandNodePorts(svc)
	})

	check.It(spec.APITypeLoadBalancer, "gives LoadBalancer an address and a node port for each port", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("a", typeLoadBalancer(), typeTwoPorts()))
		clusterIPDemandAddress(svc.Spec.ClusterIP)
		if cp.Claims(spec.FeatureNodePort) {
			typeDemandNodePorts(svc)
		}
	})

	check.It(spec.APITypeExternalName, "gives ExternalName neither addresses nor families", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("a", check.ExternalName("db.example.com")))
		Expect(svc.Spec.ClusterIP).To(BeEmpty(), "clusterIP")
		Expect(svc.Spec.ClusterIPs).To(BeEmpty(), "clusterIPs")
		Expect(svc.Spec.IPFamilies).To(BeEmpty(), "ipFamilies")
		Expect(svc.Spec.IPFamilyPolicy).To(BeNil(), "ipFamilyPolicy")
	})
})

func typeTwoPorts() check.ServiceOption {
	return check.WithPorts(check.Port("http", corev1.ProtocolTCP, 80, 0), check.Port("https", corev1.ProtocolTCP, 443, 0))
}

// typeDemandNodePorts demands a node port for each port, none of them twice.
func typeDemandNodePorts(svc *corev1.Service) {
	ginkgo.GinkgoHelper()
	seen := map[int32]bool{}
	for _, p := range svc.Spec.Ports {
		Expect(p.NodePort).NotTo(BeZero(), "node port of port %d", p.Port)
		Expect(seen[p.NodePort]).To(BeFalse(), "node port %d is given to two ports", p.NodePort)
		seen[p.NodePort] = true
	}
}
