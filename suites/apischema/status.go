package apischema

import (
	"context"
	"encoding/json"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const statusIngressPath = "status.loadBalancer.ingress"

// statusIngress writes the ingress points, as JSON, to the status of a Service.
func statusIngress(ctx context.Context, cp *check.ControlPlane, name, ingress string) check.Response {
	ginkgo.GinkgoHelper()
	return cp.PatchStatus(ctx, name, `{"status":{"loadBalancer":{"ingress":`+ingress+`}}}`)
}

// statusConditions writes the conditions, as JSON, to the status of a Service.
func statusConditions(ctx context.Context, cp *check.ControlPlane, name, conditions string) check.Response {
	ginkgo.GinkgoHelper()
	return cp.PatchStatus(ctx, name, `{"status":{"conditions":`+conditions+`}}`)
}

// statusStored reads the ingress points that are stored.
func statusStored(ctx context.Context, cp *check.ControlPlane, name string) []corev1.LoadBalancerIngress {
	ginkgo.GinkgoHelper()
	return typeStored(ctx, cp, name).Status.LoadBalancer.Ingress
}

// statusRefused demands that each of the ingress points is refused at one of its fields, and that none is stored.
func statusRefused(ctx context.Context, cp *check.ControlPlane, field string, ingress ...string) {
	ginkgo.GinkgoHelper()
	cp.Arrange(ctx, check.Service("balanced", typeLoadBalancer()))
	for _, i := range ingress {
		Expect(statusIngress(ctx, cp, "balanced", `[`+i+`]`)).To(check.BeInvalid(statusIngressPath+"[0]."+field), "ingress point %s", i)
	}
	Expect(statusStored(ctx, cp, "balanced")).To(BeEmpty())
}

// statusAccepted demands that each of the ingress points is accepted.
func statusAccepted(ctx context.Context, cp *check.ControlPlane, ingress ...string) {
	ginkgo.GinkgoHelper()
	cp.Arrange(ctx, check.Service("balanced", typeLoadBalancer()))
	for _, i := range ingress {
		a := statusIngress(ctx, cp, "balanced", `[`+i+`]`)
		Expect(a).To(check.BeAccepted(), "ingress point %s", i)
		Expect(a.Service.Status.LoadBalancer.Ingress).To(HaveLen(1), "ingress point %s", i)
	}
}

var _ = ginkgo.Describe("conditions", func() {
	check.It(spec.APIStatusConditions, "come back as they were written", func(ctx context.Context, cp *check.ControlPlane) {
		for _, o := range []check.ServiceOption{check.OfType(corev1.ServiceTypeClusterIP), typeLoadBalancer()} {
			svc := cp.Arrange(ctx, check.Service(cp.Name("service"), o))
			svc.Status.Conditions = []metav1.Condition{
				{Type: "example.com/Ready", Status: metav1.ConditionFalse, Reason: "NoCapacity", Message: "wait", ObservedGeneration: 3,
					LastTransitionTime: metav1.NewTime(time.Unix(1700000000, 0))},
				{Type: "Degraded", Status: metav1.ConditionUnknown, Reason: "Unobserved", LastTransitionTime: metav1.NewTime(time.Unix(1700000001, 0))},
			}
			Expect(cp.UpdateStatus(ctx, svc)).To(check.BeAccepted(), "type %s", svc.Spec.Type)
			stored := typeStored(ctx, cp, svc.Name)
			Expect(statusText(stored.Status.Conditions)).To(Equal(statusText(svc.Status.Conditions)), "type %s", svc.Spec.Type)
		}
	})

	check.It(spec.APIStatusConditionFields, "are refused when a required field is missing or the status is unknown to the API", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("service"))
		for _, condition := range []string{
			`{"status":"True","reason":"Up","message":"","lastTransitionTime":"2023-11-14T22:13:20Z"}`,
			`{"type":"Ready","reason":"Up","message":"","lastTransitionTime":"2023-11-14T22:13:20Z"}`,
			`{"type":"Ready","status":"Maybe","reason":"Up","message":"","lastTransitionTime":"2023-11-14T22:13:20Z"}`,
			`{"type":"Ready","status":"True","message":"","lastTransitionTime":"2023-11-14T22:13:20Z"}`,
			`{"type":"Ready","status":"True","reason":"Up","message":""}`,
		} {
			Expect(statusConditions(ctx, cp, svc.Name, `[`+condition+`]`)).To(check.BeInvalid(), "condition %s", condition)
		}
		Expect(typeStored(ctx, cp, svc.Name).Status.Conditions).To(BeEmpty())
	})

	check.It(spec.APIStatusConditionTypes, "occur once for each type", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("service"))
		const condition = `{"type":"Ready","status":"True","reason":"Up","message":"","lastTransitionTime":"2023-11-14T22:13:20Z"}`
		if a := statusConditions(ctx, cp, svc.Name, `[`+condition+`,`+condition+`]`); !a.Accepted() {
			Expect(a).To(check.BeRefused())
			return
		}
		Expect(typeStored(ctx, cp, svc.Name).Status.Conditions).To(HaveLen(1))
	})
})

// statusText is the JSON of a value; equal instants in different time zones give equal texts.
func statusText(value any) string {
	text, err := json.Marshal(value)
	check.Must(err)
	return string(text)
}

var _ = ginkgo.Describe("ingress points", func() {
	check.It(spec.APIStatusLoadBalancerType, "are refused on types other than LoadBalancer", func(ctx context.Context, cp *check.ControlPlane) {
		for _, o := range []check.ServiceOption{
			check.OfType(corev1.ServiceTypeClusterIP), check.OfType(corev1.ServiceTypeNodePort), check.ExternalName("example.com"),
		} {
			svc := cp.Arrange(ctx, check.Service(cp.Name("other"), o))
			Expect(statusIngress(ctx, cp, svc.Name, `[{"ip":"192.0.2.10"}]`)).To(check.BeInvalid(statusIngressPath), "type %s", svc.Spec.Type)
			Expect(statusStored(ctx, cp, svc.Name)).To(BeEmpty(), "type %s", svc.Spec.Type)
		}
	})

	check.It(spec.APIStatusIngress, "come back as they were written", check.Versions(">=1.30"), func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("balanced", typeLoadBalancer()))
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{
			{IP: "192.0.2.10", IPMode: new(corev1.LoadBalancerIPModeVIP)},
			{Hostname: "lb.example.com"},
			{IP: "2001:db8::10", IPMode: new(corev1.LoadBalancerIPModeProxy), Hostname: "both.example.com"},
		}
		Expect(cp.UpdateStatus(ctx, svc)).To(check.BeAccepted())
		Expect(statusStored(ctx, cp, svc.Name)).To(Equal(svc.Status.LoadBalancer.Ingress))
	})

	check.It(spec.APIStatusLoadBalancerCleared, "are cleared by a change to another type", func(ctx context.Context, cp *check.ControlPlane) {
		for _, kind := range balancerTypes {
			svc := cp.Arrange(ctx, check.Service(cp.Name("balanced"), typeLoadBalancer()))
			Expect(statusIngress(ctx, cp, svc.Name, `[{"ip":"192.0.2.10"}]`)).To(check.BeAccepted())
			Expect(cp.MergePatch(ctx, svc.Name, `{"spec":{"type":"`+string(kind)+`"}}`)).To(check.BeAccepted(), "to type %s", kind)
			Expect(statusStored(ctx, cp, svc.Name)).To(BeEmpty(), "to type %s", kind)
		}
	})

	check.It(spec.APIStatusIngressHostname, "may have a DNS name as hostname", func(ctx context.Context, cp *check.ControlPlane) {
		statusAccepted(ctx, cp, `{"hostname":"lb.example.com"}`, `{"hostname":"1-a.example"}`)
	})

	check.It(spec.APIStatusIngressHostname, "may have nothing else as hostname", func(ctx context.Context, cp *check.ControlPlane) {
		statusRefused(ctx, cp, "hostname", `{"hostname":"192.0.2.10"}`, `{"hostname":"2001:db8::10"}`, `{"hostname":"LB.example.com"}`,
			`{"hostname":"l_b.example.com"}`, `{"hostname":"-lb.example.com"}`, `{"hostname":"lb..example.com"}`)
	})

	check.It(spec.APIStatusIngressIP, "may have addresses of either family", func(ctx context.Context, cp *check.ControlPlane) {
		statusAccepted(ctx, cp, `{"ip":"192.0.2.10"}`, `{"ip":"2001:db8::10"}`)
	})

	check.It(spec.APIStatusIngressIP, "may have no other text as ip", func(ctx context.Context, cp *check.ControlPlane) {
		statusRefused(ctx, cp, "ip", `{"ip":"lb.example.com"}`, `{"ip":"192.0.2.0/24"}`, `{"ip":"192.0.2.256"}`)
	})

	check.It(spec.APIStatusIngressIPStrict, "have an ip without leading zeros and not as IPv4 in IPv6", func(ctx context.Context, cp *check.ControlPlane) {
		statusRefused(ctx, cp, "ip", `{"ip":"192.0.02.10"}`, `{"ip":"::ffff:192.0.2.10"}`)
	})
})

var _ = ginkgo.Describe("the IP mode of an ingress point", func() {
	check.It(spec.APIStatusIngressIPMode, "is refused without an IP", func(ctx context.Context, cp *check.ControlPlane) {
		statusRefused(ctx, cp, "ipMode", `{"ipMode":"VIP"}`, `{"hostname":"lb.example.com","ipMode":"Proxy"}`)
	})

	check.It(spec.APIStatusIngressIPModeValues, "may be VIP or Proxy", func(ctx context.Context, cp *check.ControlPlane) {
		statusAccepted(ctx, cp, `{"ip":"192.0.2.10","ipMode":"VIP"}`, `{"ip":"192.0.2.10","ipMode":"Proxy"}`)
	})

	check.It(spec.APIStatusIngressIPModeValues, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		statusRefused(ctx, cp, "ipMode", `{"ip":"192.0.2.10","ipMode":"vip"}`, `{"ip":"192.0.2.10","ipMode":""}`, `{"ip":"192.0.2.10","ipMode":"DSR"}`)
	})

	check.It(spec.APIStatusIngressIPModeDefault, "is VIP if it is not set", func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("balanced", typeLoadBalancer()))
		Expect(statusIngress(ctx, cp, "balanced", `[{"ip":"192.0.2.10"},{"hostname":"lb.example.com"}]`)).To(check.BeAccepted())
		stored := statusStored(ctx, cp, "balanced")
		Expect(stored).To(HaveLen(2))
		Expect(stored[0].IPMode).To(HaveValue(Equal(corev1.LoadBalancerIPModeVIP)), "with an IP")
		Expect(stored[1].IPMode).To(BeNil(), "with a hostname only")
	})
})

var _ = ginkgo.Describe("the ports of an ingress point", func() {
	check.It(spec.APIStatusIngressPorts, "come back as they were written", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("balanced", typeLoadBalancer()))
		svc.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{Hostname: "lb.example.com", Ports: []corev1.PortStatus{
			{Port: 80, Protocol: corev1.ProtocolTCP},
			{Port: 80, Protocol: corev1.ProtocolUDP, Error: new("MixedProtocolNotSupported")},
		}}}
		Expect(cp.UpdateStatus(ctx, svc)).To(check.BeAccepted())
		Expect(statusStored(ctx, cp, svc.Name)).To(Equal(svc.Status.LoadBalancer.Ingress))
	})

	check.It(spec.APIStatusIngressPortRequired, "are refused without a port", func(ctx context.Context, cp *check.ControlPlane) {
		statusRefused(ctx, cp, "ports[0].port", `{"ip":"192.0.2.10","ports":[{"protocol":"TCP"}]}`)
	})

	check.It(spec.APIStatusIngressPortRequired, "are refused without a protocol", func(ctx context.Context, cp *check.ControlPlane) {
		statusRefused(ctx, cp, "ports[0].protocol", `{"ip":"192.0.2.10","ports":[{"port":80}]}`)
	})

	check.It(spec.APIStatusIngressPortProtocol, "have TCP, UDP or SCTP as protocol", func(ctx context.Context, cp *check.ControlPlane) {
		statusAccepted(ctx, cp, `{"ip":"192.0.2.10","ports":[{"port":80,"protocol":"TCP"},{"port":80,"protocol":"UDP"},{"port":80,"protocol":"SCTP"}]}`)
	})

	check.It(spec.APIStatusIngressPortProtocol, "have no other protocol", func(ctx context.Context, cp *check.ControlPlane) {
		statusRefused(ctx, cp, "ports[0].protocol", `{"ip":"192.0.2.10","ports":[{"port":80,"protocol":"ICMP"}]}`, `{"ip":"192.0.2.10","ports":[{"port":80,"protocol":"tcp"}]}`)
	})

	check.It(spec.APIStatusIngressPortError, "may have a CamelCase error, also with a prefix", func(ctx context.Context, cp *check.ControlPlane) {
		for _, e := range []string{"MixedProtocolNotSupported", "foo.example.com/CamelCase"} {
			name := cp.Name("balanced")
			cp.Arrange(ctx, check.Service(name, typeLoadBalancer()))
			Expect(statusIngress(ctx, cp, name, `[{"ip":"192.0.2.10","ports":[{"port":80,"protocol":"TCP","error":"`+e+`"}]}]`)).To(check.BeAccepted(), "error %q", e)
			Expect(statusStored(ctx, cp, name)).To(HaveExactElements(HaveField("Ports", HaveExactElements(HaveField("Error", HaveValue(Equal(e)))))))
		}
	})

	check.It(spec.APIStatusIngressPortErrorSyntax, "have no other error", func(ctx context.Context, cp *check.ControlPlane) {
		for _, e := range []string{"", "not camel case !!", "Foo.example.com/CamelCase", "a/b/C"} {
			name := cp.Name("balanced")
			cp.Arrange(ctx, check.Service(name, typeLoadBalancer()))
			a := statusIngress(ctx, cp, name, `[{"ip":"192.0.2.10","ports":[{"port":80,"protocol":"TCP","error":"`+e+`"}]}]`)
			Expect(a).To(check.BeInvalid(statusIngressPath+"[0].ports[0].error"), "error %q", e)
		}
	})
})
