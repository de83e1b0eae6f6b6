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
	s := switchingFor(ctx, net, name)
	var cases []check.Case
	for _, node := range nodes {
		cases = append(cases, s.call(node))
	}
	net.Expect(ctx, "the Service "+name+" is created", cases...)
	return s
}

// switchingFor exposes the Service.
func switchingFor(ctx context.Context, net *check.Network, name string) *switching {
	ginkgo.GinkgoHelper()
	s := &switching{net: net, pods: net.Backends(ctx, name, net.Node(0), net.Node(1)), cost: time.Hour}
	port := check.Port("tcp", corev1.ProtocolTCP, exposedPort, check.BackendPort)
	s.svc = net.Expose(ctx, check.Service(name, withoutSelector(), check.WithPorts(port)))
	s.slice = net.CreateSlice(ctx, net.Slice(s.svc, s.pods[0]))
	return s
}

// call is a call from a node, with the demand that the endpoint answers that there is now.
func (s *switching) call(node string) check.Case {
	return check.Case{From: check.Host(node), To: check.ServiceAddress(s.svc, exposedPort), Want: check.AnsweredBy(s.pods[0])}
}

// change exchanges the endpoint.
func (s *switching) change(ctx context.Context) {
	ginkgo.GinkgoHelper()
	slices.Reverse(s.pods)
	s.slice.Endpoints = s.net.Slice(s.svc, s.pods[0]).Endpoints
	s.slice = s.net.UpdateSlice(ctx, s.slice)
}

// watched is a change of the endpoint that has not been seen to arrive at a node.
type watched struct {
	*switching
	node   string
	within time.Duration
	start  time.Time         // when the change was accepted
	last   candidate.Outcome // the last look, which did not see the change
}

// probe is a look at which endpoint the node uses.
func (w *watched) probe() candidate.Probe {
	return candidate.Probe{From: check.Host(w.node), To: check.ServiceAddress(w.svc, exposedPort), Protocol: corev1.ProtocolTCP}
}

// changeFor exchanges the endpoint, to be seen by the node within the time.
func (s *switching) changeFor(ctx context.Context, node string, within time.Duration) *watched {
	ginkgo.GinkgoHelper()
	begun, w := time.Now(), &watched{switching: s, node: node, within: s.net.Patiently(within)}
	w.last = s.net.Send(ctx, w.probe())[0][0]
	s.change(ctx)
	took := time.Since(begun)
	s.cost = min(s.cost, took)
	w.start = w.last.Start.Add(took) // on the candidate's clock
	return w
}

// arrivedOf looks once at each change, and returns when it took effect, or nil where it has not yet. The check fails when one is late.
func arrivedOf(ctx context.Context, net *check.Network, changes []*watched) []*arrival {
	ginkgo.GinkgoHelper()
	var looks []candidate.Probe
	for _, w := range changes {
		looks = append(looks, w.probe())
	}
	found := make([]*arrival, len(changes))
	for i, seen := range net.Send(ctx, looks...) {
		w, now := changes[i], seen[0] //nolint:gosec // a probe for each change
		at := now.Start.Add(now.Duration)
		if now.Result == candidate.Answered && now.Pod == w.pods[0].PodName {
			found[i] = &arrival{w.last.Start, at}
			continue
		}
		if late := at.Sub(w.start); late > w.within {
			ginkgo.Fail(fmt.Sprintf(
				"the endpoint of Service %s was exchanged, and %s later the host of %s does not use the new one (%s)", w.svc.Name, late, w.node, now.Result))
		}
		if now.Result == candidate.Answered { // else it has not shown that the change had not arrived
			w.last = now
		}
	}
	return found
}

// changeAndSee exchanges the endpoint and waits until the node uses the new one. The check fails when it does not within the time.
func (s *switching) changeAndSee(ctx context.Context, node string, within time.Duration) {
	ginkgo.GinkgoHelper()
	change := []*watched{s.changeFor(ctx, node, within)}
	for arrivedOf(ctx, s.net, change)[0] == nil {
		s.net.Pass(ctx, lookAgain)
	}
}

// paced is a series of changes of one Service, each made when the one before has arrived at a node.
type paced struct {
	*switching
	node    string
	changes int // how many follow the first
	within  time.Duration
	// enough, if it is set, ends the series when it says so of the last gap.
	enough func(gap time.Duration) bool
	gaps   []time.Duration // how far apart the syncs that brought two changes were, at most
}

// pace makes one series of changes and returns its gaps.
func (s *switching) pace(ctx context.Context, node string, changes int, within time.Duration) []time.Duration {
	ginkgo.GinkgoHelper()
	p := &paced{switching: s, node: node, changes: changes, within: within}
	paceAll(ctx, s.net, p)
	return p.gaps
}

// paceAll makes several series of changes side by side.
func paceAll(ctx context.Context, net *check.Network, series ...*paced) {
	ginkgo.GinkgoHelper()
	running, last := slices.Clone(series), map[*paced]*arrival{}
	var changes []*watched
	for _, p := range running {
		changes = append(changes, p.changeFor(ctx, p.node, p.within))
	}
	for len(running) > 0 {
		var left []*paced
		var next []*watched
		for i, at := range arrivedOf(ctx, net, changes) {
			p, change := running[i], changes[i]
			if at != nil {
				if before := last[p]; before != nil {
					p.gaps = append(p.gaps, at.before.Sub(before.after))
				}
				last[p] = at
				if len(p.gaps) == p.changes || p.enough != nil && len(p.gaps) > 0 && p.enough(p.gaps[len(p.gaps)-1]) {
					continue
				}
				change = p.changeFor(ctx, p.node, p.within)
			}
			left, next = append(left, p), append(next, change)
		}
		if running, changes = left, next; len(running) > 0 {
			net.Pass(ctx, lookAgain)
		}
	}
	for _, p := range series {
		check.Record(fmt.Sprintf("time between changes that arrive at %s, each made when the one before had arrived", p.node), "%v", p.gaps)
	}
}

// mustHaveWaited ends the check as unknown unless the shortest of the gaps has at least the time. On a machine so slow
// that syncs, requests and looks fill the time, a proxy that waits looks like one that is slow.
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
