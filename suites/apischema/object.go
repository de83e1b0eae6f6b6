package apischema

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// objectBody is a Service with one port whose apiVersion and kind are as given: `"kind":"Pod",` and so on.
func objectBody(typeMeta, name string) []byte {
	return fmt.Appendf(nil, `{%s"metadata":{"name":%q},"spec":{"ports":[{"port":80}]}}`, typeMeta, name)
}

// objectCollection is the path of the Services of the check's namespace.
func objectCollection(cp *check.ControlPlane) string {
	return "/api/v1/namespaces/" + cp.Namespace() + "/services"
}

// objectPost sends a body to the collection of Services as it stands.
func objectPost(ctx context.Context, cp *check.ControlPlane, body []byte, options ...check.RequestOption) check.Response {
	ginkgo.GinkgoHelper()
	return cp.Do(ctx, http.MethodPost, objectCollection(cp), "application/json", body, options...)
}

// objectAbsent demands that a request which was refused, or a dry run, has stored no Service with this name.
func objectAbsent(ctx context.Context, cp *check.ControlPlane, name string) {
	ginkgo.GinkgoHelper()
	objectAbsentAfter(ctx, cp, name, "the request stores nothing")
}

// objectAbsentAfter demands that there is no Service with this name, for the reason given.
func objectAbsentAfter(ctx context.Context, cp *check.ControlPlane, name, because string) {
	ginkgo.GinkgoHelper()
	Expect(cp.Get(ctx, name)).To(check.BeRefusedWith(http.StatusNotFound, metav1.StatusReasonNotFound), "there must be no Service, for %s", because)
}

var _ = ginkgo.Describe("the type of the object", func() {
	check.It(spec.APIVersionReturned, "comes back as v1 whether it was sent or not",
		func(ctx context.Context, cp *check.ControlPlane) {
			for name, typeMeta := range map[string]string{
				"sent":    `"apiVersion":"v1","kind":"Service",`,
				"omitted": ``,
			} {
				a := objectPost(ctx, cp, objectBody(typeMeta, name))
				Expect(a).To(check.BeAccepted(), "apiVersion %s", name)
				Expect(a.Service).NotTo(BeNil(), "apiVersion %s: the answer must be a Service: %s", name, a.Body)
				Expect(a.Service.APIVersion).To(Equal("v1"), "apiVersion %s", name)
				Expect(cp.Get(ctx, name).Service).To(HaveField("TypeMeta.APIVersion", "v1"), "stored with apiVersion %s", name)
			}
		})

	check.It(spec.APIVersionUnrecognized, "is refused, or read as v1",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := objectPost(ctx, cp, objectBody(`"apiVersion":"v2","kind":"Service",`, "unrecognized"))
			if !a.Accepted() {
				Expect(a).To(check.BeRefused())
				objectAbsent(ctx, cp, "unrecognized")
				return
			}
			Expect(cp.Get(ctx, "unrecognized").Service).To(HaveField("TypeMeta.APIVersion", "v1"))
		})

	check.It(spec.APIKindInferred, "is Service where the client leaves the kind out",
		func(ctx context.Context, cp *check.ControlPlane) {
			a := objectPost(ctx, cp, objectBody(`"apiVersion":"v1",`, "inferred"))
			if !a.Accepted() {
				Expect(a).To(check.BeRefused())
				return
			}
			Expect(a.Service).NotTo(BeNil(), "the answer must be a Service: %s", a.Body)
			Expect(cp.Get(ctx, "inferred").Service).NotTo(BeNil())
		})

	check.It(spec.APIKindMatchesEndpoint, "must be Service at the endpoint of Services",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, kind := range []string{"Pod", "Foo", "service"} {
				a := objectPost(ctx, cp, objectBody(`"apiVersion":"v1","kind":"`+kind+`",`, "other-kind"))
				Expect(a).To(check.BeRefused(), "kind %q", kind)
				objectAbsent(ctx, cp, "other-kind")
			}
		})

	check.It(spec.APIKindImmutable, "is refused in an update",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("kind"))
			for _, kind := range []string{"Pod", "Foo"} {
				a := cp.Do(ctx, http.MethodPut, cp.Path("kind"), "application/json", objectBody(`"apiVersion":"v1","kind":"`+kind+`",`, "kind"))
				Expect(a).To(check.BeRefused(), "kind %q", kind)
				Expect(cp.Get(ctx, "kind").Service).NotTo(BeNil(), "the stored object must still be a Service")
			}
		})

	check.It(spec.APIKindImmutable, "survives a patch",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("kind"))
			for patch, body := range map[types.PatchType]string{
				types.MergePatchType:          `{"kind":"Foo"}`,
				types.JSONPatchType:           `[{"op":"replace","path":"/kind","value":"Foo"}]`,
				types.StrategicMergePatchType: `{"kind":"Foo"}`,
			} {
				a := cp.Patch(ctx, "kind", patch, body)
				if !a.Accepted() {
					Expect(a).To(check.BeRefused(), "%s", patch)
				}
				Expect(cp.Get(ctx, "kind").Service).NotTo(BeNil(), "after %s the stored object must still be a Service", patch)
			}
		})
})

var _ = ginkgo.Describe("the spec", func() {
	check.It(spec.APISpecPreserved, "comes back as it was set",
		func(ctx context.Context, cp *check.ControlPlane) {
			timeout, appProtocol, class := int32(120), "example.com/protocol", "example.com/class"
			sent := check.Service("preserved", check.OfType(corev1.ServiceTypeLoadBalancer), check.With(func(s *corev1.Service) {
				local, no := corev1.ServiceInternalTrafficPolicyLocal, false
				s.Spec.Ports = []corev1.ServicePort{
					check.Port("dns-tcp", corev1.ProtocolTCP, 53, 5353), check.Port("dns", corev1.ProtocolUDP, 53, 5354), check.Port("metrics", corev1.ProtocolTCP, 9153, 9154)}
				s.Spec.Ports[2].AppProtocol = &appProtocol
				s.Spec.Selector = map[string]string{"app": "preserved", "example.com/tier": "back"}
				s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP
				s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &timeout}}
				s.Spec.ExternalTrafficPolicy = corev1.ServiceExternalTrafficPolicyCluster
				s.Spec.InternalTrafficPolicy = &local
				s.Spec.AllocateLoadBalancerNodePorts = &no
				s.Spec.LoadBalancerClass = &class
				s.Spec.LoadBalancerSourceRanges = []string{"192.0.2.0/24"}
				s.Spec.LoadBalancerIP = "192.0.2.1"
				s.Spec.ExternalIPs = []string{"192.0.2.2"}
				s.Spec.PublishNotReadyAddresses = true
			}))
			Expect(cp.Create(ctx, sent)).To(check.BeAccepted())
			stored := cp.Get(ctx, "preserved").Service
			Expect(stored).NotTo(BeNil())
			want := sent.Spec
			// What the client left to the server.
			want.ClusterIP, want.ClusterIPs, want.IPFamilies, want.IPFamilyPolicy = stored.Spec.ClusterIP, stored.Spec.ClusterIPs, stored.Spec.IPFamilies, stored.Spec.IPFamilyPolicy
			Expect(stored.Spec).To(Equal(want))
		})

	check.It(spec.APIUpdateReplaces, "loses the optional fields that an update leaves out",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("replaced", check.With(func(s *corev1.Service) {
				s.Spec.Ports = append(s.Spec.Ports, check.Port("second", corev1.ProtocolTCP, 81, 0))
				s.Spec.Ports[0].Name = "first"
				s.Spec.ExternalIPs = []string{"192.0.2.2"}
				s.Spec.PublishNotReadyAddresses = true
			})))
			svc.Spec.Ports, svc.Spec.ExternalIPs, svc.Spec.PublishNotReadyAddresses, svc.Spec.Selector = svc.Spec.Ports[1:], nil, false, nil
			Expect(cp.Update(ctx, svc)).To(check.BeAccepted())
			stored := cp.Get(ctx, "replaced").Service
			Expect(stored).NotTo(BeNil())
			Expect(stored.Spec.Ports).To(HaveExactElements(HaveField("Name", "second")))
			Expect(stored.Spec.ExternalIPs).To(BeEmpty())
			Expect(stored.Spec.Selector).To(BeEmpty())
			Expect(stored.Spec.PublishNotReadyAddresses).To(BeFalse(), "publishNotReadyAddresses is set")
		})

	check.It(spec.APIUnknownFieldDropped, "has no field that the schema does not know",
		func(ctx context.Context, cp *check.ControlPlane) {
			body := []byte(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"unknown"},"spec":{"unheardOf":"value","ports":[{"port":80,"unheardOf":"value"}]}}`)
			Expect(objectPost(ctx, cp, body, check.FieldValidation("Ignore"))).To(check.BeAccepted())
			Expect(string(cp.Get(ctx, "unknown").Body)).NotTo(ContainSubstring("unheardOf"))
			Expect(cp.MergePatch(ctx, "unknown", `{"spec":{"unheardOf":"value"}}`, check.FieldValidation("Ignore"))).To(check.BeAccepted())
			Expect(string(cp.Get(ctx, "unknown").Body)).NotTo(ContainSubstring("unheardOf"))
		})
})

var _ = ginkgo.Describe("the status", func() {
	const ingress = "192.0.2.7"
	// balancer returns a Service that may have a status of the load balancer.
	balancer := func(name string) *corev1.Service {
		return check.Service(name, check.OfType(corev1.ServiceTypeLoadBalancer), check.With(func(s *corev1.Service) {
			no, class := false, "example.com/nobody"
			s.Spec.AllocateLoadBalancerNodePorts, s.Spec.LoadBalancerClass = &no, &class // no controller writes the status
		}))
	}
	withIngress := func(svc *corev1.Service) *corev1.Service {
		svc = svc.DeepCopy()
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: ingress}}
		return svc
	}
	const statusPatch = `{"status":{"loadBalancer":{"ingress":[{"ip":"` + ingress + `"}]}}}`
	ingressOf := func(ctx context.Context, cp *check.ControlPlane, name string) []corev1.LoadBalancerIngress {
		ginkgo.GinkgoHelper()
		svc := cp.Get(ctx, name).Service
		Expect(svc).NotTo(BeNil())
		return svc.Status.LoadBalancer.Ingress
	}

	check.It(spec.APIStatusIgnored, "is ignored in a create",
		func(ctx context.Context, cp *check.ControlPlane) {
			Expect(cp.Create(ctx, withIngress(balancer("status")))).To(check.BeAccepted())
			Expect(ingressOf(ctx, cp, "status")).To(BeEmpty())
		})

	check.It(spec.APIStatusIgnored, "is ignored in an update",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, balancer("status"))
			Expect(cp.Update(ctx, withIngress(svc))).To(check.BeAccepted())
			Expect(ingressOf(ctx, cp, "status")).To(BeEmpty())
		})

	check.It(spec.APIStatusIgnored, "is ignored in a patch",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, balancer("status"))
			for _, patch := range []types.PatchType{types.MergePatchType, types.StrategicMergePatchType} {
				Expect(cp.Patch(ctx, "status", patch, statusPatch)).To(check.BeAccepted(), "%s", patch)
				Expect(ingressOf(ctx, cp, "status")).To(BeEmpty(), "%s", patch)
			}
		})

	check.It(spec.APIStatusStored, "is stored by an update of the status",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, balancer("status"))
			Expect(cp.UpdateStatus(ctx, withIngress(svc))).To(check.BeAccepted())
			Expect(ingressOf(ctx, cp, "status")).To(HaveExactElements(HaveField("IP", ingress)))
		})

	check.It(spec.APIStatusStored, "is stored by a patch of the status",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, balancer("status"))
			Expect(cp.PatchStatus(ctx, "status", statusPatch)).To(check.BeAccepted())
			Expect(ingressOf(ctx, cp, "status")).To(HaveExactElements(HaveField("IP", ingress)))
		})

	check.It(spec.APIStatusKeepsSpec, "takes no spec with it",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, balancer("status"))
			before := svc.Spec.DeepCopy()
			svc.Spec.Selector, svc.Spec.Ports[0].Port = map[string]string{"app": "other"}, 8080
			Expect(cp.UpdateStatus(ctx, svc)).To(check.BeAccepted())
			Expect(cp.Get(ctx, "status").Service).To(HaveField("Spec", *before), "after an update of the status")
			Expect(cp.PatchStatus(ctx, "status", `{"spec":{"selector":{"app":"other"}}}`)).To(check.BeAccepted())
			Expect(cp.Get(ctx, "status").Service).To(HaveField("Spec", *before), "after a patch of the status")
		})

	check.It(spec.APISpecKeepsStatus, "stays when the spec changes",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, balancer("status"))
			Expect(cp.PatchStatus(ctx, "status", statusPatch)).To(check.BeAccepted())
			svc.ResourceVersion, svc.Spec.Selector = "", map[string]string{"app": "other"}
			svc.Status = corev1.ServiceStatus{}
			Expect(cp.Update(ctx, svc)).To(check.BeAccepted())
			Expect(ingressOf(ctx, cp, "status")).To(HaveExactElements(HaveField("IP", ingress)))
		})

	check.It(spec.APIStatusMetadata, "comes with labels and annotations",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("status"))
			Expect(cp.PatchStatus(ctx, "status", `{"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"}}}`)).To(check.BeAccepted())
			stored := cp.Get(ctx, "status").Service
			Expect(stored).NotTo(BeNil())
			Expect(stored.Labels).To(HaveKeyWithValue("a", "b"))
			Expect(stored.Annotations).To(HaveKeyWithValue("c", "d"))
		})
})
