package proxy

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// startWithoutIPVS starts a proxy in ipvs mode on a node whose kernel has no IPVS. It returns the node, the pods of a Service, and a call to it.
func startWithoutIPVS(ctx context.Context, net *check.Network) (candidate.Node, check.Case) {
	ginkgo.GinkgoHelper()
	node := net.AddNode(ctx, candidate.ProxyConfiguration{Absent: true, WithoutIPVS: true})
	pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
	svc := net.Expose(ctx, exposed("app"))
	call := check.Case{From: check.Host(node.Name), To: check.ServiceAddress(svc, exposedPort), Want: check.AnsweredByEach(pods...)}
	there := call
	there.From = check.Host(net.Node(0))
	net.Expect(ctx, "the Service is created", there)
	check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{Mode: candidate.IPVS, WithoutIPVS: true}))
	return node, call
}

// proxyState is how the proxy of a node is.
func proxyState(ctx context.Context, net *check.Network, node candidate.Node) candidate.ProxyState {
	ginkgo.GinkgoHelper()
	state, err := net.OwnNodes().ProxyState(ctx, node.Name)
	check.Must(err)
	return state
}

var _ = ginkgo.Describe("the ipvs mode on a node without IPVS", func() {
	check.It(spec.ProxyIPVSModulesVerified, "is not taken for one that works: the proxy ends, or serves in another way",
		func(ctx context.Context, net *check.Network) {
			node, call := startWithoutIPVS(ctx, net)
			ended := false
			check.Converge(ctx, "the proxy ends or serves", check.ConvergenceBound, func(g Gomega) {
				net.Pass(ctx, lookAgain)
				state := proxyState(ctx, net, node)
				if !state.Running {
					check.Record("the proxy has ended", "%s", state.Log)
					ended = true
					return
				}
				o := net.Send(ctx, candidate.Probe{From: call.From, To: call.To, Protocol: corev1.ProtocolTCP})[0][0]
				g.Expect(o.Result).To(Equal(candidate.Answered), "the proxy of %s runs, and serves nothing; its log ends with %s", node.Name, state.Log)
			})
			if !ended {
				return
			}
			// A program that ends whatever the mode has verified nothing.
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{WithoutIPVS: true}))
			check.Converge(ctx, "it is started in the mode of other nodes", check.ConvergenceBound, func(g Gomega) {
				net.Pass(ctx, lookAgain)
				o := net.Send(ctx, candidate.Probe{From: call.From, To: call.To, Protocol: corev1.ProtocolTCP})[0][0]
				state := proxyState(ctx, net, node)
				if !state.Running {
					check.Abort("the proxy of %s ends in the mode of other nodes too, so that its end in ipvs mode says nothing; its log ends with %s", node.Name, state.Log)
				}
				g.Expect(o.Result).To(Equal(candidate.Answered), "the proxy of %s runs in the mode of other nodes, and serves nothing; its log ends with %s", node.Name, state.Log)
			})
		})

	check.It(spec.ProxyIPVSExits, "ends the proxy, which does not serve",
		func(ctx context.Context, net *check.Network) {
			node, call := startWithoutIPVS(ctx, net)
			check.Converge(ctx, "the proxy ends", check.ConvergenceBound, func(g Gomega) {
				net.Pass(ctx, lookAgain)
				state := proxyState(ctx, net, node)
				if !state.Running {
					check.Record("the end of the proxy's log", "%s", state.Log)
					return
				}
				o := net.Send(ctx, candidate.Probe{From: call.From, To: call.To, Protocol: corev1.ProtocolTCP})[0][0]
				if o.Result == candidate.Answered {
					ginkgo.Fail("a proxy in ipvs mode serves without IPVS, where it was to end with an error")
				}
				g.Expect(state.Running).To(BeFalse(), "the proxy of %s runs; its log ends with %s", node.Name, state.Log)
			})
		})
})
