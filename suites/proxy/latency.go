package proxy

import (
	"context"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	// changeLatency is how long a single change may take (proxy-change-latency).
	changeLatency = 10 * time.Second
	// changesTimed is how many changes are timed; the fastest counts.
	changesTimed = 3
)

// lag is how long after a change new connections are still as wrong says, on the candidate's clock, and whether that ended within the bound of convergence.
func lag(ctx context.Context, net *check.Network, probe candidate.Probe, change func(), wrong func(candidate.Outcome) bool) (time.Duration, bool) {
	ginkgo.GinkgoHelper()
	change()
	var first, last time.Time
	for quiet := 0; quiet < 3; { // three series in a row without one
		quiet++
		for _, o := range net.Send(ctx, probe)[0] {
			if first.IsZero() {
				first, last = o.Start, o.Start
			}
			if wrong(o) {
				last, quiet = o.Start, 0
			}
			if o.Start.Sub(first) > net.Patiently(check.ConvergenceBound) {
				return last.Sub(first), false
			}
		}
		net.Pass(ctx, 100*time.Millisecond)
	}
	return last.Sub(first), true
}

var _ = ginkgo.Describe("the removal of an endpoint", func() {
	check.It(spec.ProxyChangeLatency, "has effect for the new connections of a pod soon", check.Alone(), func(ctx context.Context, net *check.Network) {
		pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
		client := net.ClientPod(ctx, net.Node(0))
		svc := exposeSelectorless(ctx, net, "app")
		slice := net.CreateSlice(ctx, net.Slice(svc, pods...))
		net.Expect(ctx, "the Service is created", toClusterIP(svc, check.AnsweredByEach(pods...), client)...)
		probe := candidate.Probe{From: client, To: check.ServiceAddress(svc, exposedPort), Protocol: corev1.ProtocolTCP, Count: onlyBy(2).Shots}
		fastest := check.ConvergenceBound
		for i := range changesTimed {
			left := pods[1-i%2]
			took, ended := lag(ctx, net, probe, func() {
				slice.Endpoints = net.Slice(svc, left).Endpoints
				slice = net.UpdateSlice(ctx, slice)
			}, func(o candidate.Outcome) bool { return o.Pod != left.PodName })
			check.Record("an endpoint is removed", "the last connection that the other one does not answer %s later", took.Round(time.Millisecond))
			if ended {
				fastest = min(fastest, took)
			}
			slice.Endpoints = net.Slice(svc, pods...).Endpoints
			slice = net.UpdateSlice(ctx, slice)
			net.Expect(ctx, "the endpoint is there again", toClusterIP(svc, check.AnsweredByEach(pods...), client)...)
		}
		Expect(fastest).To(BeNumerically("<=", net.Patiently(changeLatency)), "the fastest of %d removals of an endpoint has had effect after this time", changesTimed)
	})
})
