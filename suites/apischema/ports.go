package apischema

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// portsOf creates a Service that has exactly these ports.
func portsOf(ctx context.Context, cp *check.ControlPlane, ports ...corev1.ServicePort) check.Response {
	ginkgo.GinkgoHelper()
	return cp.Create(ctx, check.Service(cp.Name("ports"), check.WithPorts(ports...)))
}

// acceptedUnlike demands that a Service is accepted that is shaped by the first option. If a Service that is shaped by
// the second is not as it should be either (sound; nil: accepted), something else is wrong with both of them. The check
// is then unknown.
func acceptedUnlike(ctx context.Context, cp *check.ControlPlane, option, control check.ServiceOption, sound func(*corev1.Service) bool) *corev1.Service {
	ginkgo.GinkgoHelper()
	a := cp.Create(ctx, check.Service(cp.Name("tried"), option))
	if a.Accepted() {
		return a.Service
	}
	if c := cp.Create(ctx, check.Service(cp.Name("control"), control)); !c.Accepted() || sound != nil && !sound(c.Service) {
		check.Abort("what is looked at is not why the Service was refused (%s): with one that differs in nothing else it went no better (%s)", a, c)
	}
	Expect(a).To(check.BeAccepted())
	return nil
}

// portsAsJSON creates a Service with the ports as written, for values that the Go type cannot express.
func portsAsJSON(ctx context.Context, cp *check.ControlPlane, ports string) check.Response {
	ginkgo.GinkgoHelper()
	body := fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Service","metadata":{"name":%q},"spec":{"ports":%s}}`, cp.Name("ports"), ports)
	return cp.Do(ctx, http.MethodPost, objectCollection(cp), "application/json", body)
}

// portsNamed returns a port for each name.
func portsNamed(names ...string) []corev1.ServicePort {
	var ports []corev1.ServicePort
	for i, name := range names {
		ports = append(ports, check.Port(name, corev1.ProtocolTCP, int32(80+i), 0))
	}
	return ports
}

// portsTarget is a port with a target port.
func portsTarget(target intstr.IntOrString) corev1.ServicePort {
	return corev1.ServicePort{Port: 80, TargetPort: target}
}

// portsFor is a port for an application protocol.
func portsFor(appProtocol string) corev1.ServicePort {
	return corev1.ServicePort{Port: 80, AppProtocol: new(appProtocol)}
}

// portsKept demands that each application protocol is accepted and comes back.
func portsKept(ctx context.Context, cp *check.ControlPlane, appProtocols ...string) {
	ginkgo.GinkgoHelper()
	for _, p := range appProtocols {
		a := portsOf(ctx, cp, portsFor(p))
		Expect(a).To(check.BeAccepted(), "appProtocol %q", p)
		Expect(a.Service.Spec.Ports[0].AppProtocol).To(HaveValue(Equal(p)), "appProtocol %q", p)
	}
}

var _ = ginkgo.Describe("ports", func() {
	check.It(spec.APIPortsList, "come back as they were sent, in their order", func(ctx context.Context, cp *check.ControlPlane) {
		for _, n := range []int{1, 2, 100} {
			var sent []corev1.ServicePort
			for _, i := range cp.Rand().Perm(n) {
				protocol := []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP}[i%2]
				sent = append(sent, check.Port(fmt.Sprintf("p%d", i), protocol, int32(1000+i/2), 2000+i))
			}
			created := cp.Arrange(ctx, check.Service(cp.Name("list"), check.WithPorts(sent...)))
			Expect(created.Spec.Ports).To(Equal(sent), "%d ports in the answer", n)
			Expect(typeStored(ctx, cp, created.Name).Spec.Ports).To(Equal(sent), "%d ports as stored", n)
		}
	})

	check.It(spec.APIPortsNeeded, "are needed where there is a virtual address", func(ctx context.Context, cp *check.ControlPlane) {
		for _, o := range []check.ServiceOption{
			check.OfType(corev1.ServiceTypeClusterIP), check.OfType(corev1.ServiceTypeNodePort), typeLoadBalancer(),
		} {
			svc := check.Service(cp.Name("bare"), o, check.WithPorts())
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid("spec.ports"), "type %s", svc.Spec.Type)
			typeNotStored(ctx, cp, svc.Name)
		}
	})

	check.It(spec.APIPortsNeeded, "may be missing of a headless Service", func(ctx context.Context, cp *check.ControlPlane) {
		withPort := check.WithPorts(check.Port("", corev1.ProtocolTCP, 80, 0))
		headless := func(more check.ServiceOption) check.ServiceOption {
			return check.With(func(s *corev1.Service) { check.Headless()(s); more(s) })
		}
		acceptedUnlike(ctx, cp, headless(check.WithPorts()), headless(withPort), func(s *corev1.Service) bool { return s.Spec.ClusterIP == corev1.ClusterIPNone })
	})

	check.It(spec.APIPortsNeeded, "may be missing of an alias", func(ctx context.Context, cp *check.ControlPlane) {
		alias := check.ExternalName("example.com")
		acceptedUnlike(ctx, cp, alias, check.With(func(s *corev1.Service) { alias(s); s.Spec.Ports = portsNamed("a") }), nil)
	})

	check.It(spec.APIPortsDistinct, "are refused if a number and protocol occur twice", func(ctx context.Context, cp *check.ControlPlane) {
		twice := []corev1.ServicePort{check.Port("a", corev1.ProtocolTCP, 53, 0), check.Port("b", corev1.ProtocolTCP, 53, 0)}
		Expect(portsOf(ctx, cp, twice...)).To(check.BeInvalid("spec.ports[1]"), "on create")
		svc := cp.Arrange(ctx, check.Service("once"))
		svc.Spec.Ports = append(twice[:1:1], check.Port("b", "", 53, 0)) // TCP by default
		Expect(cp.Update(ctx, svc)).To(check.BeInvalid("spec.ports[1]"), "on update")
	})

	check.It(spec.APIPortsDistinct, "may have the same number with different protocols", func(ctx context.Context, cp *check.ControlPlane) {
		a := portsOf(ctx, cp, check.Port("a", corev1.ProtocolTCP, 53, 0), check.Port("b", corev1.ProtocolUDP, 53, 0), check.Port("c", corev1.ProtocolSCTP, 53, 0))
		Expect(a).To(check.BeAccepted())
	})

	check.It(spec.APIPortRequired, "are refused without a port", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(portsAsJSON(ctx, cp, `[{"name":"a","protocol":"TCP"}]`)).To(check.BeInvalid("spec.ports[0].port"))
	})

	check.It(spec.APIPortValues, "are numbers up to 65535", func(ctx context.Context, cp *check.ControlPlane) {
		for _, port := range []int32{1, 65535} {
			a := portsOf(ctx, cp, corev1.ServicePort{Port: port})
			Expect(a).To(check.BeAccepted(), "port %d", port)
			Expect(a.Service.Spec.Ports[0].Port).To(Equal(port))
		}
	})

	check.It(spec.APIPortValues, "are refused outside 1 to 65535 and as text", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(portsAsJSON(ctx, cp, `[{"port":"80"}]`)).To(check.BeRefusedWith(http.StatusBadRequest, metav1.StatusReasonBadRequest), `port "80"`)
		for _, port := range []int32{-1, 0, 65536} {
			Expect(portsOf(ctx, cp, corev1.ServicePort{Port: port})).To(check.BeInvalid("spec.ports[0].port"), "port %d", port)
		}
	})
})

var _ = ginkgo.Describe("the protocol of a port", func() {
	check.It(spec.APIPortProtocolValues, "may be TCP, UDP or SCTP", func(ctx context.Context, cp *check.ControlPlane) {
		for _, p := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP, corev1.ProtocolSCTP} {
			a := portsOf(ctx, cp, corev1.ServicePort{Protocol: p, Port: 80})
			Expect(a).To(check.BeAccepted(), "protocol %s", p)
			Expect(a.Service.Spec.Ports[0].Protocol).To(Equal(p))
		}
	})

	check.It(spec.APIPortProtocolValues, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		for _, p := range []corev1.Protocol{"tcp", "udp", "ICMP", "HTTP"} {
			Expect(portsOf(ctx, cp, corev1.ServicePort{Protocol: p, Port: 80})).To(check.BeInvalid("spec.ports[0].protocol"), "protocol %s", p)
		}
	})

	check.It(spec.APIPortProtocolDefault, "is TCP if none is named", func(ctx context.Context, cp *check.ControlPlane) {
		for _, ports := range []string{`[{"port":80}]`, `[{"port":80,"protocol":""}]`} {
			a := portsAsJSON(ctx, cp, ports)
			Expect(a).To(check.BeAccepted(), "ports %s", ports)
			Expect(a.Service.Spec.Ports[0].Protocol).To(Equal(corev1.ProtocolTCP), "ports %s", ports)
		}
	})
})

var _ = ginkgo.Describe("the name of a port", func() {
	check.It(spec.APIPortNameSyntax, "may be any DNS label", func(ctx context.Context, cp *check.ControlPlane) {
		for _, name := range []string{"a", "a-b", "1a", "80", strings.Repeat("a", 63)} {
			Expect(portsOf(ctx, cp, portsNamed(name)...)).To(check.BeAccepted(), "name %q", name)
		}
	})

	check.It(spec.APIPortNameSyntax, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		for _, name := range []string{"A", "a_b", "a.b", "a b", "-a", "a-", strings.Repeat("a", 64)} {
			Expect(portsOf(ctx, cp, portsNamed(name)...)).To(check.BeInvalid("spec.ports[0].name"), "name %q", name)
		}
	})

	check.It(spec.APIPortNamesUnique, "occurs once", func(ctx context.Context, cp *check.ControlPlane) {
		Expect(portsOf(ctx, cp, portsNamed("a", "b", "a")...)).To(check.BeInvalid("spec.ports[2].name"))
	})

	check.It(spec.APIPortNameOptional, "may be missing if there is one port", func(ctx context.Context, cp *check.ControlPlane) {
		acceptedUnlike(ctx, cp, check.WithPorts(portsNamed("")...), check.WithPorts(portsNamed("a")...), nil)
	})

	check.It(spec.APIPortNameOptional, "is needed if there are several ports", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("one", check.WithPorts(portsNamed("a")...)))
		if !a.Accepted() {
			check.Abort("a Service is refused whatever the names of its ports: %s", a)
		}
		svc := a.Service
		a = cp.Create(ctx, check.Service(cp.Name("two"), check.WithPorts(portsNamed("a", "")...)))
		Expect(a).To(check.BeInvalid("spec.ports[1].name"), "on create")
		svc.Spec.Ports = portsNamed("", "b")
		Expect(cp.Update(ctx, svc)).To(check.BeInvalid("spec.ports[0].name"), "on update")
	})
})

var _ = ginkgo.Describe("targetPort", func() {
	check.It(spec.APITargetPortKinds, "is kept as a number or as a name", func(ctx context.Context, cp *check.ControlPlane) {
		for _, target := range []intstr.IntOrString{intstr.FromInt32(8080), intstr.FromString("http")} {
			a := portsOf(ctx, cp, portsTarget(target))
			Expect(a).To(check.BeAccepted(), "targetPort %v", target)
			Expect(a.Service.Spec.Ports[0].TargetPort).To(Equal(target))
		}
	})

	check.It(spec.APITargetPortNumber, "may be a number up to 65535", func(ctx context.Context, cp *check.ControlPlane) {
		for _, n := range []int32{1, 65535} {
			Expect(portsOf(ctx, cp, portsTarget(intstr.FromInt32(n)))).To(check.BeAccepted(), "targetPort %d", n)
		}
	})

	check.It(spec.APITargetPortNumber, "may be no other number", func(ctx context.Context, cp *check.ControlPlane) {
		for _, n := range []int32{-1, 65536} {
			Expect(portsOf(ctx, cp, portsTarget(intstr.FromInt32(n)))).To(check.BeInvalid("spec.ports[0].targetPort"), "targetPort %d", n)
		}
	})

	check.It(spec.APITargetPortName, "may be any IANA service name", func(ctx context.Context, cp *check.ControlPlane) {
		for _, name := range []string{"a", "http", "1a", "a-1-b", strings.Repeat("a", 15)} {
			Expect(portsOf(ctx, cp, portsTarget(intstr.FromString(name)))).To(check.BeAccepted(), "targetPort %q", name)
		}
	})

	check.It(spec.APITargetPortName, "may be no other text", func(ctx context.Context, cp *check.ControlPlane) {
		for _, name := range []string{"HTTP", "80", "a--b", "-a", "a-", "a_b", "a.b", strings.Repeat("a", 16)} {
			Expect(portsOf(ctx, cp, portsTarget(intstr.FromString(name)))).To(check.BeInvalid("spec.ports[0].targetPort"), "targetPort %q", name)
		}
	})

	check.It(spec.APITargetPortDefault, "is the port if it is not specified", func(ctx context.Context, cp *check.ControlPlane) {
		for _, target := range []string{``, `,"targetPort":0`, `,"targetPort":""`} {
			a := portsAsJSON(ctx, cp, `[{"name":"a","port":80,"targetPort":8080},{"name":"b","port":443`+target+`}]`)
			Expect(a).To(check.BeAccepted(), "port 443%s", target)
			Expect(a.Service.Spec.Ports[1].TargetPort).To(Equal(intstr.FromInt32(443)), "port 443%s", target)
		}
	})

	check.It(spec.APITargetPortHeadless, "may differ from the port of a headless Service", func(ctx context.Context, cp *check.ControlPlane) {
		for _, target := range []int{0, 80, 8080} {
			a := cp.Create(ctx, check.Service(cp.Name("headless"), check.Headless(), check.WithPorts(check.Port("", corev1.ProtocolTCP, 80, target))))
			Expect(a).To(check.BeAccepted(), "targetPort %d", target)
		}
	})
})

var _ = ginkgo.Describe("appProtocol", func() {
	check.It(spec.APIAppProtocolSyntax, "may be whatever has the syntax of a label key", func(ctx context.Context, cp *check.ControlPlane) {
		portsKept(ctx, cp, "HTTP", "a_b.c", strings.Repeat("a", 63), "example.com/x", portsDomain(253)+"/x")
	})

	check.It(spec.APIAppProtocolSyntax, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		for _, p := range []string{"", "a b", "http*", "-a", "/x", "a/", "a/b/c", "Upper.com/x", strings.Repeat("a", 64), portsDomain(254) + "/x"} {
			Expect(portsOf(ctx, cp, portsFor(p))).To(check.BeInvalid("spec.ports[0].appProtocol"), "appProtocol %q", p)
		}
	})

	check.It(spec.APIAppProtocolStandardNames, "may be an IANA service name", func(ctx context.Context, cp *check.ControlPlane) {
		portsKept(ctx, cp, "http", "https", "dns-sec", "h323hostcall")
	})

	check.It(spec.APIAppProtocolKubernetesNames, "may be a name that Kubernetes defines", func(ctx context.Context, cp *check.ControlPlane) {
		portsKept(ctx, cp, "kubernetes.io/h2c", "kubernetes.io/ws", "kubernetes.io/wss")
	})

	check.It(spec.APIAppProtocolPrefixedNames, "may be a name with the prefix of an implementation", func(ctx context.Context, cp *check.ControlPlane) {
		portsKept(ctx, cp, "mycompany.com/my-custom-protocol")
	})
})

// portsDomain returns a DNS name of n characters.
func portsDomain(n int) string {
	const suffix = ".example"
	return strings.Repeat("a", n-len(suffix)) + suffix
}
