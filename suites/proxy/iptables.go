package proxy

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// atRandom demands that each of the pods answers with the same probability, and in no fixed order. A pod answers twice
// in a row as often as independent choices let it, but for what check.FalseAlarm allows.
func atRandom(pods ...candidate.Pod) check.Want {
	unordered := check.Want{Text: "in no fixed order", Met: func(os []candidate.Outcome) bool {
		inARow := 0
		for i := range os[1:] {
			if os[i].Pod == os[i+1].Pod {
				inARow++
			}
		}
		// P(share < 1/n - t) <= exp(-2 m t²), by Hoeffding. Whether the next one is the same does not depend on which
		// one it is.
		n, m := float64(len(pods)), float64(len(os)-1)
		t := math.Sqrt(-math.Log(check.FalseAlarm/2) / (2 * m))
		return math.Abs(float64(inARow)/m-1/n) <= t
	}}
	return check.AllOf(check.Evenly(pods...), unordered)
}

// someFail sends from each client to a Service that has one endpoint that answers and one that does not. It demands
// that each connection is answered by the first or fails, and that both happens.
func someFail(ctx context.Context, net *check.Network, probe candidate.Probe, alive candidate.Pod) {
	ginkgo.GinkgoHelper()
	probe.Protocol = corev1.ProtocolTCP
	var probes []candidate.Probe
	answered, failed := 0, 0
	for _, probe.Timeout = range []time.Duration{0, check.LossTimeout} { // silence of all may be that of a machine under load
		probes = slices.Repeat([]candidate.Probe{probe}, check.TrialsUntil(0.5)) // all at a time: silence takes its time
		answered, failed = 0, 0
		for _, os := range net.Send(ctx, probes...) {
			switch {
			case os[0].Result != candidate.Answered:
				failed++
			case os[0].Pod == alive.PodName:
				answered++
			}
		}
		if answered > 0 {
			break
		}
	}
	check.Record("connections", "%d of %d are answered, %d fail", answered, len(probes), failed)
	Expect(answered+failed).To(Equal(len(probes)), "connections of the %s to %s that fail or are answered by %s", probe.From, probe.To, alive.Name)
	Expect(answered).NotTo(BeZero(),
		"connections of the %s to %s, out of %d, that are answered; one of two endpoints answers", probe.From, probe.To, len(probes))
	Expect(failed).NotTo(BeZero(),
		"connections of the %s to %s, out of %d, that fail; one of two endpoints does not answer, and nobody is to try the other one then",
		probe.From, probe.To, len(probes))
}

var _ = ginkgo.Describe("the iptables mode", func() {
	check.It(spec.ProxyIptablesRandom, "chooses among the endpoints at random, each with the same probability",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			want := atRandom(pods...)
			net.Expect(ctx, "the Service is created", append(eachWay(check.ServiceAddress(svc, exposedPort), want, clients[0]),
				check.Case{From: check.Outside(net.Node(1)), To: onNode(net, 1, svc), Want: want})...)
		})

	check.It(spec.ProxyIptablesAffinityOrRandom, "keeps a client at one endpoint where session affinity is set, and uses all otherwise",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			free, bound := net.Expose(ctx, exposed("app")), net.Expose(ctx, exposed("bound", selecting("app"), sticky()))
			random, same := check.AnsweredByEach(pods...), check.AlwaysBySame(pods...)
			paths := func(first, second check.Want) []check.Case {
				return append(
					eachWay(check.ServiceAddress(free, exposedPort), first, clients[0], clients[1]),
					eachWay(check.ServiceAddress(bound, exposedPort), second, clients[0], clients[1])...)
			}
			net.Expect(ctx, "a Service with affinity and one without are created", paths(random, same)...)
			net.Change(ctx, free.Name, `{"spec":{"sessionAffinity":"ClientIP"}}`)
			net.Change(ctx, bound.Name, `{"spec":{"sessionAffinity":"None"}}`)
			net.Expect(ctx, "the first gets affinity and the second loses it", paths(same, random)...)
		})

	check.It(spec.ProxyIptablesNoRetry, "does not try another endpoint when the chosen one is silent",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app")
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			net.Expect(ctx, "the Service is created", eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredByEach(pods...), clients[2])...)
			net.Remove(ctx, pods[1]) // the slice, which the check has made, still names it
			someFail(ctx, net, candidate.Probe{From: clients[2], To: check.ServiceAddress(svc, exposedPort)}, pods[0])
		})

	check.It(spec.ProxyIptablesNoRetry, "does not try another endpoint when the chosen one refuses",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app")
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			net.Expect(ctx, "the Service is created", eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredByEach(pods...), clients[2])...)
			net.Kill(ctx, pods[1])
			someFail(ctx, net, candidate.Probe{From: clients[2], To: check.ServiceAddress(svc, exposedPort)}, pods[0])
		})
})
