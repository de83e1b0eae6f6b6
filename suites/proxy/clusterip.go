package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("a cluster IP", func() {
	check.It(spec.ProxyClusterIPReachable, "leads pods and processes of nodes to a backend on their node or on another",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
			svc := net.Expose(ctx, exposed("app"))
			var cases []check.Case // by TCP: that UDP is forwarded is demanded by itself
			for _, c := range []candidate.Client{clients[0], clients[2], check.Host(net.Node(0)), check.Host(net.Node(1))} {
				cases = append(cases, check.Case{From: c, To: check.ServiceAddress(svc, exposedPort), Want: check.AnsweredBy(pods...)})
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyClusterIPOnEveryNode, "works on every node", check.Also(spec.ProxyNotAnsweredBySingleHost),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			all := slices.Concat(clients, hosts(net))
			for _, n := range net.Nodes()[3:] {
				all = append(all, check.Host(n.Name))
			}
			net.Expect(ctx, "the Service is created", toClusterIP(svc, check.AnsweredBy(pods...), all...)...)
		})

	check.It(spec.ProxyClusterIPOnEveryNode, "works on a node that comes later, before and after Services change", check.Needs(spec.OwnNodes),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			old := exposeSelectorless(ctx, net, "old")
			net.CreateSlice(ctx, net.Slice(old, pods[0]))
			node := net.AddNode(ctx, candidate.ProxyConfiguration{}).Name
			clients := []candidate.Client{check.Host(node), net.ClientPod(ctx, node)}
			net.Expect(ctx, "a node is added", toClusterIP(old, check.AnsweredBy(pods[0]), clients...)...)
			late := exposeSelectorless(ctx, net, "late")
			net.CreateSlice(ctx, net.Slice(late, pods[1]))
			net.Expect(ctx, "a Service is created", toClusterIP(late, check.AnsweredBy(pods[1]), clients...)...)
		})

	check.It(spec.ProxyNotAnsweredBySingleHost, "works while a node that served it serves no longer", check.Needs(spec.OwnNodes),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
			svc := exposeSelectorless(ctx, net, "app")
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			node := net.AddNode(ctx, candidate.ProxyConfiguration{}).Name
			others := toClusterIP(svc, check.AnsweredBy(pods...), slices.Concat(clients, hosts(net))...)
			net.Expect(ctx, "a node is added", append(others, toClusterIP(svc, check.AnsweredBy(pods...), check.Host(node))...)...)
			settled(ctx, net, pods[0], hosts(net)...)
			check.Must(net.OwnNodes().StopProxy(ctx, node))
			check.Must(net.OwnNodes().Interfere(ctx, node, candidate.FlushRules))
			net.ExpectNow(ctx, "one node has no rules", others...)
		})

	check.It(spec.ProxyClusterIPAcrossNamespaces, "works in every namespace, also where a Service has the same name",
		func(ctx context.Context, net *check.Network) {
			home, other := net.Namespace(), net.NewNamespace(ctx)
			pods := make([]candidate.Pod, 2)
			check.Concurrently(2, func(i int) {
				pods[i] = net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Namespace: []string{home, other}[i], Name: "backend"}, Node: net.Node(i)})
			})
			var cases []check.Case
			for i, ns := range []string{home, other} {
				svc := exposeSelectorless(ctx, net, "app", check.InNamespace(ns))
				net.CreateSlice(ctx, net.Slice(svc, pods[i]))
				cases = append(cases, toClusterIP(svc, onlyBy(2, pods[i]), check.FromPod(pods[0]), check.FromPod(pods[1]), check.Host(net.Node(2)))...)
			}
			net.Expect(ctx, "a Service of the same name is created in two namespaces", cases...)
		})

	check.It(spec.ProxyClusterIPSpreads, "spreads connections over all backends, for every client",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(0), net.Node(1), net.Node(2))
			svc := net.Expose(ctx, exposed("app"))
			net.Expect(ctx, "the Service is created", clusterIPCalls(svc, check.AnsweredByEach(pods...), slices.Concat(clients, hosts(net))...)...)
		})

	check.It(spec.ProxyEqualPortsSeparate, "keeps Services apart that have the same port",
		func(ctx context.Context, net *check.Network) {
			one, clients := backendsAndClients(ctx, net, "one", net.Node(0), net.Node(1))
			two := net.Backends(ctx, "two", net.Node(0), net.Node(1))
			first, second := net.Expose(ctx, exposed("one")), net.Expose(ctx, exposed("two"))
			of := func(svc *corev1.Service, pods []candidate.Pod) []check.Case {
				return clusterIPCalls(svc, exactlyBy(4, pods...), clients[0], clients[2], check.Host(net.Node(1)))
			}
			net.Expect(ctx, "two Services are created", append(of(first, one), of(second, two)...)...)
			net.Unexpose(ctx, first.Name)
			net.Expect(ctx, "one of two Services is deleted",
				append(of(second, two), once(toClusterIP(first, check.NotBy(slices.Concat(one, two)...), clients[0]))...)...)
		})

	check.It(spec.ProxyVIPForEveryType, "works for every type of Service that has one",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			var cases []check.Case
			for _, typ := range []corev1.ServiceType{corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer} {
				svc := net.Expose(ctx, exposed(net.Name("app"), selecting("app"), check.OfType(typ)))
				cases = append(cases, clusterIPCalls(svc, check.AnsweredByEach(pods...), clients[0], clients[2], check.Host(net.Node(2)))...)
			}
			net.Expect(ctx, "Services of three types are created", cases...)
		})

	check.It(spec.ProxyVIPForEveryType, "stays when the type of its Service changes",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := exposeSelectorless(ctx, net, "app")
			net.CreateSlice(ctx, net.Slice(svc, pods...))
			cases := clusterIPCalls(svc, check.AnsweredByEach(pods...), clients[0], clients[2], check.Host(net.Node(2)))
			net.Expect(ctx, "the Service is created", cases...)
			for _, typ := range []corev1.ServiceType{corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer} {
				svc = net.Change(ctx, svc.Name, `{"spec":{"type":"`+string(typ)+`"}}`)
				net.Expect(ctx, "its type becomes "+string(typ), slices.Concat(
					cases, toNodePorts(net, svc, check.AnsweredBy(pods...), check.Outside(net.Node(0))))...)
			}
			net.Change(ctx, svc.Name, `{"spec":{"type":"ClusterIP"}}`)
			net.Expect(ctx, "its type becomes ClusterIP", append(cases, caughtUp(ctx, net, pods[0], clients[0], clients[2], check.Host(net.Node(2)))...)...)
		})

	check.It(spec.ProxyNoClientKnowledge, "needs nothing of a client but a socket",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			// A pod that no Service knows, without labels and ports, in another namespace; and a process that is no pod.
			stranger := net.Start(ctx, candidate.Pod{
				PodName: candidate.PodName{Namespace: net.NewNamespace(ctx), Name: "stranger"}, Node: net.Node(2), Ports: []candidate.PodPort{},
			})
			svc := net.Expose(ctx, exposed("app"))
			var cases []check.Case
			for _, from := range []candidate.Client{check.FromPod(stranger), check.Host(net.Node(2))} {
				cases = append(cases, clusterIPCalls(svc, check.AnsweredByEach(pods...), from)...)
				cases = append(cases,
					check.Case{From: from, To: check.ServiceAddress(svc, exposedPort), Connection: "kept", Want: check.AnsweredBy(pods...)},
					check.Case{From: from, To: check.ServiceAddress(svc, exposedPort), Path: "/", Want: check.AnsweredBy(pods...)})
			}
			net.Expect(ctx, "the Service is created", cases...)
		})

	check.It(spec.ProxyRedirectTransparent, "is what replies come from, also where a client uses two from one port",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
			one, two := net.Expose(ctx, exposed("app")), net.Expose(ctx, exposed("two", selecting("app")))
			callers := []candidate.Client{clients[0], clients[2], check.Host(net.Node(1))}
			var cases []check.Case
			for i, c := range callers {
				for k, svc := range []*corev1.Service{one, two} {
					for n := range 2 {
						cases = append(cases, check.Case{
							From: c, To: check.ServiceAddress(svc, exposedPort), Protocol: inTurn(n), SourcePort: firstChosenPort + i, Connection: fmt.Sprintf("%d to %d", n, k), Want: check.AnsweredBy(pods...),
						})
					}
				}
			}
			// A kernel remembers an attempt from before a Service was served, and lets others from that port go the same way.
			net.Expect(ctx, "Services of one endpoint are created", append(toClusterIP(one, check.AnsweredBy(pods...), callers...), toClusterIP(two, check.AnsweredBy(pods...), callers...)...)...)
			net.Expect(ctx, "clients use both from one port", cases...)
			net.ExpectNow(ctx, "both are used again", cases...)
		})

	check.It(spec.ProxyRedirectTransparent, "is what replies come from",
		func(ctx context.Context, net *check.Network) {
			// A socket that is connected to an address takes datagrams from nowhere else. Where the backend is near the client, a reply
			// finds its way back without passing where the address was translated.
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			inside := slices.Concat(clients, hosts(net), []candidate.Client{check.FromPod(pods[0])})
			net.Expect(ctx, "the Service is created", slices.Concat(
				toClusterIP(svc, check.AnsweredBy(pods...), inside...),
				toNodePorts(net, svc, check.AnsweredBy(pods...), append(outsiders(net), clients[0], check.FromPod(pods[0]))...))...)
		})
})
