package proxy

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	// stickyPods is how many pods a client may choose from.
	stickyPods = 3
	// clockSlack is what the clock that times connections and that of the implementation may differ by.
	clockSlack = 100 * time.Millisecond
	// expirySlack is how much longer than the sticky time a client must have been idle to count as forgotten.
	expirySlack = 500 * time.Millisecond
	// scouts is how many clients find out that the Service is served. The others have never connected before they are judged, so that it does
	// not matter what restarts the sticky time.
	scouts = 8
)

// stickyTime sets the sticky time in seconds.
func stickyTime(seconds int32) check.ServiceOption {
	return check.With(func(s *corev1.Service) {
		s.Spec.SessionAffinityConfig = &corev1.SessionAffinityConfig{ClientIP: &corev1.ClientIPConfig{TimeoutSeconds: &seconds}}
	})
}

// visitors are clients that have not connected yet, and what each met when it last did.
type visitors struct {
	net     *check.Network
	clients []candidate.Client
	to      netip.AddrPort
	met     []candidate.Outcome // by each client
	// backwards is the order in which they come next.
	backwards bool
}

// newVisitors exposes a sticky Service and returns clients of it, all by the same node.
func newVisitors(ctx context.Context, net *check.Network, name string, options ...check.ServiceOption) *visitors {
	ginkgo.GinkgoHelper()
	pods := net.Backends(ctx, name, net.Node(0), net.Node(1), net.Node(2))
	svc := net.Expose(ctx, exposed(name, append(options, sticky(), withoutSelector(), onNodePorts())...))
	net.CreateSlice(ctx, net.Slice(svc, pods...))
	clients, to := crowd(net.Node(0)), onNode(net, 0, svc)
	settle(ctx, net, "the Service is created", fromEach(clients[:scouts], to, corev1.ProtocolTCP), pods...)
	return &visitors{net: net, clients: clients[scouts:], to: to}
}

// connect lets every client connect once, and returns what it met the last time and what it met now. They come in
// opposite order each time. A proxy that deals pods in turn would deal each client the same pod again, or another one,
// as if it remembered or forgot them.
func (v *visitors) connect(ctx context.Context) (before, now []candidate.Outcome) {
	ginkgo.GinkgoHelper()
	probes := make([]candidate.Probe, len(v.clients))
	for i, c := range v.clients {
		probes[i] = candidate.Probe{From: c, To: v.to, Protocol: corev1.ProtocolTCP, Timeout: check.LossTimeout}
	}
	if v.backwards {
		slices.Reverse(probes)
	}
	outcomes := v.net.Send(ctx, probes...)
	if v.backwards {
		slices.Reverse(outcomes)
	}
	v.backwards = !v.backwards
	before, v.met = v.met, nil
	for i, os := range outcomes {
		c := v.clients[i]
		Expect(os[0].Result).To(Equal(candidate.Answered), "a connection of the client %s, address %d, to %s", c, c.Address, v.to)
		v.met = append(v.met, os[0])
	}
	return before, v.met
}

// longest is how long ago at most a connection was decided when a later one was, shortest how long at least.
func longest(before, after candidate.Outcome) time.Duration {
	return after.Start.Add(after.Duration).Sub(before.Start) + clockSlack
}

func shortest(before, after candidate.Outcome) time.Duration {
	return after.Start.Sub(before.Start.Add(before.Duration))
}

// keep demands that clients that connect again after being idle for a time, within the sticky time, still have their pod. Only those
// count whose connections were within it for certain; the check is unknown where there are none.
func (v *visitors) keep(ctx context.Context, idle, sticky time.Duration) {
	ginkgo.GinkgoHelper()
	if !v.keepIfInTime(ctx, idle, sticky) {
		check.Abort("no client connected again within %s, although only %s were waited", sticky, idle)
	}
}

// keepIfInTime is keep that reports whether there were any.
func (v *visitors) keepIfInTime(ctx context.Context, idle, sticky time.Duration) bool {
	ginkgo.GinkgoHelper()
	v.connect(ctx)
	v.net.Pass(ctx, idle)
	before, now := v.connect(ctx)
	decided, moved := 0, 0
	for i := range now {
		if longest(before[i], now[i]) < sticky {
			decided++
			if before[i].Pod != now[i].Pod {
				moved++
			}
		}
	}
	if decided == 0 {
		return false
	}
	check.Record("within the sticky time", "%d of %d clients that were idle for %s of %s have another pod", moved, decided, idle, sticky)
	Expect(moved).To(BeZero(), "clients with another pod, out of %d, after being idle for %s, with a sticky time of %s", decided, idle, sticky)
	return true
}

// lose demands that clients that were idle for longer than the sticky time choose again. Not all of them choose the pod
// that they had.
func (v *visitors) lose(ctx context.Context, idle, sticky time.Duration) {
	ginkgo.GinkgoHelper()
	if v.met == nil {
		v.connect(ctx)
	}
	v.net.Pass(ctx, idle)
	before, now := v.connect(ctx)
	decided, moved := 0, 0
	for i := range now {
		if shortest(before[i], now[i]) > sticky+expirySlack {
			decided++
			if before[i].Pod != now[i].Pod {
				moved++
			}
		}
	}
	if together(before) && together(now) { // they chose once, not each by itself
		check.Abort("%d clients have the same pod before and after: clients that are tied together tell too little of the sticky time", len(now))
	}
	// A client that chooses again has another pod with probability 1-1/n.
	if needed := check.TrialsUntil(1 - 1./stickyPods); decided < needed {
		check.Abort("only %d clients were idle for longer than %s, and it takes %d to decide", decided, sticky, needed)
	}
	check.Record("after the sticky time", "%d of %d clients that were idle for %s of %s have another pod", moved, decided, idle, sticky)
	Expect(moved).NotTo(BeZero(), "clients with another pod, out of %d, after being idle for %s, with a sticky time of %s", decided, idle, sticky)
}

// together reports whether all clients have one pod.
func together(met []candidate.Outcome) bool {
	return !slices.ContainsFunc(met, func(o candidate.Outcome) bool { return o.Pod != met[0].Pod })
}

// onAnyMachine calls try with a sticky time that suits most machines. If that was too short for clients to come back in
// time, try returns false, and onAnyMachine calls it with a longer one. Where the longer one is too short too the check
// is unknown.
func onAnyMachine(try func(sticky time.Duration) bool) {
	ginkgo.GinkgoHelper()
	const usual, patient = 4 * time.Second, 20 * time.Second
	if !try(usual) && !try(patient) {
		check.Abort("the machine is too slow: clients did not come back within a sticky time of %s", patient)
	}
}

// settableTimeout skips the check unless the sticky time is declared to be that of the Service.
func settableTimeout(net *check.Network) {
	ginkgo.GinkgoHelper()
	asDeclared(net, spec.AffinityTimeout, "settable")
}

func stickyName(sticky time.Duration) string { return fmt.Sprintf("app-%d", int(sticky/time.Second)) }

var _ = ginkgo.Describe("the sticky time", func() {
	check.It(spec.ProxyAffinityTimeout, "is kept from both sides", check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			settableTimeout(net)
			// To come back too late takes no haste: the shorter time shows on any machine who forgets later than he should.
			forgotten := false
			onAnyMachine(func(sticky time.Duration) bool {
				v := newVisitors(ctx, net, stickyName(sticky), stickyTime(int32(sticky/time.Second)))
				inTime := v.keepIfInTime(ctx, sticky*3/4, sticky)
				if !forgotten {
					v.lose(ctx, sticky+time.Second, sticky)
					forgotten = true
				}
				return inTime
			})
		})

	check.It(spec.ProxyAffinityTimeout, "begins again with each connection, or does not, as declared", check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			settableTimeout(net)
			onAnyMachine(func(sticky time.Duration) bool {
				const steps = 4
				step := sticky * 3 / 8
				v := newVisitors(ctx, net, stickyName(sticky), stickyTime(int32(sticky/time.Second)))
				_, first := v.connect(ctx)
				unbroken := make([]bool, len(first)) // connected often enough so far
				for i := range unbroken {
					unbroken[i] = true
				}
				last := first
				for range steps {
					net.Pass(ctx, step)
					before, now := v.connect(ctx)
					for i := range now {
						unbroken[i] = unbroken[i] && longest(before[i], now[i]) < sticky
					}
					last = now
				}
				decided, moved := 0, 0
				for i := range last {
					if unbroken[i] && shortest(first[i], last[i]) > sticky+expirySlack {
						decided++
						if first[i].Pod != last[i].Pod {
							moved++
						}
					}
				}
				declared := net.Declared(spec.AffinityTimer)
				if decided == 0 || declared == "fixed" && decided < check.TrialsUntil(1-1./stickyPods) {
					return false
				}
				check.Record("clients that kept connecting for longer than the sticky time", "%d of %d have another pod", moved, decided)
				what := fmt.Sprintf("clients with another pod, out of %d that connected every %s for %s, with a sticky time of %s", decided, step, steps*step, sticky)
				switch declared {
				case "refreshed":
					Expect(moved).To(BeZero(), "%s; each connection is declared to restart it", what)
				case "fixed":
					Expect(moved).NotTo(BeZero(), "%s; no connection is declared to restart it", what)
				}
				return true
			})
		})

	check.It(spec.ProxyAffinityTimeout, "of a second lets a client go, and one of a day keeps it", check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			settableTimeout(net)
			const day = 24 * time.Hour
			short, long := newVisitors(ctx, net, "short", stickyTime(1)), newVisitors(ctx, net, "long", stickyTime(int32(day/time.Second)))
			short.lose(ctx, 2*time.Second, time.Second)
			if !net.Has(spec.VirtualClock) {
				long.keep(ctx, time.Second, day)
				return
			}
			long.keep(ctx, day-time.Minute, day)
			long.lose(ctx, day+time.Minute, day)
		})

	check.It(spec.ProxyAffinityTimeoutDefault, "is three hours", check.KeepsTimeline(), check.Needs(spec.VirtualClock),
		func(ctx context.Context, net *check.Network) {
			settableTimeout(net)
			v := newVisitors(ctx, net, "app")
			v.keep(ctx, 3*time.Hour-time.Minute, 3*time.Hour)
			v.lose(ctx, 3*time.Hour+time.Minute, 3*time.Hour)
		})

	check.It(spec.ProxyAffinityTimeoutDefault, "stands in a Service that names none, which is served",
		func(ctx context.Context, net *check.Network) {
			settableTimeout(net)
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", sticky()))
			config := svc.Spec.SessionAffinityConfig
			Expect(config != nil && config.ClientIP != nil && config.ClientIP.TimeoutSeconds != nil).To(BeTrue(), "the Service says how long a client is sticky")
			Expect(*config.ClientIP.TimeoutSeconds).To(BeEquivalentTo(3*time.Hour/time.Second), "the sticky time of a Service that names none, in seconds")
			net.Expect(ctx, "the Service is created", clusterIPCalls(svc, check.AlwaysBySame(pods...), clients[0])...)
		})
})
