package allocation

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// Node-port ranges with known bands (KEP-3668): of 64 ports the first 16 are static, of the default range the first 86.
const (
	fewPorts     = "30000-30063"
	defaultPorts = "30000-32767"
)

// mostLost is how many ports of the small range may be lost: taken, though no Service has them. Under load, earlier requests leak some (a known deviation of
// kube-apiserver), which is none of the business of checks of exhaustion. More than that is no accident.
const mostLost = 8

// fillPorts has Services take all that is free of the small range, and returns it. Whatever is lost is left out.
func fillPorts(ctx context.Context, cp *check.ControlPlane) (taken []int) {
	ginkgo.GinkgoHelper()
	for n := 64; n > 0 && len(taken) < 64; {
		if a := cp.Create(ctx, check.Service(cp.Name("all"), manyPorts(n))); a.Accepted() {
			taken = append(taken, nodePorts(a.Service)...)
		} else {
			n /= 2
		}
	}
	if len(taken) == 0 {
		check.Abort("no Service gets a node port of its range")
	}
	return taken
}

// lostPorts counts those of the ports that are missing in got because they are lost: nobody can name them. It is 0 if that does not explain all that are missing.
func lostPorts(ctx context.Context, cp *check.ControlPlane, ports, got []int) int {
	ginkgo.GinkgoHelper()
	missing := slices.DeleteFunc(slices.Clone(ports), func(p int) bool { return slices.Contains(got, p) })
	if len(missing) > mostLost || slices.ContainsFunc(missing, func(p int) bool { return cp.Create(ctx, check.Service(cp.Name("missing"), onNodePort(p))).Accepted() }) {
		return 0
	}
	if len(missing) > 0 {
		check.Record("node ports that no Service has and nobody can name", "%v", missing)
	}
	return len(missing)
}

// without leaves the lost ports out, which are those that are missing in got.
func without(ports, got []int, lost int) []int {
	if lost == 0 {
		return ports
	}
	return slices.DeleteFunc(slices.Clone(ports), func(p int) bool { return !slices.Contains(got, p) })
}

var _ = ginkgo.Describe("node-port allocation", func() {
	check.It(spec.AllocNodePortUpperBandFirst, "hands out the whole upper band, then the whole lower one, then nothing", check.NodePorts(fewPorts),
		check.Also(spec.AllocNodePortLowerBandAfterUpper, spec.AllocNodePortBandOffset, spec.AllocNodePortExhaustedRefused),
		func(ctx context.Context, cp *check.ControlPlane) {
			upper := slices.Sorted(slices.Values(nodePorts(cp.Arrange(ctx, check.Service("upper", manyPorts(48))))))
			lost := lostPorts(ctx, cp, portsFrom(30016, 48), upper) // as many of the lower band are among the first 48 then
			check.Deciding(func() {
				Expect(upper[lost:]).To(Equal(without(portsFrom(30016, 48), upper, lost)), "the first 48 node ports that were handed out")
			}, spec.AllocNodePortUpperBandFirst, spec.AllocNodePortBandOffset)
			check.Deciding(func() {
				a := cp.Create(ctx, check.Service("lower", manyPorts(16-lost)))
				Expect(a).To(check.BeAccepted())
				lower := slices.Concat(upper[:lost], nodePorts(a.Service))
				Expect(slices.Sorted(slices.Values(lower))).To(Equal(portsFrom(30000, 16)), "the next 16 node ports that were handed out")
			}, spec.AllocNodePortLowerBandAfterUpper)
			check.Deciding(func() { Expect(cp.Create(ctx, check.Service("late", manyPorts(1)))).To(check.BeExhausted()) }, spec.AllocNodePortExhaustedRefused)
		})

	check.It(spec.AllocNodePortRandom, "hands out node ports in no order", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			ports := nodePorts(cp.Arrange(ctx, check.Service("a", manyPorts(check.OrderedBy()))))
			Expect(slices.IsSorted(ports)).To(BeFalse(), "node ports were handed out in ascending order: %v", ports)
			slices.Reverse(ports)
			Expect(slices.IsSorted(ports)).To(BeFalse(), "node ports were handed out in descending order, seen from the last: %v", ports)
		})

	check.It(spec.AllocNodePortBandOffset, "keeps the 86 lowest ports of the default range out of a sample that would have one if there were no bands", check.NodePorts(defaultPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			n := check.TrialsUntil(86.0 / 2768)
			ports := nodePorts(cp.Arrange(ctx, check.Service("sample", manyPorts(n))))
			Expect(slices.Min(ports)).To(BeNumerically(">=", 30086), "the lowest of %d dynamic node ports", n)
		})

	check.It(spec.AllocNodePortBandOffset, "keeps exactly the 86 lowest ports of the default range for the end", check.NodePorts(defaultPorts), check.Slow(), check.Timeout(slowFillTimeout),
		func(ctx context.Context, cp *check.ControlPlane) {
			const size, perService = 2768 - 86, 149 // 18 Services exhaust the upper band
			var ports []int
			for range size / perService {
				ports = append(ports, nodePorts(cp.Arrange(ctx, check.Service(cp.Name("upper"), manyPorts(perService))))...)
			}
			wholeUpperBand(ctx, cp, ports, portsFrom(30086, size))
		})

	check.It(spec.AllocNodePortBandOffset, "has no bands in a range of 16 ports, and hands out all of them", check.NodePorts("30000-30015"), check.Slow(),
		func(ctx context.Context, cp *check.ControlPlane) {
			ports := nodePorts(cp.Arrange(ctx, check.Service("all", manyPorts(16))))
			Expect(slices.Sorted(slices.Values(ports))).To(Equal(portsFrom(30000, 16)))
		})

	check.It(spec.AllocNodePortStaticAnyBand, "gives the first, the last and the ports at the edge of the bands to who names them", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			for _, port := range []int{30000, 30015, 30016, 30063} {
				a := cp.Create(ctx, check.Service(cp.Name("static"), onNodePort(port)))
				Expect(a).To(check.BeAccepted())
				Expect(nodePorts(a.Service)).To(Equal([]int{port}))
			}
			Expect(fillPorts(ctx, cp)).NotTo(ContainElements(30000, 30015, 30016, 30063), "node ports handed out besides those that were named")
		})

	check.It(spec.AllocNodePortExhaustedRefused, "refuses a create when no node port is free, stores nothing, and goes on when one is", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			last := cp.Arrange(ctx, check.Service("last", manyPorts(1)))
			fillPorts(ctx, cp)
			Expect(cp.Create(ctx, check.Service("late", manyPorts(1)))).To(check.BeExhausted())
			Expect(cp.Get(ctx, "late").Code).To(Equal(404), "the code of reading the refused Service")
			Expect(cp.Delete(ctx, "last")).To(check.BeAccepted())
			check.Converge(ctx, "reuse of the only free node port", reuse, func(g Gomega) {
				a := cp.Create(ctx, check.Service("late", manyPorts(1)))
				g.Expect(a).To(check.BeAccepted())
				g.Expect(nodePorts(a.Service)).To(Equal(nodePorts(last)))
			})
		})

	check.It(spec.AllocNodePortExhaustedOthersUnaffected, "creates Services that need no node port when none is free", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			fillPorts(ctx, cp)
			Expect(cp.Create(ctx, check.Service("plain"))).To(check.BeAccepted())
			no := false
			Expect(cp.Create(ctx, check.Service("balanced", check.OfType(corev1.ServiceTypeLoadBalancer), check.With(func(s *corev1.Service) {
				s.Spec.AllocateLoadBalancerNodePorts = &no
			})))).To(check.BeAccepted())
		})

	check.It(spec.AllocNodePortRefusedCreateLeaksNothing, "gives back the address and the node ports when a create is refused for want of one more", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			ip := freeAddress(ctx, cp)
			Expect(cp.Create(ctx, check.Service("greedy", manyPorts(65), check.WithClusterIP(ip)))).To(check.BeExhausted())
			a := cp.Create(ctx, check.Service("modest", manyPorts(64), check.WithClusterIP(ip)))
			if !a.Accepted() { // by the refused create, or lost before? Where two are free and three are asked for, two are still free afterwards
				two := cp.Arrange(ctx, check.Service("two", manyPorts(2)))
				fillPorts(ctx, cp)
				Expect(cp.Delete(ctx, two.Name)).To(check.BeAccepted())
				Expect(cp.Create(ctx, check.Service("three", manyPorts(3), check.WithClusterIP(ip)))).To(check.BeExhausted())
				check.Converge(ctx, "reuse of two node ports", reuse, func(g Gomega) {
					a = cp.Create(ctx, check.Service("modest", manyPorts(2), check.WithClusterIP(ip)))
					g.Expect(a).To(check.BeAccepted())
				})
			}
			Expect(a).To(check.BeAccepted())
		})

	check.It(spec.AllocNodePortDeleteReleases, "lets a node port be named again when its Service is deleted", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			svc := createOnChosenPort(ctx, cp)
			port := nodePorts(svc)[0]
			Expect(cp.Create(ctx, check.Service("duplicate", onNodePort(port)))).NotTo(check.BeAccepted())
			Expect(cp.Delete(ctx, svc.Name)).To(check.BeAccepted())
			check.Converge(ctx, fmt.Sprintf("reuse of node port %d", port), named, func(g Gomega) {
				g.Expect(cp.Create(ctx, check.Service("again", onNodePort(port)))).To(check.BeAccepted())
			})
		})

	check.It(spec.AllocNodePortConcurrentStatic, "gives a node port that 32 clients name at a time to one of them", check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			oneWins(ctx, cp, func(int) *corev1.Service { return check.Service(cp.Name("racer"), onNodePort(30031)) }, Not(check.BeAccepted()))
		})

	check.It(spec.AllocNodePortConcurrentDynamic, "gives 32 clients at a time a node port each",
		func(ctx context.Context, cp *check.ControlPlane) {
			cp.NeedNodePorts(ctx, racers)
			answers := make([]check.Response, racers)
			check.Concurrently(racers, func(i int) { answers[i] = cp.Create(ctx, check.Service(cp.Name("racer"), manyPorts(1))) })
			first, last := cp.NodePorts()
			var seen []int
			for _, a := range answers {
				Expect(a).To(check.BeAccepted())
				port := nodePorts(a.Service)[0]
				Expect(port).To(And(BeNumerically(">=", first), BeNumerically("<=", last)))
				Expect(seen).NotTo(ContainElement(port), "node ports given out before")
				seen = append(seen, port)
			}
		})
})

// wholeUpperBand demands that the ports that were handed out are the upper band. One of another band is in order if none of the upper band is free any more: on a server
// that others use, a request that failed may have left some taken, which is a matter of other requirements.
func wholeUpperBand(ctx context.Context, cp *check.ControlPlane, ports, upper []int) {
	ginkgo.GinkgoHelper()
	sorted := slices.Sorted(slices.Values(ports))
	Expect(slices.Compact(slices.Clone(sorted))).To(HaveLen(len(ports)), "different node ports that were handed out")
	other := slices.DeleteFunc(sorted, func(port int) bool { return slices.Contains(upper, port) })
	var free []int
	for _, port := range upper {
		if len(other) > 0 && !slices.Contains(ports, port) && cp.Create(ctx, check.Service(cp.Name("named"), check.Unserved(), onNodePort(port))).Accepted() {
			free = append(free, port)
		}
	}
	Expect(free).To(BeEmpty(), "node ports of the upper band that were free when %v were handed out", other)
}

// manyPorts makes the Service one of type NodePort with n ports, none of which names its node port.
func manyPorts(n int) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		s.Spec.Ports = nil
		for i := range n {
			s.Spec.Ports = append(s.Spec.Ports, check.Port(fmt.Sprintf("p%d", i), corev1.ProtocolTCP, int32(1+i), 0))
		}
	})
}

// onNodePort makes the Service one of type NodePort that names its node port.
func onNodePort(port int) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		s.Spec.Type = corev1.ServiceTypeNodePort
		s.Spec.Ports[0].NodePort = int32(min(port, math.MaxInt32))
	})
}

// nodePorts are the node ports of a Service, in the order of its ports.
func nodePorts(svc *corev1.Service) []int {
	ports := make([]int, len(svc.Spec.Ports))
	for i := range svc.Spec.Ports {
		ports[i] = int(svc.Spec.Ports[i].NodePort)
	}
	return ports
}

func portsFrom(first, n int) []int {
	ports := make([]int, n)
	for i := range ports {
		ports[i] = first + i
	}
	return ports
}

// createOnChosenPort creates a Service on a node port that the check chose and was free.
func createOnChosenPort(ctx context.Context, cp *check.ControlPlane) *corev1.Service {
	ginkgo.GinkgoHelper()
	first, last := cp.NodePorts()
	var a check.Response
	for range attempts {
		port := last - cp.Rand().IntN((last-first)/2+1) // the upper half lies in the upper band
		if a = cp.Create(ctx, check.Service(cp.Name("chosen"), onNodePort(port))); a.Accepted() {
			return a.Service
		}
	}
	ginkgo.Fail(fmt.Sprintf("none of %d node ports of %d-%d chosen at random could be named: %s", attempts, first, last, a))
	return nil
}
