package apischema

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// patchedPort is what patches of ports are judged by.
type patchedPort struct {
	Name       string
	Protocol   corev1.Protocol
	Port       int32
	TargetPort intstr.IntOrString
}

func patchPort(name string, protocol corev1.Protocol, port, target int) patchedPort {
	return patchedPort{name, protocol, int32(port), intstr.FromInt32(int32(target))}
}

// patchPorts reads the ports of a stored Service.
func patchPorts(ctx context.Context, cp *check.ControlPlane, name string) (ports []patchedPort) {
	ginkgo.GinkgoHelper()
	svc := cp.Get(ctx, name).Service
	Expect(svc).NotTo(BeNil())
	for _, p := range svc.Spec.Ports {
		ports = append(ports, patchedPort{p.Name, p.Protocol, p.Port, p.TargetPort})
	}
	return ports
}

// The ports of a DNS Service, two of them with the same number.
var (
	patchDNS     = patchPort("dns", corev1.ProtocolUDP, 53, 53)
	patchDNSTCP  = patchPort("dns-tcp", corev1.ProtocolTCP, 53, 53)
	patchMetrics = patchPort("metrics", corev1.ProtocolTCP, 9153, 9153)
)

// patchArrangeDNS creates the DNS Service.
func patchArrangeDNS(ctx context.Context, cp *check.ControlPlane) {
	ginkgo.GinkgoHelper()
	cp.Arrange(ctx, check.Service("dns", check.WithPorts(
		check.Port("dns", corev1.ProtocolUDP, 53, 0), check.Port("dns-tcp", corev1.ProtocolTCP, 53, 0), check.Port("metrics", corev1.ProtocolTCP, 9153, 0))))
}

var _ = ginkgo.Describe("a JSON patch", func() {
	check.It(spec.APIJSONPatch, "changes what its operations name, in their order",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("patched", check.With(func(s *corev1.Service) {
				s.Labels = map[string]string{"kept": "yes", "removed": "yes", "moved": "yes"}
			})))
			Expect(cp.Patch(ctx, "patched", types.JSONPatchType, `[
				{"op":"test","path":"/spec/ports/0/port","value":80},
				{"op":"replace","path":"/spec/ports/0/targetPort","value":8080},
				{"op":"remove","path":"/metadata/labels/removed"},
				{"op":"move","from":"/metadata/labels/moved","path":"/metadata/labels/target"},
				{"op":"copy","from":"/metadata/labels/target","path":"/metadata/labels/copied"},
				{"op":"add","path":"/spec/selector/tier","value":"back"},
				{"op":"replace","path":"/spec/selector/tier","value":"front"}]`)).To(check.BeAccepted())
			svc := cp.Get(ctx, "patched").Service
			Expect(svc).NotTo(BeNil())
			Expect(svc.Labels).To(Equal(map[string]string{"kept": "yes", "target": "yes", "copied": "yes"}))
			Expect(svc.Spec.Selector).To(Equal(map[string]string{"app": "patched", "tier": "front"}))
			Expect(patchPorts(ctx, cp, "patched")).To(Equal([]patchedPort{patchPort("", corev1.ProtocolTCP, 80, 8080)}))
		})

	check.It(spec.APIJSONPatchAtomic, "changes nothing if one of its operations fails",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("patched"))
			for _, failing := range []string{
				`{"op":"test","path":"/spec/type","value":"NodePort"}`,
				`{"op":"remove","path":"/spec/ports/7"}`,
				`{"op":"replace","path":"/spec/unheardOf/field","value":1}`,
			} {
				a := cp.Patch(ctx, "patched", types.JSONPatchType, `[{"op":"add","path":"/spec/selector/tier","value":"back"},`+failing+`]`)
				Expect(a).To(check.BeRefused(), "%s", failing)
			}
			Expect(cp.Get(ctx, "patched").Service).To(HaveField("Spec.Selector", Equal(map[string]string{"app": "patched"})))
		})

	check.It(spec.APIJSONPatchValue, "is refused without a value of a field that is added or replaced",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("patched"))
			for _, incomplete := range []string{`{"op":"add","path":"/metadata/labels"}`, `{"op":"replace","path":"/spec/selector/app"}`} {
				a := cp.Patch(ctx, "patched", types.JSONPatchType, `[{"op":"add","path":"/spec/selector/tier","value":"back"},`+incomplete+`]`)
				Expect(a).To(check.BeRefused(), "%s", incomplete)
			}
			Expect(cp.Get(ctx, "patched").Service).To(HaveField("Spec.Selector", Equal(map[string]string{"app": "patched"})))
		})

	check.It(spec.APIJSONPatchSameNumber, "changes one of two ports with the same number",
		func(ctx context.Context, cp *check.ControlPlane) {
			patchArrangeDNS(ctx, cp)
			Expect(cp.Patch(ctx, "dns", types.JSONPatchType, `[{"op":"replace","path":"/spec/ports/0/targetPort","value":5353}]`)).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, "dns")).To(Equal([]patchedPort{patchPort("dns", corev1.ProtocolUDP, 53, 5353), patchDNSTCP, patchMetrics}))
		})

	check.It(spec.APIJSONPatchSameNumber, "adds and removes one of two ports with the same number",
		func(ctx context.Context, cp *check.ControlPlane) {
			patchArrangeDNS(ctx, cp)
			Expect(cp.Patch(ctx, "dns", types.JSONPatchType, `[{"op":"remove","path":"/spec/ports/0"}]`)).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, "dns")).To(Equal([]patchedPort{patchDNSTCP, patchMetrics}))
			Expect(cp.Patch(ctx, "dns", types.JSONPatchType, `[{"op":"add","path":"/spec/ports/-","value":{"name":"dns","port":53,"protocol":"UDP"}}]`)).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, "dns")).To(Equal([]patchedPort{patchDNSTCP, patchMetrics, patchDNS}))
		})
})

var _ = ginkgo.Describe("a JSON merge patch", func() {
	check.It(spec.APIMergePatch, "sets, removes and leaves fields",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("patched", check.With(func(s *corev1.Service) {
				s.Labels = map[string]string{"kept": "yes", "removed": "yes"}
				s.Annotations = map[string]string{"removed": "yes"}
				s.Spec.Selector = map[string]string{"app": "patched", "removed": "yes"}
			})))
			Expect(cp.MergePatch(ctx, "patched", `{"metadata":{"labels":{"removed":null,"set":"yes"},"annotations":null},"spec":{"selector":{"removed":null,"set":"yes"}}}`)).To(check.BeAccepted())
			svc := cp.Get(ctx, "patched").Service
			Expect(svc).NotTo(BeNil())
			Expect(svc.Labels).To(Equal(map[string]string{"kept": "yes", "set": "yes"}))
			Expect(svc.Annotations).To(BeEmpty())
			Expect(svc.Spec.Selector).To(Equal(map[string]string{"app": "patched", "set": "yes"}))
			Expect(patchPorts(ctx, cp, "patched")).To(HaveLen(1))
		})

	check.It(spec.APIMergePatchSameNumber, "replaces the list of ports",
		func(ctx context.Context, cp *check.ControlPlane) {
			patchArrangeDNS(ctx, cp)
			Expect(cp.MergePatch(ctx, "dns", `{"spec":{"ports":[
				{"name":"dns-tcp","port":53,"protocol":"TCP","targetPort":5353},{"name":"dns","port":53,"protocol":"UDP","targetPort":5354}]}}`)).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, "dns")).To(Equal([]patchedPort{patchPort("dns-tcp", corev1.ProtocolTCP, 53, 5353), patchPort("dns", corev1.ProtocolUDP, 53, 5354)}))
		})
})

var _ = ginkgo.Describe("a strategic merge patch", func() {
	check.It(spec.APIStrategicMergePorts, "changes the port that it names",
		func(ctx context.Context, cp *check.ControlPlane) {
			patchArrangeDNS(ctx, cp)
			Expect(cp.Patch(ctx, "dns", types.StrategicMergePatchType, `{"spec":{"ports":[{"port":9153,"targetPort":1234}]}}`)).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, "dns")).To(ConsistOf(patchDNS, patchDNSTCP, patchPort("metrics", corev1.ProtocolTCP, 9153, 1234)))
		})

	check.It(spec.APIStrategicMergePorts, "adds a port that there is not",
		func(ctx context.Context, cp *check.ControlPlane) {
			patchArrangeDNS(ctx, cp)
			Expect(cp.Patch(ctx, "dns", types.StrategicMergePatchType, `{"spec":{"ports":[{"name":"dot","port":853}]}}`)).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, "dns")).To(ConsistOf(patchDNS, patchDNSTCP, patchMetrics, patchPort("dot", corev1.ProtocolTCP, 853, 853)))
		})

	check.It(spec.APIStrategicMergePorts, "obeys the directive delete",
		func(ctx context.Context, cp *check.ControlPlane) {
			patchArrangeDNS(ctx, cp)
			Expect(cp.Patch(ctx, "dns", types.StrategicMergePatchType, `{"spec":{"ports":[{"port":9153,"$patch":"delete"}]}}`)).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, "dns")).To(ConsistOf(patchDNS, patchDNSTCP))
		})

	check.It(spec.APIStrategicMergePorts, "obeys the directive replace",
		func(ctx context.Context, cp *check.ControlPlane) {
			patchArrangeDNS(ctx, cp)
			Expect(cp.Patch(ctx, "dns", types.StrategicMergePatchType, `{"spec":{"ports":[{"$patch":"replace"},{"name":"dot","port":853}]}}`)).To(check.BeAccepted())
			Expect(patchPorts(ctx, cp, "dns")).To(ConsistOf(patchPort("dot", corev1.ProtocolTCP, 853, 853)))
		})

	check.It(spec.APIStrategicMergeMap, "merges labels and selector",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("patched", metadataLabelled("kept", "yes"), metadataLabelled("removed", "yes")))
			Expect(cp.Patch(ctx, "patched", types.StrategicMergePatchType,
				`{"metadata":{"labels":{"removed":null,"set":"yes"}},"spec":{"selector":{"tier":"back"}}}`)).To(check.BeAccepted())
			svc := cp.Get(ctx, "patched").Service
			Expect(svc).NotTo(BeNil())
			Expect(svc.Labels).To(Equal(map[string]string{"kept": "yes", "set": "yes"}))
			Expect(svc.Spec.Selector).To(Equal(map[string]string{"app": "patched", "tier": "back"}))
		})

	check.It(spec.APIStrategicMergeSameNumber, "loses none of two ports with the same number when it names one",
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, c := range []struct {
				body    string
				changed []patchedPort // if the patch is accepted
			}{
				{`{"port":53,"protocol":"TCP","targetPort":5353}`, []patchedPort{patchDNS, patchPort("dns-tcp", corev1.ProtocolTCP, 53, 5353), patchMetrics}},
				{`{"port":53,"protocol":"UDP","targetPort":5353}`, []patchedPort{patchPort("dns", corev1.ProtocolUDP, 53, 5353), patchDNSTCP, patchMetrics}},
			} {
				patchArrangeDNS(ctx, cp)
				a := cp.Patch(ctx, "dns", types.StrategicMergePatchType, `{"spec":{"ports":[`+c.body+`]}}`)
				want := c.changed
				if !a.Accepted() {
					Expect(a).To(check.BeRefused(), "%s", c.body)
					want = []patchedPort{patchDNS, patchDNSTCP, patchMetrics}
				}
				Expect(patchPorts(ctx, cp, "dns")).To(ConsistOf(want), "%s", c.body)
				Expect(cp.Delete(ctx, "dns")).To(check.BeAccepted())
			}
		})
})

var _ = ginkgo.Describe("a patch that changes nothing", func() {
	check.It(spec.APIStrategicMergeSameNumber, "leaves a Service as it is whose node port is that of two protocols", check.Claiming(spec.FeatureNodePort),
		func(ctx context.Context, cp *check.ControlPlane) {
			port := cp.FreeNodePorts(ctx, 1)[0]
			both := fmt.Sprintf(`[{"name":"dns","port":53,"protocol":"UDP","nodePort":%[1]d},{"name":"dns-tcp","port":53,"protocol":"TCP","nodePort":%[1]d}]`, port)
			before := cp.Arrange(ctx, check.Service("dns", check.OfType(corev1.ServiceTypeNodePort), check.With(func(s *corev1.Service) {
				s.Spec.Ports = nil
				check.Must(json.Unmarshal([]byte(both), &s.Spec.Ports))
			})))
			for patch, body := range map[types.PatchType]string{ // a strategic merge patch tells ports apart by their number alone
				types.StrategicMergePatchType: `{"spec":{"type":"NodePort"}}`, types.MergePatchType: `{"spec":{"type":"NodePort","ports":` + both + `}}`,
			} {
				Expect(cp.Patch(ctx, "dns", patch, body)).To(check.BeAccepted(), "%s", patch)
				Expect(cp.Get(ctx, "dns").Service.Spec).To(Equal(before.Spec), "%s", patch)
			}
		})
})

var _ = ginkgo.Describe("a patch", func() {
	check.It(spec.APIPatchValidation, "is refused if its result breaks a rule",
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := cp.Arrange(ctx, check.Service("patched"))
			for patch, body := range map[types.PatchType]string{
				types.JSONPatchType:           `[{"op":"replace","path":"/spec/ports/0/port","value":70000}]`,
				types.MergePatchType:          `{"spec":{"ports":[{"port":70000}]}}`,
				types.StrategicMergePatchType: `{"spec":{"ports":[{"port":70000,"name":"a"},{"port":80,"name":"b"}]}}`,
			} {
				// Where the port stands among others is another requirement.
				Expect(cp.Patch(ctx, "patched", patch, body)).To(check.BeInvalid("spec.ports[0].port", "spec.ports[1].port"), "%s", patch)
			}
			Expect(cp.Get(ctx, "patched").Service).To(HaveField("ResourceVersion", svc.ResourceVersion))
		})

	check.It(spec.APIPatchMalformed, "is refused if it is none of its type",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("patched"))
			for _, c := range []struct {
				patch types.PatchType
				body  string
			}{
				{types.JSONPatchType, `{"op":"add"}`}, {types.JSONPatchType, `[{`},
				{types.MergePatchType, `[]`}, {types.MergePatchType, `{`},
				{types.StrategicMergePatchType, `[]`}, {types.StrategicMergePatchType, `{`},
			} {
				Expect(cp.Patch(ctx, "patched", c.patch, c.body)).To(check.BeRefusedWith(http.StatusBadRequest, metav1.StatusReasonBadRequest), "%s %s", c.patch, c.body)
			}
		})

	check.It(spec.APIStrategicMergeClientError, "that merges strategically and cannot be applied is the mistake of the client",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("patched"))
			for what, body := range map[string]string{
				"no key of a list":    `{"spec":{"ports":[{"name":"a"}]}}`,
				"no directive":        `{"$patch":"bogus"}`,
				"a number for a port": `{"spec":{"ports":[1]}}`,
			} {
				Expect(cp.Patch(ctx, "patched", types.StrategicMergePatchType, body)).To(check.BeRefused(), "%s", what)
			}
		})
})
