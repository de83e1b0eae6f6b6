package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// rolling is a Service with a pod on each of the first two nodes, which are replaced, and clients that go on using it.
type rolling struct {
	svc   *corev1.Service
	pods  []candidate.Pod // the ready one of each node
	paths []check.Case    // From and To
	held  []check.Case    // connections that were established, each with the demand that its pod answers
}

// roll begins: it waits until the paths lead to the pods and opens a connection on each of them.
func roll(ctx context.Context, net *check.Network, svc *corev1.Service, pods []candidate.Pod, paths ...check.Case) *rolling {
	ginkgo.GinkgoHelper()
	r := &rolling{svc: svc, pods: pods, paths: net.WithinClaims(paths...)}
	by := check.AnsweredBy(pods...)
	net.Expect(ctx, "the Service is created", r.fresh(by)...)
	settled(ctx, net, pods[0], check.Host(pods[0].Node), check.Host(pods[1].Node))
	for _, c := range r.fresh(by) {
		c.Connection = "held"
		r.held = append(r.held, c)
	}
	for k, outcomes := range net.ExpectNow(ctx, "connections are opened", r.held...) {
		i := slices.IndexFunc(pods, func(p candidate.Pod) bool { return p.PodName == outcomes[0].Pod })
		r.held[k].Want = check.AnsweredBy(pods[i])
	}
	return r
}

// fresh are new connections on every path.
func (r *rolling) fresh(want check.Want) []check.Case {
	cases := slices.Clone(r.paths)
	for i := range cases {
		cases[i].Want = want
	}
	return cases
}

// replace replaces the pod of the i-th node as a rolling update does. The next one becomes ready. Then the old one is
// deleted, goes on answering for a while and ends. Which of the pods answers is left to the proxies; the requirement is
// about whether one does.
func (r *rolling) replace(ctx context.Context, net *check.Network, i int, lossless spec.ID) {
	ginkgo.GinkgoHelper()
	old := r.pods[i]
	next := net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: net.Name("app")}, Node: old.Node, Labels: old.Labels, Unready: true})
	all := append(slices.Clone(r.pods), next)
	check.Deciding(func() {
		everyShot(ctx, net, func() {
			net.SetReady(ctx, next, true)
			net.Terminate(ctx, old)
			r.pods[i] = next
			net.Expect(ctx, "a pod is ready and the one before it terminates", r.fresh(onlyBy(len(all), r.pods...))...)
		}, r.fresh(check.AnsweredBy(all...))...)
	}, lossless)
	check.Deciding(func() {
		net.ExpectNow(ctx, "a pod terminates that has connections", r.held...)
	}, spec.ProxyTerminatingConnectionsKept)
	r.held = slices.DeleteFunc(r.held, func(c check.Case) bool {
		return c.Want.Met([]candidate.Outcome{{Result: candidate.Answered, Pod: old.PodName}})
	})
	// No connection to the old pod is under way here.
	current := check.AnsweredBy(r.pods...)
	check.Deciding(func() {
		everyShot(ctx, net, func() {
			net.Remove(ctx, old)
			lists(ctx, net, r.svc, "the pod that terminates has ended", r.pods...)
			net.Expect(ctx, "the pod that terminates has ended, then another Service is created",
				append(r.fresh(current), caughtUp(ctx, net, next, check.Host(net.Node(0)), check.Host(net.Node(1)))...)...)
		}, r.fresh(current)...)
	}, lossless)
}

var _ = ginkgo.Describe("a rolling update", func() {
	check.It(spec.ProxyBackendChangeTransparent, "loses no connection under internalTrafficPolicy Local", check.KeepsTimeline(), check.Also(spec.ProxyTerminatingConnectionsKept),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", internalLocal))
			to := check.ServiceAddress(svc, exposedPort)
			r := roll(ctx, net, svc, pods,
				check.Case{From: net.ClientPod(ctx, net.Node(0)), To: to}, check.Case{From: check.Host(net.Node(0)), To: to},
				check.Case{From: net.ClientPod(ctx, net.Node(1)), To: to})
			for i := range pods {
				r.replace(ctx, net, i, spec.ProxyBackendChangeTransparent)
			}
		})

	check.It(spec.ProxyTerminatingDrains, "loses no connection under externalTrafficPolicy Local, and none when a node is left without pods", check.KeepsTimeline(),
		check.Also(spec.ProxyTerminatingConnectionsKept),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", onNodePorts(), externalLocal))
			r := roll(ctx, net, svc, pods,
				check.Case{From: arriving(net, 0), To: onNode(net, 0, svc)}, check.Case{From: arriving(net, 1), To: onNode(net, 1, svc)})
			for i := range pods {
				r.replace(ctx, net, i, spec.ProxyTerminatingDrains)
			}
			check.Deciding(func() {
				by := check.AnsweredBy(r.pods...)
				everyShot(ctx, net, func() {
					net.Terminate(ctx, r.pods[0])
					// That the node has followed shows at the cluster IP: its policy is Cluster, and another pod is ready.
					net.Expect(ctx, "the last pod of a node begins to terminate",
						append(r.fresh(by), clusterIPCalls(svc, onlyBy(2, r.pods[1]), check.Host(net.Node(0)))...)...)
				}, r.fresh(by)...)
			}, spec.ProxyTerminatingDrains)
		})
})
