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

// LossTimeout is the silence that counts as a loss where every single shot counts: what is demanded is not looked at again, so it is longer than a loaded
// machine may leave a backend without its turn, and than TCP takes to repeat itself.
const LossTimeout = 15 * time.Second

// During sends the shots of the probe one after the other, over and over, while change runs: at least once before it begins and once
// after it has ended. It returns all outcomes in order. A connection whose first packet was dropped counts as Dropped although the kernel's repetition
// was answered, unless connections of the same client to a pod's own address fared no better: then it was the machine.
func (n *Network) During(ctx context.Context, probe candidate.Probe, change func()) []candidate.Outcome {
	ginkgo.GinkgoHelper()
	if probe.Protocol == "" {
		probe.Protocol = corev1.ProtocolTCP
	}
	if probe.Timeout == 0 {
		probe.Timeout = LossTimeout
	}
	if n.virtual || probe.Protocol != corev1.ProtocolTCP || probe.Connection != "" { // nothing is repeated
		return n.series(ctx, probe, change)
	}
	control := candidate.Probe{From: probe.From, To: n.ownAddress(ctx, probe.To), Protocol: probe.Protocol, Timeout: probe.Timeout}
	var outcomes []candidate.Outcome
	controls := n.series(ctx, control, func() {
		ginkgo.GinkgoHelper()
		outcomes = n.series(ctx, probe, change)
	})
	return droppedAtFirst(outcomes, controls)
}

// droppedAtFirst returns the outcomes, those that were answered only when the kernel repeated itself as Dropped: if it had not to among the controls.
func droppedAtFirst(outcomes, controls []candidate.Outcome) []candidate.Outcome {
	late := func(o candidate.Outcome) bool { return o.Repeated > 0 || o.Result != candidate.Answered }
	repeated := 0
	for _, o := range outcomes {
		if o.Repeated > 0 {
			repeated++
		}
	}
	switch {
	case repeated == 0:
		return outcomes
	case slices.ContainsFunc(controls, late):
		Record("repeated packets", "%d of %d connections began with a packet that had to be repeated, as did others beside the candidate", repeated, len(outcomes))
		return outcomes
	}
	Record("repeated packets", "%d of %d connections began with a packet that was dropped; of %d to a pod's own address at the same time none did", repeated, len(outcomes), len(controls))
	outcomes = slices.Clone(outcomes)
	for i, o := range outcomes {
		if o.Repeated > 0 {
			outcomes[i] = candidate.Outcome{Result: candidate.Dropped, Start: o.Start, Duration: o.Duration, Repeated: o.Repeated}
		}
	}
	return outcomes
}

// ownAddress is where a pod answers that only serves controls, and that no change concerns, in the family of the address.
func (n *Network) ownAddress(ctx context.Context, like netip.AddrPort) netip.AddrPort {
	ginkgo.GinkgoHelper()
	n.steadyOnce.Do(func() {
		n.steady = n.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: n.Name("control")}, Node: n.Node(0)})
	})
	family := corev1.IPv4Protocol
	if like.Addr().Is6() {
		family = corev1.IPv6Protocol
	}
	a := Address(n.steady.Addresses, family)
	if !a.IsValid() {
		Abort("no control: pod %s has no address of family %s", n.steady.Name, family)
	}
	return netip.AddrPortFrom(a, BackendPort)
}

// series sends the shots of the probe over and over while change runs.
func (n *Network) series(ctx context.Context, probe candidate.Probe, change func()) []candidate.Outcome {
	ginkgo.GinkgoHelper()
	outcomes := n.Send(ctx, probe)[0]
	stop, done := make(chan struct{}), make(chan []candidate.Outcome)
	go func() {
		var during []candidate.Outcome
		defer func() { done <- during }()
		defer ginkgo.GinkgoRecover()
		for {
			during = append(during, n.Send(ctx, probe)[0]...)
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
	return append(append(outcomes, during...), n.Send(ctx, probe)[0]...)
}

// betweenShots is the pause between two shots of a series: none that matters where packets cost nothing.
func (n *Network) betweenShots() time.Duration {
	if n.virtual {
		return 100 * time.Microsecond
	}
	return 5 * time.Millisecond
}
