package apischema

import (
	"context"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	balancerAllocatePath = "spec.allocateLoadBalancerNodePorts"
	balancerClassPath    = "spec.loadBalancerClass"
)

// balancerTypes are the types with a cluster IP other than LoadBalancer.
var balancerTypes = []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort}

// balancerAllocate sets spec.allocateLoadBalancerNodePorts.
func balancerAllocate(allocate bool) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.AllocateLoadBalancerNodePorts = new(allocate) })
}

// balancerClass sets spec.loadBalancerClass.
func balancerClass(class string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.LoadBalancerClass = new(class) })
}

// balancerRanges sets spec.loadBalancerSourceRanges.
func balancerRanges(ranges ...string) check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.LoadBalancerSourceRanges = ranges })
}

// balancerRangesRefused demands that each value is refused as a source range.
func balancerRangesRefused(ctx context.Context, cp *check.ControlPlane, values ...string) {
	ginkgo.GinkgoHelper()
	for _, value := range values {
		a := cp.Create(ctx, check.Service(cp.Name("ranges"), typeLoadBalancer(), balancerRanges(value)))
		// kube-apiserver spells the field with a capital L, and older versions do not name the entry.
		Expect(a).To(check.BeInvalid("spec.loadBalancerSourceRanges[0]", "spec.LoadBalancerSourceRanges[0]", "spec.LoadBalancerSourceRanges"), "source range %q", value)
	}
}

// balancerClears demands that a load balancer can be changed to another type without clearing a field itself. That another field is not cleared is another
// requirement.
func balancerClears(a check.Response, path string, kind corev1.ServiceType) {
	ginkgo.GinkgoHelper()
	if fields := a.Fields(); len(fields) > 0 && !slices.Contains(fields, path) {
		check.Abort("the change to type %s was refused because of %s: it tells nothing of %s: %s", kind, strings.Join(fields, ", "), path, a)
	}
	Expect(a).To(check.BeAccepted(), "to type %s", kind)
}

var _ = ginkgo.Describe("allocateLoadBalancerNodePorts", func() {
	check.It(spec.APILoadBalancerNodePortsDefault, "is true if it is not set", check.Claiming(spec.FeatureNodePort), func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("balanced", nodePortsOf(0, 0), typeLoadBalancer()))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.AllocateLoadBalancerNodePorts).To(HaveValue(BeTrue()), "allocateLoadBalancerNodePorts is true")
		nodePortsAssigned(cp, a.Service)
	})

	check.It(spec.APILoadBalancerNodePortsDefault, "is true if it is set to null", check.Claiming(spec.FeatureNodePort), func(ctx context.Context, cp *check.ControlPlane) {
		cp.Arrange(ctx, check.Service("balanced", nodePortsOf(0, 0), typeLoadBalancer(), balancerAllocate(false)))
		a := cp.MergePatch(ctx, "balanced", `{"spec":{"allocateLoadBalancerNodePorts":null}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.AllocateLoadBalancerNodePorts).To(HaveValue(BeTrue()), "allocateLoadBalancerNodePorts is true")
		nodePortsAssigned(cp, a.Service)
	})

	check.It(spec.APILoadBalancerNodePortsDisabled, "set to false assigns no node ports", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("balanced", nodePortsOf(0, 0), typeLoadBalancer(), balancerAllocate(false)))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.AllocateLoadBalancerNodePorts).To(HaveValue(BeFalse()), "allocateLoadBalancerNodePorts is true")
		for _, p := range a.Service.Spec.Ports {
			Expect(p.NodePort).To(BeZero(), "the node port of port %d", p.Port)
		}
	})

	check.It(spec.APILoadBalancerNodePortsExplicit, "does not touch node ports that are named", func(ctx context.Context, cp *check.ControlPlane) {
		ports := cp.FreeNodePorts(ctx, 2)
		for i, allocate := range []bool{false, true} {
			a := cp.Create(ctx, check.Service(cp.Name("balanced"), nodePortsOf(0, ports[i]), typeLoadBalancer(), balancerAllocate(allocate)))
			Expect(a).To(check.BeAccepted(), "allocateLoadBalancerNodePorts %t", allocate)
			Expect(a.Service.Spec.Ports[1].NodePort).To(Equal(ports[i]), "allocateLoadBalancerNodePorts %t", allocate)
			Expect(a.Service.Spec.Ports[0].NodePort != 0).To(Equal(allocate), "a node port beside the named one, with allocateLoadBalancerNodePorts %t", allocate)
		}
		nodePortTaken(ctx, cp, ports[0], "a load balancer has it")
	})

	check.It(spec.APILoadBalancerNodePortsDisabledLater, "set to false leaves node ports that are there", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("balanced", typeLoadBalancer()))
		a := cp.MergePatch(ctx, "balanced", `{"spec":{"allocateLoadBalancerNodePorts":false}}`)
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.Ports).To(Equal(svc.Spec.Ports))
	})

	check.It(spec.APILoadBalancerNodePortsType, "is refused on other types", func(ctx context.Context, cp *check.ControlPlane) {
		for _, kind := range balancerTypes {
			for _, allocate := range []bool{false, true} {
				a := cp.Create(ctx, check.Service(cp.Name("other"), check.OfType(kind), balancerAllocate(allocate)))
				Expect(a).To(check.BeInvalid(balancerAllocatePath), "type %s, allocateLoadBalancerNodePorts %t", kind, allocate)
			}
		}
	})

	check.It(spec.APILoadBalancerNodePortsCleared, "is cleared by a change to another type", func(ctx context.Context, cp *check.ControlPlane) {
		for _, kind := range balancerTypes {
			svc := cp.Arrange(ctx, check.Service(cp.Name("balanced"), typeLoadBalancer()))
			a := cp.MergePatch(ctx, svc.Name, `{"spec":{"type":"`+string(kind)+`"}}`)
			balancerClears(a, balancerAllocatePath, kind)
			Expect(a.Service.Spec.AllocateLoadBalancerNodePorts).To(BeNil(), "to type %s", kind)
		}
	})
})

var _ = ginkgo.Describe("loadBalancerClass", func() {
	check.It(spec.APILoadBalancerClassMeaning, "comes back as it was set", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("classified", typeLoadBalancer()))
		Expect(typeStored(ctx, cp, svc.Name).Spec.LoadBalancerClass).To(HaveValue(Equal(typeClass)))
	})

	check.It(spec.APILoadBalancerClassMeaning, "is absent unless it is set", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("unclassified", check.OfType(corev1.ServiceTypeLoadBalancer)), check.DryRun())
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.LoadBalancerClass).To(BeNil())
	})

	check.It(spec.APILoadBalancerClassSyntax, "may be whatever has the syntax of a label key", func(ctx context.Context, cp *check.ControlPlane) {
		for _, class := range []string{"internal-vip", "example.com/internal-vip", "UPPER", "a_b.c", strings.Repeat("a", 63)} {
			a := cp.Create(ctx, check.Service(cp.Name("class"), typeLoadBalancer(), balancerClass(class)), check.DryRun())
			Expect(a).To(check.BeAccepted(), "loadBalancerClass %q", class)
		}
	})

	check.It(spec.APILoadBalancerClassSyntax, "may be nothing else", func(ctx context.Context, cp *check.ControlPlane) {
		for _, class := range []string{"", "a b", "/x", "a/", "a/b/c", "Upper.com/x", "-a", strings.Repeat("a", 64)} {
			a := cp.Create(ctx, check.Service(cp.Name("class"), typeLoadBalancer(), balancerClass(class)))
			Expect(a).To(check.BeInvalid(balancerClassPath), "loadBalancerClass %q", class)
		}
	})

	check.It(spec.APILoadBalancerClassType, "is refused on other types", func(ctx context.Context, cp *check.ControlPlane) {
		for _, kind := range balancerTypes {
			a := cp.Create(ctx, check.Service(cp.Name("other"), check.OfType(kind), balancerClass(typeClass)))
			Expect(a).To(check.BeInvalid(balancerClassPath), "type %s", kind)
		}
	})

	check.It(spec.APILoadBalancerClassWhenSet, "can be set when the Service becomes a load balancer", func(ctx context.Context, cp *check.ControlPlane) {
		for _, kind := range balancerTypes {
			svc := cp.Arrange(ctx, check.Service(cp.Name("becoming"), check.OfType(kind)))
			a := cp.MergePatch(ctx, svc.Name, `{"spec":{"type":"LoadBalancer","loadBalancerClass":"`+typeClass+`"}}`)
			Expect(a).To(check.BeAccepted(), "from type %s", kind)
			Expect(a.Service.Spec.LoadBalancerClass).To(HaveValue(Equal(typeClass)), "from type %s", kind)
		}
	})

	check.It(spec.APILoadBalancerClassWhenSet, "cannot be set once the Service is a load balancer", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("balanced", check.OfType(corev1.ServiceTypeLoadBalancer)))
		a := cp.MergePatch(ctx, svc.Name, `{"spec":{"loadBalancerClass":"`+typeClass+`"}}`)
		Expect(a).To(check.BeInvalid(balancerClassPath))
		Expect(typeStored(ctx, cp, svc.Name).Spec.LoadBalancerClass).To(BeNil())
	})

	check.It(spec.APILoadBalancerClassImmutable, "can neither be changed nor removed", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("balanced", typeLoadBalancer()))
		for _, class := range []string{`"service-conformance.example/other"`, `null`} {
			a := cp.MergePatch(ctx, svc.Name, `{"spec":{"loadBalancerClass":`+class+`}}`)
			Expect(a).To(check.BeInvalid(balancerClassPath), "to %s", class)
		}
		typeUnchanged(ctx, cp, svc)
	})

	check.It(spec.APILoadBalancerClassCleared, "is cleared by a change to another type", func(ctx context.Context, cp *check.ControlPlane) {
		for _, kind := range balancerTypes {
			svc := cp.Arrange(ctx, check.Service(cp.Name("balanced"), typeLoadBalancer()))
			a := cp.MergePatch(ctx, svc.Name, `{"spec":{"type":"`+string(kind)+`"}}`)
			balancerClears(a, balancerClassPath, kind)
			Expect(a.Service.Spec.LoadBalancerClass).To(BeNil(), "to type %s", kind)
		}
	})
})

var _ = ginkgo.Describe("other fields of a load balancer", func() {
	check.It(spec.APILoadBalancerIP, "include loadBalancerIP, which is kept", func(ctx context.Context, cp *check.ControlPlane) {
		svc := check.Service("balanced", typeLoadBalancer())
		svc.Spec.LoadBalancerIP = "192.0.2.10"
		Expect(cp.Create(ctx, svc)).To(check.BeAccepted())
		Expect(typeStored(ctx, cp, svc.Name).Spec.LoadBalancerIP).To(Equal("192.0.2.10"))
	})

	check.It(spec.APILoadBalancerSourceRanges, "include source ranges, which are CIDRs", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("ranges", typeLoadBalancer(), balancerRanges("10.0.0.0/8", " 192.0.2.0/24 ", "2001:db8::/32", "0.0.0.0/0")))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.LoadBalancerSourceRanges).To(HaveLen(4))
	})

	check.It(spec.APILoadBalancerSourceRanges, "refuse source ranges that are no CIDRs", func(ctx context.Context, cp *check.ControlPlane) {
		balancerRangesRefused(ctx, cp, "10.0.0.1", "10.0.0.0/33", "2001:db8::/129", "anywhere", "")
	})

	check.It(spec.APILoadBalancerSourceRangesStrict, "refuse source ranges with host bits, leading zeros and IPv4 in IPv6", func(ctx context.Context, cp *check.ControlPlane) {
		balancerRangesRefused(ctx, cp, "10.0.0.1/8", "010.0.0.0/8", "::ffff:10.0.0.0/104")
	})

	check.It(spec.APILoadBalancerSourceRangesType, "refuse source ranges on other types", func(ctx context.Context, cp *check.ControlPlane) {
		for _, kind := range balancerTypes {
			a := cp.Create(ctx, check.Service(cp.Name("other"), check.OfType(kind), balancerRanges("10.0.0.0/8")))
			Expect(a).To(check.BeInvalid("spec.loadBalancerSourceRanges", "spec.LoadBalancerSourceRanges"), "type %s", kind)
		}
	})

	check.It(spec.APILoadBalancerMixedProtocols, "may include ports of different protocols", func(ctx context.Context, cp *check.ControlPlane) {
		a := cp.Create(ctx, check.Service("mixed", typeLoadBalancer(), check.WithPorts(
			check.Port("http", corev1.ProtocolTCP, 80, 0), check.Port("quic", corev1.ProtocolUDP, 443, 0), check.Port("signal", corev1.ProtocolSCTP, 2905, 0))))
		Expect(a).To(check.BeAccepted())
	})
})
