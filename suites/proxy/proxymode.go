package proxy

import (
	"context"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// nowhere are ranges in which no node has an address (RFC 5737, RFC 3849).
var nowhere = []string{"203.0.113.0/24", "2001:db8:203::/48"}

// modes are the mode of the shared nodes and another one.
func modes(net *check.Network) (current, other string) {
	if net.Has(spec.NFTablesMode) {
		return candidate.NFTables, candidate.IPTables
	}
	return candidate.IPTables, candidate.NFTables
}

var _ = ginkgo.Describe("the configuration of kube-proxy", func() {
	for _, mode := range candidate.ProxyModes {
		var needs []spec.Capability
		if mode == candidate.IPVS {
			needs = append(needs, spec.IPVS)
		}
		check.It(spec.ProxyModeConfigured, "names the mode that it runs in: "+mode, check.Needs(needs...),
			func(ctx context.Context, net *check.Network) {
				node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: mode})
				pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
				svc := net.Expose(ctx, exposed("app", onNodePorts()))
				net.Expect(ctx, "a node in mode "+mode+" comes", slices.Concat(
					[]check.Case{runsIn(node.Name, mode)},
					eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredByEach(pods...), check.Host(node.Name)),
					nodePortsAt(primaryOf(net, node), node.Name, svc, check.AnsweredByEach(pods...)))...)
			})
	}

	check.It(spec.ProxyModeConfigured, "is another one after a restart, and nothing is left of the former one", check.Long(),
		func(ctx context.Context, net *check.Network) {
			mode, other := modes(net)
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: mode})
			client := net.ClientPod(ctx, node.Name)
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			inside := []candidate.Client{client, check.Host(node.Name)}
			empty, full := exposeSelectorless(ctx, net, "empty"), net.Expose(ctx, exposed("app"))
			each := check.AnsweredByEach(pods...)
			net.Expect(ctx, "one of two Services has no endpoints", append(
				toClusterIP(full, each, inside...), once(toClusterIP(empty, check.NotBy(pods...), inside...))...)...)
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{Mode: other}))
			net.Expect(ctx, "the proxy is started in mode "+other, append(toClusterIP(full, each, inside...), runsIn(node.Name, other))...)
			net.CreateSlice(ctx, net.Slice(empty, pods...))
			net.Expect(ctx, "the Service gets endpoints", toClusterIP(empty, each, inside...)...)
			net.Unexpose(ctx, full.Name)
			net.Expect(ctx, "the other Service is deleted", once(toClusterIP(full, check.NotBy(pods...), inside...))...)
		})

	check.It(spec.ProxyConfigFileWins, "is that of the file where flags say otherwise",
		func(ctx context.Context, net *check.Network) {
			mode, other := modes(net)
			node := net.AddNode(ctx, candidate.ProxyConfiguration{
				Mode: mode, Flags: []string{"--proxy-mode=" + other, "--nodeport-addresses=" + strings.Join(nowhere, ",")},
			})
			pods := net.Backends(ctx, "app", net.Node(0))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			net.Expect(ctx, "a node comes whose proxy has a file and flags", slices.Concat(
				[]check.Case{runsIn(node.Name, mode)},
				eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredBy(pods...), check.Host(node.Name)),
				nodePortsAt(primaryOf(net, node), node.Name, svc, check.AnsweredBy(pods...)))...)
		})

	check.It(spec.ProxyConfigNotReloaded, "takes effect when it is started again, not before", check.Long(), check.Aside(spec.ProxyRestartKeepsTraffic),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			pods := net.Backends(ctx, "app", net.Node(0))
			served, turned := check.AnsweredBy(pods...), turnedAway()
			watcher := net.Watcher(ctx, check.Host(node.Name))
			first := net.Expose(ctx, exposed("app", onNodePorts()))
			address := primaryOf(net, node)
			net.Expect(ctx, "a node comes", nodePortsAt(address, node.Name, first, served)...)

			changed := candidate.ProxyConfiguration{NodePortAddresses: nowhere}
			rewritten := changed
			rewritten.Rewrite = true
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, rewritten))
			second := net.Expose(ctx, exposed("second", selecting("app"), onNodePorts()))
			// Either the proxy goes on, and serves the next Service as it did the first; or it ends, and leaves its rules as they are.
			ended := false
			check.Converge(ctx, "the proxy ends or serves another Service", check.ConvergenceBound, func(g Gomega) {
				net.Pass(ctx, lookAgain)
				state, err := net.OwnNodes().ProxyState(ctx, node.Name)
				check.Must(err)
				ended = !state.Running
				o := net.Send(ctx, candidate.Probe{From: watcher, To: check.ServiceAddress(second, exposedPort), Protocol: corev1.ProtocolTCP})[0][0]
				g.Expect(ended || o.Result == candidate.Answered).To(BeTrue(), "the proxy ended, or served another Service")
			})
			check.Record("after its configuration was changed the proxy", "%s", map[bool]string{true: "ended", false: "went on"}[ended])
			net.ExpectNow(ctx, "the configuration is changed", nodePortsAt(address, node.Name, first, served)...)
			if !ended {
				net.Expect(ctx, "another Service is created", nodePortsAt(address, node.Name, second, served)...)
			}

			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, changed))
			anew := eachWay(check.ServiceAddress(second, exposedPort), served, check.Host(node.Name))
			check.Deciding(func() { net.Expect(ctx, "the proxy is started again", anew...) }, spec.ProxyRestartKeepsTraffic)
			net.Expect(ctx, "the proxy is started again, with node ports on addresses that the node does not have", slices.Concat(
				anew, nodePortsAt(address, node.Name, first, turned), nodePortsAt(address, node.Name, second, turned))...)
		})
})
