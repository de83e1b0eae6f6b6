package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("a restart of the proxy", func() {
	check.It(spec.ProxyRestartKeepsTraffic, "interrupts no connection to a cluster IP, neither while the proxy is stopped nor while it starts", check.KeepsTimeline(), check.Long(), check.AloneUnless(spec.OwnNodes),
		func(ctx context.Context, net *check.Network) {
			node := stoppable(ctx, net)
			pods, client := net.Backends(ctx, "app", net.Node(0), node.Name), net.ClientPod(ctx, node.Name)
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			for i := range 20 { // a proxy that writes before it has seen everything has something to see
				net.Expose(ctx, exposed(fmt.Sprintf("more-%d", i), selecting("app")))
			}
			each, by := check.AnsweredByEach(pods...), check.AnsweredBy(pods...)
			paths := func(want check.Want) []check.Case {
				return slices.Concat(
					eachWay(check.ServiceAddress(svc, exposedPort), want, client, check.Host(node.Name)), nodePortsAt(primaryOf(net, node), node.Name, svc, want))
			}
			held := check.Case{From: client, To: check.ServiceAddress(svc, exposedPort), Connection: "held", Want: by}
			net.Expect(ctx, "the Service is created", paths(each)...)
			settled(ctx, net, pods[0], check.Host(node.Name))
			net.ExpectNow(ctx, "a connection is opened", held)

			check.Must(net.OwnNodes().StopProxy(ctx, node.Name))
			// A proxy that deals in turn may deal one pod to each of two clients, once. Only what is looked at again
			// can demand each.
			net.ExpectNow(ctx, "the proxy is stopped", append(paths(by), held)...)
			late := net.Expose(ctx, exposed("late", selecting("app")))
			unbroken(ctx, net, check.ServiceAddress(svc, exposedPort), by, func() {
				check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
				net.Expect(ctx, "the proxy is started", check.Case{From: check.Host(node.Name), To: check.ServiceAddress(late, exposedPort), Want: each})
			}, client, check.Host(node.Name), check.Outside(node.Name))
			unbroken(ctx, net, check.ServiceAddress(svc, exposedPort), by, func() {
				check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
				later := net.Expose(ctx, exposed("later", selecting("app")))
				net.Expect(ctx, "the proxy is restarted", check.Case{From: check.Host(node.Name), To: check.ServiceAddress(later, exposedPort), Want: each})
			}, client, check.Host(node.Name), check.Outside(node.Name))
			net.ExpectNow(ctx, "the proxy has been restarted", append(paths(by), held)...)
			net.Expect(ctx, "the proxy has been restarted", paths(each)...)
		})

	check.It(spec.ProxyRestartKeepsTraffic, "breaks none of a hundred connections, to whichever endpoint in whichever EndpointSlice they lead", check.KeepsTimeline(), check.Long(), check.AloneUnless(spec.OwnNodes),
		func(ctx context.Context, net *check.Network) {
			node := stoppable(ctx, net)
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2), node.Name, node.Name), net.ClientPod(ctx, node.Name)
			svc := exposeSelectorless(ctx, net, "app")
			listedApart(ctx, net, svc, pods)
			callers := []candidate.Client{client, check.Host(node.Name)}
			var held []check.Case
			for i := range check.TrialsUntil(1 / float64(len(pods))) { // so that some lead to each endpoint
				held = append(held, check.Case{From: callers[i%2], To: check.ServiceAddress(svc, exposedPort), Connection: fmt.Sprintf("held-%d", i), Want: check.AnsweredBy(pods...)})
			}
			net.Expect(ctx, "the Service is created", toClusterIP(svc, check.AnsweredByEach(pods...), callers...)...)
			settled(ctx, net, pods[0], check.Host(node.Name))
			net.ExpectNow(ctx, "connections are opened", held...)
			check.Must(net.OwnNodes().StopProxy(ctx, node.Name))
			net.ExpectNow(ctx, "the proxy is stopped", held...)
			for _, what := range []string{"started", "restarted"} {
				check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
				marker := net.Expose(ctx, exposed(net.Name("marker"), selecting("app")))
				net.Expect(ctx, "the proxy is "+what, check.Case{From: check.Host(node.Name), To: check.ServiceAddress(marker, exposedPort), Want: check.AnsweredByEach(pods...)})
				net.ExpectNow(ctx, "the proxy has been "+what, held...)
			}
			net.Expect(ctx, "the proxy has been restarted", toClusterIP(svc, check.AnsweredByEach(pods...), callers...)...)
		})
})
