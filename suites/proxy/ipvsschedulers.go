package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// inRotation demands that the pods answer one after the other, over and over, in one and the same order.
func inRotation(pods ...candidate.Pod) check.Want {
	const rounds = 5
	answered := check.AnsweredByEach(pods...)
	return check.Want{Text: answered.Text + " in turn", Shots: rounds * len(pods), Met: func(os []candidate.Outcome) bool {
		for i, o := range os {
			if i >= len(pods) && o.Pod != os[i-len(pods)].Pod {
				return false
			}
		}
		return answered.Met(os)
	}}
}

// scheduled adds a node with the scheduler and a pod on it to send from. It adds a Service with three endpoints, which
// are the pods that it returns.
func scheduled(ctx context.Context, net *check.Network, scheduler string) (candidate.Node, candidate.Client, []candidate.Pod, *corev1.Service) {
	ginkgo.GinkgoHelper()
	node, client := ipvsNode(ctx, net, candidate.ProxyConfiguration{Scheduler: scheduler})
	pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
	svc := exposeSelectorless(ctx, net, "app", onNodePorts())
	net.CreateSlice(ctx, net.Slice(svc, pods...))
	return node, client, pods, svc
}

// prefersIdle looks at a scheduler that counts open connections. All endpoints but one hold connections open. That one
// must get every new connection that is closed again, and then the next one that stays open.
func prefersIdle(scheduler string) check.TrafficBody {
	return func(ctx context.Context, net *check.Network) {
		_, from, pods, svc := scheduled(ctx, net, scheduler)
		to := check.ServiceAddress(svc, exposedPort)
		net.Expect(ctx, "the Service is created", check.Case{From: from, To: to, Want: check.AnsweredBy(pods...), Shots: 2})
		settled(ctx, net, pods[0], from)
		free := slices.Clone(pods)
		for round := range 2 {
			for i := range pods {
				if len(free) == 1 {
					net.ExpectNow(ctx, fmt.Sprintf("every endpoint but %s holds %d connections open, that one %d", free[0].Name, round+1, round),
						check.Case{From: from, To: to, Want: check.AnsweredBy(free...), Shots: 3 * len(pods)})
				}
				held := check.Case{From: from, To: to, Connection: fmt.Sprintf("held-%d-%d", round, i), Want: check.AnsweredBy(free...), Shots: 1}
				by := net.ExpectNow(ctx, fmt.Sprintf("%d connections are held open", round*len(pods)+i), held)[0][0].Pod
				free = slices.DeleteFunc(free, func(p candidate.Pod) bool { return p.PodName == by })
			}
			free = slices.Clone(pods)
		}
	}
}

var _ = ginkgo.Describe("the IPVS scheduler", func() {
	check.It(spec.ProxyIPVSSchedulerRr, "rr takes the backends in turn",
		func(ctx context.Context, net *check.Network) {
			_, client, pods, svc := scheduled(ctx, net, "rr")
			net.Expect(ctx, "the Service is created", check.Case{From: client, To: check.ServiceAddress(svc, exposedPort), Want: inRotation(pods...)})
		})

	check.It(spec.ProxyIPVSSchedulerLc, "lc takes the backend with the fewest open connections", prefersIdle("lc"))
	check.It(spec.ProxyIPVSSchedulerSed, "sed takes the backend with the shortest expected delay", prefersIdle("sed"))
	check.It(spec.ProxyIPVSSchedulerNq, "nq takes a backend that is idle", prefersIdle("nq"))

	check.It(spec.ProxyIPVSSchedulerDh, "dh takes one backend for all connections to an address",
		func(ctx context.Context, net *check.Network) {
			node, client, pods, svc := scheduled(ctx, net, "dh")
			clients := append(crowd(node.Name)[:4], client, net.ClientPod(ctx, node.Name))
			cases := func(want check.Want) []check.Case {
				var cases []check.Case
				for _, from := range clients {
					cases = append(cases, check.Case{From: from, To: check.ServiceAddress(svc, exposedPort), Want: want})
				}
				return cases
			}
			outcomes := net.Expect(ctx, "the Service is created", cases(check.AlwaysBySame(pods...))...)
			chosen := candidate.Pod{PodName: outcomes[0][0].Pod}
			net.Expect(ctx, "one client has always reached "+chosen.Name, cases(check.AnsweredBy(chosen))...)
		})

	check.It(spec.ProxyIPVSSchedulerSh, "sh takes one backend for all connections of a client, and not the same for all clients",
		func(ctx context.Context, net *check.Network) {
			node, _, pods, svc := scheduled(ctx, net, "sh")
			at := nodePortsAt(primaryOf(net, node), node.Name, svc, check.Want{})[0].To
			cases := fromEach(crowd(node.Name), at, corev1.ProtocolTCP)
			chosen := settle(ctx, net, "the Service is created", cases, pods...)
			used := map[candidate.PodName]int{}
			for _, name := range chosen {
				used[name]++
			}
			check.Record("backends of clients", "%v", used)
			Expect(len(used)).To(BeNumerically(">", 1), "backends that %d clients reach", len(cases))
			stay(ctx, net, "every client has found its backend", cases, chosen)
		})
})
