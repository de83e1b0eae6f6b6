package proxy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
)

// lookAgain is the time between two looks at something that is to come.
const lookAgain = 20 * time.Millisecond

// switching is a Service with one endpoint, which a check changes over and over.
type switching struct {
	net   *check.Network
	pods  []candidate.Pod
	svc   *corev1.Service
	slice *discoveryv1.EndpointSlice
	// cost is the shortest time that a change has taken beside what the proxy does: the request, and a look.
	cost time.Duration
}

// arrival is when a change took effect on a node: later than after, not later than before, on the candidate's clock.
type arrival struct{ after, before time.Time }

// newSwitching exposes the Service, and waits until the nodes serve it.
func newSwitching(ctx context.Context, net *check.Network, name string, nodes ...string) *switching {
	ginkgo.GinkgoHelper()
	s := &switching{net: net, pods: net.Backends(ctx, name, net.Node(0), net.Node(1)), cost: time.Hour}
	port := check.Port("tcp", corev1.ProtocolTCP, exposedPort, check.BackendPort)
	s.svc = net.Expose(ctx, check.Service(name, withoutSelector(), check.WithPorts(port)))
	s.slice = net.CreateSlice(ctx, net.Slice(s.svc, s.pods[0]))
	var cases []check.Case
	for _, node := range nodes {
		cases = append(cases, s.call(node))
	}
	net.Expect(ctx, "the Service "+name+" is created", cases...)
	return s
}

// call is a call from a node, with the demand that the endpoint answers that there is now.
func (s *switching) call(node string) check.Case {
	return check.Case{From: check.Host(node), To: check.At(s.svc, exposedPort), Want: check.AnsweredBy(s.pods[0])}
}

// change exchanges the endpoint.
func (s *switching) change(ctx context.Context) {
	ginkgo.GinkgoHelper()
	slices.Reverse(s.pods)
	s.slice.Endpoints = s.net.Slice(s.svc, s.pods[0]).Endpoints
	s.slice = s.net.UpdateSlice(ctx, s.slice)
}

// changeAndSee exchanges the endpoint and waits until the node uses the new one. The check fails when it does not within the time.
func (s *switching) changeAndSee(ctx context.Context, node string, within time.Duration) arrival {
	ginkgo.GinkgoHelper()
	look := func() candidate.Outcome {
		ginkgo.GinkgoHelper()
		return s.net.Send(ctx, candidate.Probe{From: check.Host(node), To: check.At(s.svc, exposedPort), Protocol: corev1.ProtocolTCP})[0][0]
	}
	begun, within := time.Now(), s.net.Patiently(within)
	last := look()
	s.change(ctx)
	s.cost = min(s.cost, time.Since(begun))
	start := last.Start
	for {
		now := look()
		seen := now.Start.Add(now.Duration)
		if now.Result == candidate.Answered && now.Pod == s.pods[0].PodName {
			return arrival{last.Start, seen}
		}
		if took := seen.Sub(start); took > within {
			ginkgo.Fail(fmt.Sprintf(
				"the endpoint of Service %s was exchanged, and %s later the host of %s does not use the new one (%s)", s.svc.Name, took, node, now.Result))
		}
		last = now
		s.net.Pass(ctx, lookAgain)
	}
}

// pace makes changes, each when the one before has arrived at the node, and returns how far apart the syncs that brought them were at most. It ends early
// when enough says so of what it has seen.
func (s *switching) pace(ctx context.Context, node string, changes int, within time.Duration, enough func(gap time.Duration) bool) []time.Duration {
	ginkgo.GinkgoHelper()
	var gaps []time.Duration
	last := s.changeAndSee(ctx, node, within)
	for range changes {
		next := s.changeAndSee(ctx, node, within)
		gaps, last = append(gaps, next.before.Sub(last.after)), next
		if enough != nil && enough(gaps[len(gaps)-1]) {
			break
		}
	}
	check.Record(fmt.Sprintf("time between changes that arrive at %s, each made when the one before had arrived", node), "%v", gaps)
	return gaps
}

// mustHaveWaited ends the check as unknown unless somebody waited at least for the time in the shortest of the gaps: where the machine is so slow that syncs,
// requests and looks fill it, a proxy that waits cannot be told from one that is slow.
func (s *switching) mustHaveWaited(before, after *metrics, gaps []time.Duration, wait time.Duration) {
	ginkgo.GinkgoHelper()
	syncs := after.total(syncDuration+"_count") - before.total(syncDuration+"_count")
	took := after.total(syncDuration+"_sum") - before.total(syncDuration+"_sum")
	mean := time.Duration(0)
	if syncs > 0 {
		mean = time.Duration(took / syncs * float64(time.Second))
	}
	if slices.Min(gaps)-s.cost-mean < wait {
		check.Abort("the machine is too slow to decide: a sync takes %s on average, and a request with a look at its effect %s or more", mean, s.cost)
	}
}
