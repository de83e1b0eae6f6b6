package proxy

import (
	"context"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("syncPeriod", func() {
	check.It(spec.ProxySyncPeriodInterference, "is how long it takes at most until rules that somebody flushed are back", check.Long(),
		check.Also(spec.ProxySyncConfigurable),
		func(ctx context.Context, net *check.Network) {
			// The bound is half of what kube-proxy does where nobody configures it: 30 seconds.
			const period, bound, undisturbed = 2 * time.Second, 15 * time.Second, 12 * time.Second
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: "iptables", SyncPeriod: period.String()})
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			paths := slices.Concat(
				eachWay(check.At(svc, exposedPort), check.AnsweredByEach(pods...), client, check.Host(node.Name)),
				nodePortsAt(primaryOf(net, node), node.Name, svc, check.AnsweredByEach(pods...)))
			net.Expect(ctx, "the Service is created", paths...)
			begun := time.Now()
			settled(ctx, net, pods[0], check.Host(node.Name))
			if took := time.Since(begun); took > net.Patiently(bound/2) {
				check.Abort("the machine is too slow: an ordinary change took %s to arrive at %s, and rules are to be back within %s", took, node.Name, net.Patiently(bound))
			}
			// Changes that others make bring the rules back too: nothing of them may reach the node, and what has reached it must be programmed.
			check.Must(net.Plane().Interfere(ctx, node.Name, candidate.CutOff))
			net.Pass(ctx, period)
			flush := func() {
				for range 3 { // the rules may be back before anybody looks
					check.Must(net.Plane().Interfere(ctx, node.Name, candidate.FlushRules))
					o := net.Send(ctx, candidate.Probe{From: client, To: check.At(svc, exposedPort), Protocol: corev1.ProtocolTCP})[0][0]
					if o.Result != candidate.Answered {
						return
					}
					net.Pass(ctx, undisturbed)
				}
				check.Abort("the rules of %s were flushed, and it served all the same", node.Name)
			}
			flush()
			net.ExpectWithin(ctx, "somebody flushes the rules", bound, paths...)
			// Whoever looks for what he has put there must put it there again, and has time to: see the deviations of the requirement.
			net.Pass(ctx, undisturbed)
			flush()
			net.ExpectWithin(ctx, "somebody flushes the rules once more", bound, paths...)
		})
})
