package reference

import (
	"fmt"
	"net/netip"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/candidate"
)

// bench is a lease of a data plane, with what the tests do to it.
type bench struct {
	*WithT
	candidate.DataPlane
	candidate.NodeOwner
	t         *testing.T
	reference *Reference
}

func newBench(t *testing.T) *bench {
	t.Helper()
	g := NewWithT(t)
	r := newReference(t, Options{Seed: 1})
	d, err := r.DataPlane(t.Context(), candidate.DataPlaneRequest{})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(d.Release)
	return &bench{g, d, d.(candidate.NodeOwner), t, r}
}

func podName(name string) candidate.PodName {
	return candidate.PodName{Namespace: "default", Name: name}
}

// backend starts a pod that serves TCP and UDP on 8080.
func (b *bench) backend(name, node string) {
	b.t.Helper()
	_, err := b.StartPod(b.t.Context(), candidate.Pod{
		PodName: podName(name), Node: node, Labels: map[string]string{"app": "web"},
		Ports: []candidate.PodPort{{Protocol: corev1.ProtocolTCP, Number: 8080}, {Protocol: corev1.ProtocolUDP, Number: 8080}},
	})
	b.Expect(err).NotTo(HaveOccurred())
}

// service creates one for these pods, with TCP and UDP on port 80.
func (b *bench) service(change func(*corev1.Service)) *corev1.Service {
	b.t.Helper()
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}, Spec: corev1.ServiceSpec{
		Selector: map[string]string{"app": "web"},
		Ports: []corev1.ServicePort{
			{Name: "tcp", Protocol: corev1.ProtocolTCP, Port: 80, TargetPort: intstr.FromInt32(8080)},
			{Name: "udp", Protocol: corev1.ProtocolUDP, Port: 80, TargetPort: intstr.FromInt32(8080)},
		},
	}}
	if change != nil {
		change(s)
	}
	s, err := clientOf(b.t, b).CoreV1().Services("default").Create(b.t.Context(), s, metav1.CreateOptions{})
	b.Expect(err).NotTo(HaveOccurred())
	return s
}

func at(ip string, port int32) netip.AddrPort {
	return netip.AddrPortFrom(netip.MustParseAddr(ip), uint16(port))
}

// send sends one shot for each probe.
func (b *bench) send(probes ...candidate.Probe) (outcomes []candidate.Outcome) {
	b.t.Helper()
	all, err := b.Send(b.t.Context(), probes)
	b.Expect(err).NotTo(HaveOccurred())
	for _, of := range all {
		b.Expect(of).To(HaveLen(1))
		outcomes = append(outcomes, of[0])
	}
	return outcomes
}

func (b *bench) pass(d time.Duration) {
	b.t.Helper()
	b.Expect(b.Pass(b.t.Context(), d)).To(Succeed())
}

func (b *bench) ownNode(config candidate.ProxyConfiguration) {
	b.t.Helper()
	_, err := b.AddNode(b.t.Context(), candidate.Node{Name: "own", Zone: "zone-a"}, config)
	b.Expect(err).NotTo(HaveOccurred())
}

// tcp is a probe from the host network of a node.
func tcp(node string, to netip.AddrPort) candidate.Probe {
	return candidate.Probe{From: candidate.Client{Node: node}, To: to, Protocol: corev1.ProtocolTCP}
}

// podsOf tells who answered each client; every one has to be answered.
func (b *bench) podsOf(outcomes []candidate.Outcome) (names []string) {
	b.t.Helper()
	for _, o := range outcomes {
		b.Expect(o.Result).To(Equal(candidate.Answered))
		names = append(names, o.Pod.Name)
	}
	return names
}

func TestAffinityLastsForItsTime(t *testing.T) {
	for name, c := range map[string]struct {
		config  *corev1.SessionAffinityConfig
		timeout time.Duration
	}{
		"three hours by default": {nil, 3 * time.Hour},
		"ten seconds":            {&corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: new(int32(10))}}, 10 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			for i := range 4 {
				b.backend(fmt.Sprint("web-", i), "node-1")
			}
			s := b.service(func(s *corev1.Service) {
				s.Spec.Type, s.Spec.SessionAffinity, s.Spec.SessionAffinityConfig = corev1.ServiceTypeNodePort, corev1.ServiceAffinityClientIP, c.config
			})
			var probes []candidate.Probe // one for each of many clients: that all of them come back by chance does not happen
			for i := range candidate.ClientAddresses {
				probes = append(probes, candidate.Probe{
					From: candidate.Client{Gateway: "node-1", Address: i}, Protocol: corev1.ProtocolTCP,
					To: netip.AddrPortFrom(b.Nodes()[0].Addresses[0], uint16(s.Spec.Ports[0].NodePort)),
				})
			}
			first := b.podsOf(b.send(probes...))
			for i := range 4 {
				b.Expect(first).To(ContainElement(fmt.Sprint("web-", i)))
			}
			for _, message := range []string{"within the time", "use begins the time anew"} {
				b.pass(c.timeout - time.Second)
				b.Expect(b.podsOf(b.send(probes...))).To(Equal(first), message)
			}
			b.pass(c.timeout + time.Second)
			b.Expect(b.podsOf(b.send(probes...))).NotTo(Equal(first), "the time is over")
		})
	}
}

func TestAffinityLeavesAnEndpointThatIsNotReady(t *testing.T) {
	b := newBench(t)
	b.backend("one", "node-1")
	s := b.service(func(s *corev1.Service) { s.Spec.SessionAffinity = corev1.ServiceAffinityClientIP })
	probe := tcp("node-2", at(s.Spec.ClusterIP, 80))
	b.Expect(b.podsOf(b.send(probe))).To(Equal([]string{"one"}))
	b.backend("two", "node-1")
	b.Expect(b.SetReady(t.Context(), podName("one"), false)).To(Succeed())
	b.Expect(b.podsOf(b.send(probe))).To(Equal([]string{"two"}))
	b.Expect(b.SetReady(t.Context(), podName("one"), true)).To(Succeed())
	for range 10 {
		b.Expect(b.podsOf(b.send(probe))).To(Equal([]string{"two"}), "it does not come back")
	}
}

func TestMinSyncPeriodDelaysChanges(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		wait time.Duration
	}{"at once": {"0s", 0}, "ten seconds": {"10s", 10 * time.Second}, "one second by default": {"default", time.Second}} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.backend("one", "node-1")
			b.ownNode(candidate.ProxyConfiguration{MinSyncPeriod: c.text, SyncPeriod: "1h"})
			s := b.service(nil)
			own, shared := tcp("own", at(s.Spec.ClusterIP, 80)), tcp("node-1", at(s.Spec.ClusterIP, 80))
			b.Expect(b.send(shared)[0].Result).To(Equal(candidate.Answered), "the others are always up to date")
			if c.wait > 0 {
				b.Expect(b.send(own)[0].Result).To(Equal(candidate.Dropped))
				b.pass(c.wait - 200*time.Millisecond)
				b.Expect(b.send(own)[0].Result).To(Equal(candidate.Dropped))
				b.pass(200 * time.Millisecond)
			}
			b.Expect(b.send(own)[0].Result).To(Equal(candidate.Answered))
		})
	}
}

func TestFlushedRulesComeBackWithTheSyncPeriod(t *testing.T) {
	b := newBench(t)
	b.backend("one", "node-1")
	s := b.service(nil)
	b.ownNode(candidate.ProxyConfiguration{MinSyncPeriod: "0s", SyncPeriod: "30s"})
	own, shared := tcp("own", at(s.Spec.ClusterIP, 80)), tcp("node-1", at(s.Spec.ClusterIP, 80))
	b.Expect(b.send(own)[0].Result).To(Equal(candidate.Answered))
	b.pass(10 * time.Second)
	b.Expect(b.Interfere(t.Context(), "own", candidate.FlushRules)).To(Succeed())
	b.Expect(b.send(own)[0].Result).NotTo(Equal(candidate.Answered))
	b.Expect(b.send(shared)[0].Result).To(Equal(candidate.Answered))
	b.pass(19 * time.Second)
	b.Expect(b.send(own)[0].Result).NotTo(Equal(candidate.Answered))
	b.pass(time.Second)
	b.Expect(b.send(own)[0].Result).To(Equal(candidate.Answered))
	b.Expect(b.Interfere(t.Context(), "own", candidate.DropRules)).To(Succeed())
	b.Expect(b.send(own)[0].Result).NotTo(Equal(candidate.Answered))
	b.pass(30 * time.Second)
	b.Expect(b.send(own)[0].Result).To(Equal(candidate.Answered))
	b.Expect(b.Interfere(t.Context(), "node-1", candidate.FlushRules)).NotTo(Succeed(), "a node that others use")
}

func TestRulesStayWhenTheProxyStops(t *testing.T) {
	b := newBench(t)
	b.backend("one", "node-1")
	s := b.service(nil)
	b.ownNode(candidate.ProxyConfiguration{MinSyncPeriod: "0s"})
	own := tcp("own", at(s.Spec.ClusterIP, 80))
	b.Expect(b.StopProxy(t.Context(), "own")).To(Succeed())
	state, err := b.ProxyState(t.Context(), "own")
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(state.Running).To(BeFalse())
	b.Expect(b.podsOf(b.send(own))).To(Equal([]string{"one"}))
	b.Expect(b.Remove(t.Context(), podName("one"))).To(Succeed())
	b.backend("two", "node-1")
	b.pass(time.Hour)
	b.Expect(b.send(own)[0].Result).To(Equal(candidate.Dropped), "it still goes where the first pod was")
	b.Expect(b.StartProxy(t.Context(), "own", candidate.ProxyConfiguration{MinSyncPeriod: "0s"})).To(Succeed())
	b.Expect(b.podsOf(b.send(own))).To(Equal([]string{"two"}))
}

func TestDatagramsLeaveARemovedEndpoint(t *testing.T) {
	for name, leave := range map[string]func(*bench) error{
		"removed": func(b *bench) error { return b.Remove(b.t.Context(), podName("one")) },
		"unready": func(b *bench) error { return b.SetReady(b.t.Context(), podName("one"), false) },
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			b.backend("one", "node-1")
			s := b.service(nil)
			probe := candidate.Probe{From: candidate.Client{Node: "node-2"}, To: at(s.Spec.ClusterIP, 80), Protocol: corev1.ProtocolUDP, SourcePort: 5000}
			b.Expect(b.podsOf(b.send(probe))).To(Equal([]string{"one"}))
			b.backend("two", "node-1")
			for range 20 {
				b.Expect(b.podsOf(b.send(probe))).To(Equal([]string{"one"}), "the flow stays where it is")
			}
			b.Expect(leave(b)).To(Succeed())
			b.Expect(b.podsOf(b.send(probe))).To(Equal([]string{"two"}))
		})
	}
}

func TestConnectionSurvivesTerminationAndNotTheEnd(t *testing.T) {
	b := newBench(t)
	b.backend("one", "node-1")
	s := b.service(nil)
	established := tcp("node-2", at(s.Spec.ClusterIP, 80))
	established.Connection = "a"
	b.Expect(b.podsOf(b.send(established))).To(Equal([]string{"one"}))
	b.backend("two", "node-1")
	b.Expect(b.Terminate(t.Context(), podName("one"))).To(Succeed())
	b.Expect(b.podsOf(b.send(established))).To(Equal([]string{"one"}))
	for range 20 {
		b.Expect(b.podsOf(b.send(tcp("node-2", at(s.Spec.ClusterIP, 80))))).To(Equal([]string{"two"}), "new ones go elsewhere")
	}
	b.Expect(b.Kill(t.Context(), podName("one"))).To(Succeed())
	b.Expect(b.send(established)[0].Result).To(Equal(candidate.Reset))
	b.Expect(b.send(established)[0].Result).To(Equal(candidate.Reset), "it stays broken")

	b.Expect(b.Kill(t.Context(), podName("two"))).To(Succeed())
	b.Expect(b.send(tcp("node-2", at(s.Spec.ClusterIP, 80)))[0].Result).To(Equal(candidate.Refused), "the API did not notice")
}

func TestHealthCheckNodePortFollowsThePods(t *testing.T) {
	b := newBench(t)
	b.backend("one", "node-1")
	s := b.service(func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalTrafficPolicy = corev1.ServiceTypeLoadBalancer, corev1.ServiceExternalTrafficPolicyLocal
		s.Spec.Ports = s.Spec.Ports[:1]
	})
	b.Expect(s.Spec.HealthCheckNodePort).NotTo(BeZero())
	codes := func() (codes []int) {
		for _, n := range b.Nodes()[:2] {
			probe := candidate.Probe{
				From: candidate.Client{Gateway: "node-1"}, To: netip.AddrPortFrom(n.Addresses[0], uint16(s.Spec.HealthCheckNodePort)),
				Protocol: corev1.ProtocolTCP, Path: candidate.HealthCheckPath,
			}
			o := b.send(probe)[0]
			b.Expect(o.HTTP).NotTo(BeNil())
			codes = append(codes, o.HTTP.Code)
		}
		return codes
	}
	b.Expect(codes()).To(Equal([]int{200, 503}))
	b.Expect(b.SetReady(t.Context(), podName("one"), false)).To(Succeed())
	b.Expect(codes()).To(Equal([]int{503, 503}))
	b.Expect(b.SetReady(t.Context(), podName("one"), true)).To(Succeed())
	b.Expect(b.Terminate(t.Context(), podName("one"))).To(Succeed())
	b.Expect(codes()).To(Equal([]int{503, 503}))
}

func TestRoundRobinNeedsIPVS(t *testing.T) {
	b := newBench(t)
	for i := range 3 {
		b.backend(fmt.Sprint("web-", i), "node-1")
	}
	s := b.service(nil)
	b.ownNode(candidate.ProxyConfiguration{Mode: "ipvs", Scheduler: "rr"})
	var probes []candidate.Probe
	for range 30 {
		probes = append(probes, tcp("own", at(s.Spec.ClusterIP, 80)))
	}
	pods := b.podsOf(b.send(probes...))
	for i := 3; i < len(pods); i++ {
		b.Expect(pods[i]).To(Equal(pods[i-3]), "%v", pods)
	}
	for i := range 3 {
		b.Expect(pods).To(ContainElement(fmt.Sprint("web-", i)))
	}

	without := newBench(t)
	without.ownNode(candidate.ProxyConfiguration{Mode: "ipvs", WithoutIPVS: true})
	state, err := without.ProxyState(t.Context(), "own")
	without.Expect(err).NotTo(HaveOccurred())
	without.Expect(state.Running).To(BeFalse(), "a proxy in ipvs mode ends where the kernel has no IPVS")
}

func TestReleaseTakesPodsAndNodesAway(t *testing.T) {
	b := newBench(t)
	other, err := b.reference.DataPlane(t.Context(), candidate.DataPlaneRequest{})
	b.Expect(err).NotTo(HaveOccurred())
	b.backend("one", "node-1")
	b.ownNode(candidate.ProxyConfiguration{})
	s := b.service(nil)
	probe := tcp("node-1", at(s.Spec.ClusterIP, 80))
	outcomes, err := other.Send(t.Context(), []candidate.Probe{probe})
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(outcomes[0][0].Pod).To(Equal(podName("one")), "leases share the cluster")
	b.Expect(other.Kill(t.Context(), podName("one"))).NotTo(Succeed(), "not its pod")
	b.Release()
	outcomes, err = other.Send(t.Context(), []candidate.Probe{probe})
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(outcomes[0][0].Result).To(Equal(candidate.Refused))
	_, err = other.(candidate.NodeOwner).AddNode(t.Context(), candidate.Node{Name: "own"}, candidate.ProxyConfiguration{})
	b.Expect(err).NotTo(HaveOccurred(), "the name is free again")
}

func TestPodsAreLentToOneLeaseAfterTheOther(t *testing.T) {
	b := newBench(t)
	b.backend("one", "node-2")
	s := b.service(nil)
	ports := []candidate.PodPort{{Protocol: corev1.ProtocolTCP, Number: 8080}}
	first, err := b.LendPod(t.Context(), "node-1", ports)
	b.Expect(err).NotTo(HaveOccurred())
	other, err := b.reference.DataPlane(t.Context(), candidate.DataPlaneRequest{})
	b.Expect(err).NotTo(HaveOccurred())
	defer other.Release()
	second, err := other.LendPod(t.Context(), "node-1", ports)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(second.PodName).NotTo(Equal(first.PodName), "the first one is in use")
	probe := candidate.Probe{From: candidate.Client{Pod: first.PodName}, To: at(s.Spec.ClusterIP, 80), Protocol: corev1.ProtocolTCP}
	b.Expect(b.podsOf(b.send(probe))).To(Equal([]string{"one"}))
	_, err = other.Send(t.Context(), []candidate.Probe{probe})
	b.Expect(err).To(HaveOccurred(), "it was not lent to this lease")
	b.Expect(b.Kill(t.Context(), first.PodName)).NotTo(Succeed(), "others send from it later")
	b.Release()
	third, err := other.LendPod(t.Context(), "node-1", ports)
	b.Expect(err).NotTo(HaveOccurred())
	b.Expect(third).To(Equal(first), "nobody had it any more")
}
