package check

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

// LossTimeout is the silence that counts as a loss where every single shot counts. Nothing looks again at such a
// demand. So the timeout is longer than a loaded machine may delay a backend, and longer than TCP takes to repeat
// itself.
const LossTimeout = 15 * time.Second

// During sends the shots of the probe one after the other, over and over, while change runs. It sends at least one
// before the change begins and one after it has ended. It returns all outcomes in order. A connection whose first
// packet was dropped counts as Dropped although the kernel's repetition was answered, see droppedAtFirst.
func (n *Network) During(ctx context.Context, probe candidate.Probe, change func()) []candidate.Outcome {
	ginkgo.GinkgoHelper()
	if probe.Protocol == "" {
		probe.Protocol = corev1.ProtocolTCP
	}
	if probe.Timeout == 0 {
		probe.Timeout = LossTimeout
	}
	if n.virtual || probe.Protocol != corev1.ProtocolTCP || probe.Connection != "" { // nothing is repeated
		return n.series(ctx, n.Send, probe, change)
	}
	control := candidate.Probe{From: probe.From, To: n.ownAddress(ctx, probe.From, probe.To), Protocol: probe.Protocol, Timeout: probe.Timeout}
	var outcomes []candidate.Outcome
	controls := n.series(ctx, n.send, control, func() {
		ginkgo.GinkgoHelper()
		outcomes = n.series(ctx, n.Send, probe, change)
	})
	counted := droppedAtFirst(outcomes, controls)
	for i := range counted {
		if counted[i].Result != outcomes[i].Result {
			n.shots.lost(&probe, &outcomes[i])
		}
	}
	return counted
}

// droppedAtFirst returns the outcomes, those that were answered only when the kernel repeated itself as Dropped. Such a
// shot does not count if a connection of the same client to a pod's own address fared no better at the same time. Then
// it was the machine. A network may lose a packet, too: one connection of a series that needed one repetition is only
// recorded. What drops for longer than a second drops the repetition as well.
func droppedAtFirst(outcomes, controls []candidate.Outcome) []candidate.Outcome {
	var repeated []int
	for i, o := range outcomes {
		excused := slices.ContainsFunc(controls, func(c candidate.Outcome) bool {
			return (c.Repeated > 0 || c.Result != candidate.Answered || c.Duration >= firstRepetition) && meanwhile(o, c)
		})
		if o.Repeated > 0 && !excused {
			repeated = append(repeated, i)
		}
	}
	if len(repeated) == 0 {
		return outcomes
	}
	Record("repeated packets", "%d of %d connections began with a packet that was dropped; none of %d to a pod's own address did at the same time", len(repeated), len(outcomes), len(controls))
	if len(repeated) == 1 && outcomes[repeated[0]].Repeated == 1 {
		return outcomes
	}
	outcomes = slices.Clone(outcomes)
	for _, i := range repeated {
		o := outcomes[i]
		outcomes[i] = candidate.Outcome{Result: candidate.Dropped, Start: o.Start, Duration: o.Duration, Repeated: o.Repeated}
	}
	return outcomes
}

// firstRepetition is when TCP repeats its first packet. A client that stood still for that long in any part of a
// connection may have done so at its beginning.
const firstRepetition = time.Second

// meanwhile reports whether two shots were under way at the same time, or nearly.
func meanwhile(a, b candidate.Outcome) bool {
	const nearly = time.Second
	return a.Start.Before(b.Start.Add(b.Duration+nearly)) && b.Start.Before(a.Start.Add(a.Duration+nearly))
}

// ownAddress is where a pod answers that only serves controls and that no change concerns. It has the family of the
// address, and is on another node than the client's, as most backends are.
func (n *Network) ownAddress(ctx context.Context, from candidate.Client, like netip.AddrPort) netip.AddrPort {
	ginkgo.GinkgoHelper()
	node := n.elsewhere(from)
	n.mu.Lock()
	pod, started := n.steady[node]
	n.mu.Unlock()
	if !started {
		pod = n.borrow(ctx, node)
		n.mu.Lock()
		n.steady[node] = pod
		n.mu.Unlock()
	}
	return controlAddress(pod, like.Addr())
}

// elsewhere is a shared node that the client is not on.
func (n *Network) elsewhere(from candidate.Client) string {
	if n.nodeOf(from) != n.Node(0) {
		return n.Node(0)
	}
	return n.Node(1)
}

// nodeOf is the node that a client is on, or that is its gateway.
func (n *Network) nodeOf(from candidate.Client) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range n.pods {
		if p.PodName == from.Pod {
			return p.Node
		}
	}
	return from.Node + from.Gateway // one of them
}

// series sends the shots of the probe, by the given way to send, over and over while change runs.
func (n *Network) series(ctx context.Context, send func(context.Context, ...candidate.Probe) [][]candidate.Outcome, probe candidate.Probe, change func()) []candidate.Outcome {
	ginkgo.GinkgoHelper()
	outcomes := send(ctx, probe)[0]
	stop, done := make(chan struct{}), make(chan []candidate.Outcome)
	go func() {
		var during []candidate.Outcome
		defer func() { done <- during }()
		defer ginkgo.GinkgoRecover()
		for {
			during = append(during, send(ctx, probe)[0]...)
			select {
			case <-stop:
				return
			case <-ctx.Done():
				return
			case <-time.After(n.betweenShots()):
			}
		}
	}()
	var during []candidate.Outcome
	func() {
		ginkgo.GinkgoHelper()
		defer func() { close(stop); during = <-done }() // also when a demand of change is not met: nothing may be sent after the check
		change()
	}()
	return append(append(outcomes, during...), send(ctx, probe)[0]...)
}

// betweenShots is the pause between two shots of a series: none that matters where packets cost nothing.
func (n *Network) betweenShots() time.Duration {
	if n.virtual {
		return 100 * time.Microsecond
	}
	return 5 * time.Millisecond
}
