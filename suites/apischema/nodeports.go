package apischema

import (
	"context"
	"fmt"
	"net/http"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const nodePortPath = "spec.ports[0].nodePort"

// nodePortOf makes the Service one of type NodePort with one port and this node port; 0 leaves the choice to the server.
func nodePortOf(port int32) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		s.Spec.Type, s.Spec.Ports = corev1.ServiceTypeNodePort, []corev1.ServicePort{{Port: 80, NodePort: port}}
	})
}

// nodePortsOf makes the Service one of type NodePort with a named port for each of these node ports.
func nodePortsOf(ports ...int32) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		s.Spec.Type, s.Spec.Ports = corev1.ServiceTypeNodePort, nil
		for i, p := range ports {
			s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", i), Port: int32(80 + i), NodePort: p})
		}
	})
}

// nodePortTaken demands that nobody can have the node port.
func nodePortTaken(ctx context.Context, cp *check.ControlPlane, port int32, because string) {
	ginkgo.GinkgoHelper()
	a := cp.Create(ctx, check.Service(cp.Name("second"), nodePortOf(port)))
	Expect(a).NotTo(check.BeAccepted(), "node port %d must be in use: %s", port, because)
}

// nodePortFree demands that another Service can have the node port.
func nodePortFree(ctx context.Context, cp *check.ControlPlane, port int32, because string) {
	ginkgo.GinkgoHelper()
	a := cp.Create(ctx, check.Service(cp.Name("next"), nodePortOf(port)))
	Expect(a).To(check.BeAccepted(), "node port %d must be free: %s", port, because)
}

// nodePortsAssigned demands that each port has a node port of the range, all of them different.
func nodePortsAssigned(cp *check.ControlPlane, svc *corev1.Service) {
	ginkgo.GinkgoHelper()
	first, last := cp.NodePorts()
	seen := map[int32]bool{}
	for _, p := range svc.Spec.Ports {
		Expect(p.NodePort).To(And(BeNumerically(">=", first), BeNumerically("<=", last)), "the node port of port %d", p.Port)
		Expect(seen[p.NodePort]).To(BeFalse(), "node port %d is given twice", p.NodePort)
		seen[p.NodePort] = true
	}
}

// nodePortsOutside are numbers that are no node ports of the range.
func nodePortsOutside(cp *check.ControlPlane) []int32 {
	first, last := cp.NodePorts()
	return []int32{-1, int32(first - 1), int32(last + 1)}
}

var _ = ginkgo.Describe("a node port that nobody names", func() {
	check.It(spec.APINodePortAssigned, "is assigned to each port of a new Service", func(ctx context.Context, cp *check.ControlPlane) {
		for _, o := range []check.ServiceOption{check.OfType(corev1.ServiceTypeNodePort), typeLoadBalancer()} {
			svc := cp.Arrange(ctx, check.Service(cp.Name("new"), nodePortsOf(0, 0, 0), o))
			nodePortsAssigned(cp, svc)
			Expect(typeStored(ctx, cp, svc.Name).Spec.Ports).To(Equal(svc.Spec.Ports), "type %s: as stored", svc.Spec.Type)
			nodePortTaken(ctx, cp, svc.Spec.Ports[0].NodePort, "it was assigned")
		}
	})

	check.It(spec.APINodePortAssigned, "is assigned by an update that makes it necessary", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("late"))
		svc.Spec.Type = corev1.ServiceTypeNodePort
		changed := cp.Update(ctx, svc)
		Expect(changed).To(check.BeAccepted(), "a change of the type")
		nodePortsAssigned(cp, changed.Service)
		svc = changed.Service
		svc.Spec.Ports[0].Name = "p0"
		svc.Spec.Ports = append(svc.Spec.Ports, check.Port("p1", corev1.ProtocolTCP, 81, 0))
		changed = cp.Update(ctx, svc)
		Expect(changed).To(check.BeAccepted(), "a new port")
		nodePortsAssigned(cp, changed.Service)
	})
})

var _ = ginkgo.Describe("a node port that the client names", func() {
	check.It(spec.APINodePortChosen, "is used", func(ctx context.Context, cp *check.ControlPlane) {
		ports := cp.FreeNodePorts(ctx, 2)
		a := cp.Create(ctx, check.Service("chosen", nodePortsOf(ports[0], 0, ports[1])))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.Ports[0].NodePort).To(Equal(ports[0]))
		Expect(a.Service.Spec.Ports[2].NodePort).To(Equal(ports[1]))
		nodePortsAssigned(cp, a.Service)
	})

	check.It(spec.APINodePortChosen, "is used by an update that leaves another one to the server", check.NodePorts("30000-30063"),
		func(ctx context.Context, cp *check.ControlPlane) {
			first, last := cp.NodePorts()
			cp.Arrange(ctx, check.Service("filler", nodePortsOf(make([]int32, last-first-2)...)))
			svc := cp.Arrange(ctx, check.Service("grows", nodePortsOf(0)))
			used := cp.NodePortsInUse(ctx)
			var free []int32
			for port := int32(first); port <= int32(last); port++ {
				if !used[port] {
					free = append(free, port)
				}
			}
			Expect(free).To(HaveLen(2), "free node ports")
			// A server that draws one before it takes the one that is named draws that one as often as not, whichever it favors: each is named in turn.
			for range check.TrialsUntil(0.75) {
				for i, named := range free {
					wanted := svc.DeepCopy()
					wanted.Spec.Ports = append(wanted.Spec.Ports, check.Port("drawn", corev1.ProtocolTCP, 81, 0), check.Port("named", corev1.ProtocolTCP, 82, 0))
					wanted.Spec.Ports[2].NodePort = named
					a := cp.Update(ctx, wanted)
					Expect(a).To(check.BeAccepted(), "node ports %v are free, and %d is named", free, named)
					Expect([]int32{a.Service.Spec.Ports[1].NodePort, a.Service.Spec.Ports[2].NodePort}).To(Equal([]int32{free[1-i], named}), "the node port that the server chooses, and the one that is named")
					a.Service.Spec.Ports = a.Service.Spec.Ports[:1]
					a = cp.Update(ctx, a.Service)
					Expect(a).To(check.BeAccepted(), "the ports are removed")
					svc = a.Service
				}
			}
		})

	check.It(spec.APINodePortOutOfRange, "is refused by a create if it is out of range", func(ctx context.Context, cp *check.ControlPlane) {
		for _, port := range nodePortsOutside(cp) {
			svc := check.Service(cp.Name("outside"), nodePortOf(port))
			Expect(cp.Create(ctx, svc)).NotTo(check.BeAccepted(), "node port %d", port)
		}
	})

	check.It(spec.APINodePortOutOfRange, "is refused by an update if it is out of range", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("outside", nodePortOf(0)))
		for _, port := range nodePortsOutside(cp) {
			wanted := svc.DeepCopy()
			wanted.Spec.Ports[0].NodePort = port
			Expect(cp.Update(ctx, wanted)).NotTo(check.BeAccepted(), "node port %d", port)
		}
		typeUnchanged(ctx, cp, svc)
	})

	check.It(spec.APINodePortInUse, "is refused by a create if another Service has it", func(ctx context.Context, cp *check.ControlPlane) {
		taken := cp.Arrange(ctx, check.Service("owner", nodePortOf(0))).Spec.Ports[0].NodePort
		nodePortTaken(ctx, cp, taken, "a Service of the same namespace has it")
		elsewhere := check.Service("second", check.InNamespace(cp.NewNamespace(ctx)), nodePortOf(taken))
		Expect(cp.Create(ctx, elsewhere)).NotTo(check.BeAccepted(), "a Service of another namespace has node port %d", taken)
	})

	check.It(spec.APINodePortInUse, "is refused by an update if another Service has it", func(ctx context.Context, cp *check.ControlPlane) {
		taken := cp.Arrange(ctx, check.Service("owner", nodePortOf(0))).Spec.Ports[0].NodePort
		svc := cp.Arrange(ctx, check.Service("second", nodePortOf(0)))
		wanted := svc.DeepCopy()
		wanted.Spec.Ports[0].NodePort = taken
		Expect(cp.Update(ctx, wanted)).NotTo(check.BeAccepted())
		typeUnchanged(ctx, cp, svc)
	})

	check.It(spec.APINodePortDistinct, "is refused by a create if two ports have it", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		Expect(cp.Create(ctx, check.Service("twice", nodePortsOf(port, port)))).NotTo(check.BeAccepted())
		typeNotStored(ctx, cp, "twice")
	})

	check.It(spec.APINodePortDistinct, "is not given to two ports by an update", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("twice", nodePortsOf(0, 0)))
		wanted := svc.DeepCopy()
		wanted.Spec.Ports[1].NodePort = svc.Spec.Ports[0].NodePort
		Expect(cp.Update(ctx, wanted)).NotTo(check.BeAccepted())
		typeUnchanged(ctx, cp, svc)
	})

	check.It(spec.APINodePortClientError, "is told by a create if two ports have it or another Service does", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		Expect(cp.Create(ctx, check.Service("twice", nodePortsOf(port, port)))).To(check.BeRefused())
		taken := cp.Arrange(ctx, check.Service("owner", nodePortOf(0))).Spec.Ports[0].NodePort
		Expect(cp.Create(ctx, check.Service("second", nodePortOf(taken)))).To(check.BeRefused())
	})

	check.It(spec.APINodePortClientError, "is told by an update if two ports have it", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("twice", nodePortsOf(0, 0)))
		svc.Spec.Ports[1].NodePort = svc.Spec.Ports[0].NodePort
		Expect(cp.Update(ctx, svc)).To(check.BeRefused())
	})

	check.It(spec.APINodePortShared, "may serve several protocols of one port", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		ports := []corev1.ServicePort{{Name: "t", Protocol: corev1.ProtocolTCP, Port: 53, NodePort: port}, {Name: "u", Protocol: corev1.ProtocolUDP, Port: 53, NodePort: port}}
		Expect(cp.Create(ctx, check.Service("dns", nodePortOf(0), check.WithPorts(ports...)))).To(check.BeAccepted())
	})
})

var _ = ginkgo.Describe("node ports of several protocols", func() {
	check.It(spec.APINodePortShared, "are assigned as one number to one port", func(ctx context.Context, cp *check.ControlPlane) {
		svc := cp.Arrange(ctx, check.Service("dns", nodePortOf(0),
			check.WithPorts(check.Port("t", corev1.ProtocolTCP, 53, 0), check.Port("u", corev1.ProtocolUDP, 53, 0))))
		Expect(svc.Spec.Ports[0].NodePort).NotTo(BeZero())
		Expect(svc.Spec.Ports[1].NodePort).To(Equal(svc.Spec.Ports[0].NodePort))
	})
})

var _ = ginkgo.Describe("a node port that is not needed", func() {
	check.It(spec.APINodePortUnneeded, "is refused for type ClusterIP", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		for _, o := range []check.ServiceOption{check.OfType(""), check.OfType(corev1.ServiceTypeClusterIP), check.Headless()} {
			svc := check.Service(cp.Name("inside"), nodePortOf(port), check.OfType(""), o)
			Expect(cp.Create(ctx, svc)).To(check.BeInvalid(nodePortPath), "type %q, clusterIP %q", svc.Spec.Type, svc.Spec.ClusterIP)
			typeNotStored(ctx, cp, svc.Name)
		}
	})

	check.It(spec.APINodePortUnneeded, "is refused for type ExternalName", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		svc := check.Service("alias", check.ExternalName("example.com"), check.WithPorts(corev1.ServicePort{Port: 80, NodePort: port}))
		Expect(cp.Create(ctx, svc)).To(check.BeInvalid(nodePortPath))
	})
})

var _ = ginkgo.Describe("a node port in use", func() {
	check.It(spec.APINodePortOwner, "is not freed by a Service of type ExternalName that names it", func(ctx context.Context, cp *check.ControlPlane) {
		taken := cp.Arrange(ctx, check.Service("owner", nodePortOf(0))).Spec.Ports[0].NodePort
		stranger := check.Service("stranger", check.ExternalName("example.com"), check.WithPorts(corev1.ServicePort{Port: 80, NodePort: taken}))
		if cp.Create(ctx, stranger).Accepted() {
			Expect(cp.Delete(ctx, "stranger")).To(check.BeAccepted())
		}
		nodePortTaken(ctx, cp, taken, "its owner exists")
	})

	check.It(spec.APINodePortOwner, "is not freed by its former owner", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		cp.Arrange(ctx, check.Service("former", nodePortOf(port)))
		Expect(cp.MergePatch(ctx, "former", `{"spec":{"type":"ClusterIP"}}`)).To(check.BeAccepted())
		cp.Arrange(ctx, check.Service("owner", nodePortOf(port)))
		Expect(cp.Delete(ctx, "former")).To(check.BeAccepted())
		nodePortTaken(ctx, cp, port, "its present owner exists")
	})

	check.It(spec.APINodePortOwner, "stays so while a finalizer holds its owner", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		svc := check.Service("leaving", nodePortOf(port))
		svc.Finalizers = []string{"service-conformance.example/hold"}
		cp.Arrange(ctx, svc)
		Expect(cp.Delete(ctx, "leaving")).To(check.BeAccepted())
		nodePortTaken(ctx, cp, port, "its owner is not gone yet")
		Expect(cp.MergePatch(ctx, "leaving", `{"metadata":{"finalizers":null}}`)).To(check.BeAccepted())
		Expect(cp.Get(ctx, "leaving")).To(check.BeRefusedWith(http.StatusNotFound, metav1.StatusReasonNotFound))
		nodePortFree(ctx, cp, port, "its owner is gone")
	})
})

var _ = ginkgo.Describe("an update of a Service with node ports", func() {
	for _, to := range []struct {
		kind  corev1.ServiceType
		patch string
	}{
		{corev1.ServiceTypeClusterIP, `{"spec":{"type":"ClusterIP"}}`},
		{corev1.ServiceTypeExternalName, `{"spec":{"type":"ExternalName","externalName":"example.com"}}`},
	} {
		check.It(spec.APINodePortCleared, fmt.Sprintf("to type %s clears them", to.kind), func(ctx context.Context, cp *check.ControlPlane) {
			cp.Arrange(ctx, check.Service("changing", nodePortsOf(0, 0)))
			a := cp.MergePatch(ctx, "changing", to.patch)
			Expect(a).To(check.BeAccepted())
			Expect(a.Service.Spec.Ports).To(HaveLen(2))
			for _, p := range a.Service.Spec.Ports {
				Expect(p.NodePort).To(BeZero(), "the node port of port %d", p.Port)
			}
		})

		check.It(spec.APINodePortCleared, fmt.Sprintf("to type %s frees them", to.kind), func(ctx context.Context, cp *check.ControlPlane) {
			port := cp.FreeNodePorts(ctx, 1)[0]
			cp.Arrange(ctx, check.Service("changing", nodePortOf(port)))
			Expect(cp.MergePatch(ctx, "changing", to.patch)).To(check.BeAccepted())
			nodePortFree(ctx, cp, port, "its Service has no use for it")
		})
	}

	check.It(spec.APINodePortKept, "keeps those that it leaves out", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("applied", nodePortsOf(0, 0)))
		again := cp.Update(ctx, check.Service("applied", nodePortsOf(0, 0)))
		Expect(again).To(check.BeAccepted())
		Expect(again.Service.Spec.Ports).To(Equal(before.Spec.Ports))
		grown := cp.Update(ctx, check.Service("applied", nodePortsOf(0, 0), typeLoadBalancer()))
		Expect(grown).To(check.BeAccepted(), "a change to type LoadBalancer")
		Expect(grown.Service.Spec.Ports).To(Equal(before.Spec.Ports), "after a change to type LoadBalancer")
	})

	check.It(spec.APINodePortKept, "keeps those that it leaves out, beside one for a port that it adds", func(ctx context.Context, cp *check.ControlPlane) {
		before := cp.Arrange(ctx, check.Service("applied", nodePortsOf(0, 0)))
		grown := cp.Update(ctx, check.Service("applied", nodePortsOf(0, 0, 0)))
		Expect(grown).To(check.BeAccepted())
		Expect(grown.Service.Spec.Ports).To(HaveLen(3))
		Expect(grown.Service.Spec.Ports[:2]).To(Equal(before.Spec.Ports))
		Expect(grown.Service.Spec.Ports[2].NodePort).NotTo(BeZero(), "the node port of the port that was added")
	})

	check.It(spec.APINodePortChanged, "uses the number that it names", func(ctx context.Context, cp *check.ControlPlane) {
		wanted := cp.FreeNodePorts(ctx, 1)[0]
		cp.Arrange(ctx, check.Service("changing", nodePortOf(0)))
		a := cp.Update(ctx, check.Service("changing", nodePortOf(wanted)))
		Expect(a).To(check.BeAccepted())
		Expect(a.Service.Spec.Ports[0].NodePort).To(Equal(wanted))
		nodePortTaken(ctx, cp, wanted, "an update has taken it")
	})

	check.It(spec.APINodePortChanged, "frees the number that it replaces", func(ctx context.Context, cp *check.ControlPlane) {
		ports := cp.FreeNodePorts(ctx, 2)
		cp.Arrange(ctx, check.Service("changing", nodePortOf(ports[0])))
		Expect(cp.Update(ctx, check.Service("changing", nodePortOf(ports[1])))).To(check.BeAccepted())
		nodePortFree(ctx, cp, ports[0], "an update has replaced it")
	})
})

var _ = ginkgo.Describe("a request that is refused", func() {
	check.It(spec.APINodePortRefusedWhole, "takes no node port when another one is in use", func(ctx context.Context, cp *check.ControlPlane) {
		ports := cp.FreeNodePorts(ctx, 2)
		cp.Arrange(ctx, check.Service("owner", nodePortOf(ports[1])))
		Expect(cp.Create(ctx, check.Service("refused", nodePortsOf(ports...)))).NotTo(check.BeAccepted())
		nodePortFree(ctx, cp, ports[0], "the Service that named it was refused")
	})

	check.It(spec.APINodePortRefusedWhole, "takes no node port when another field is invalid", func(ctx context.Context, cp *check.ControlPlane) {
		port := cp.FreeNodePorts(ctx, 1)[0]
		Expect(cp.Create(ctx, check.Service("refused", nodePortOf(port), affinityOf("Cookie")))).To(check.BeInvalid("spec.sessionAffinity"))
		nodePortFree(ctx, cp, port, "the Service that named it was refused")
	})

	check.It(spec.APINodePortRefusedWhole, "frees no node port when it would have replaced one", func(ctx context.Context, cp *check.ControlPlane) {
		ports := cp.FreeNodePorts(ctx, 2)
		before := cp.Arrange(ctx, check.Service("steady", nodePortOf(ports[0])))
		Expect(cp.Update(ctx, check.Service("steady", nodePortOf(ports[1]), affinityOf("Cookie")))).To(check.BeInvalid("spec.sessionAffinity"))
		typeUnchanged(ctx, cp, before)
		nodePortTaken(ctx, cp, ports[0], "the update was refused")
		nodePortFree(ctx, cp, ports[1], "the update that named it was refused")
	})
})
