package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// stoppable is a node whose proxy the check may stop and start: one of its own, or a shared one where the check runs alone (check.AloneUnless).
func stoppable(ctx context.Context, net *check.Network) candidate.Node {
	ginkgo.GinkgoHelper()
	if net.Has(spec.ProxyStops) && !net.Has(spec.OwnNodes) {
		return net.Nodes()[2]
	}
	return net.AddNode(ctx, candidate.ProxyConfiguration{})
}

// gap judges what a node has followed after a gap, which leave begins and come ends. Throughout it serves what it had.
func gap(ctx context.Context, net *check.Network, node candidate.Node, what string, leave, come func(node string)) {
	ginkgo.GinkgoHelper()
	pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
	inside := []candidate.Client{client, check.Host(node.Name)}
	// Five slices of one endpoint each: a proxy that reads only some of them, or takes what it reads last for all, shows.
	many := exposeSelectorless(ctx, net, "many")
	manySlices := listedApart(ctx, net, many, append(pods, net.Backends(ctx, "more", net.Node(0), net.Node(1), net.Node(2))...))
	shrinks, ends, stays := exposeSelectorless(ctx, net, "shrinks", onNodePorts()), exposeSelectorless(ctx, net, "ends"), exposeSelectorless(ctx, net, "stays")
	slice := net.CreateSlice(ctx, net.Slice(shrinks, pods...))
	net.CreateSlice(ctx, net.Slice(ends, pods...)) // it stays when the Service goes
	net.CreateSlice(ctx, net.Slice(stays, pods...))
	nodePorts := func(want check.Want) []check.Case { return nodePortsAt(primaryOf(net, node), node.Name, shrinks, want) }
	each := check.AnsweredByEach(pods...)
	net.Expect(ctx, "the Services are created", slices.Concat(
		toClusterIP(many, check.AnsweredByEach(manySlices.pods...), inside...), toClusterIP(stays, each, inside...),
		toClusterIP(shrinks, each, inside...), nodePorts(each), toClusterIP(ends, each, inside...))...)

	leave(node.Name)
	comes := exposeSelectorless(ctx, net, "comes") // before the other one goes, whose address it would be given by a server that takes the first free one
	net.CreateSlice(ctx, net.Slice(comes, pods...))
	slice.Endpoints = net.Slice(shrinks, pods[1]).Endpoints
	net.UpdateSlice(ctx, slice)
	net.Unexpose(ctx, ends.Name)
	net.DeleteSlice(ctx, manySlices.slices[0])
	net.ExpectNow(ctx, "what has not changed is served in the gap", toClusterIP(stays, check.AnsweredBy(pods...), inside...)...)
	come(node.Name)
	net.Expect(ctx, what, slices.Concat(
		toClusterIP(comes, each, inside...), toClusterIP(stays, each, inside...),
		toClusterIP(shrinks, onlyBy(2, pods[1]), inside...), nodePorts(onlyBy(2, pods[1])),
		once(toClusterIP(ends, check.NotBy(pods...), inside...)),
		toClusterIP(many, exactlyBy(len(manySlices.pods), manySlices.pods[1:]...), inside...))...)
	slice.Endpoints = net.Slice(shrinks, pods[0]).Endpoints
	net.UpdateSlice(ctx, slice)
	net.Expect(ctx, "endpoints change after the gap", append(toClusterIP(shrinks, onlyBy(2, pods[0]), inside...), nodePorts(onlyBy(2, pods[0]))...)...)
}

var _ = ginkgo.Describe("a proxy that did not run for a while", func() {
	check.It(spec.ProxyGapFollowed, "follows what came, changed and went meanwhile", check.KeepsTimeline(), check.Long(), check.AloneUnless(spec.OwnNodes),
		func(ctx context.Context, net *check.Network) {
			gap(ctx, net, stoppable(ctx, net), "the proxy is started",
				func(node string) { check.Must(net.OwnNodes().StopProxy(ctx, node)) },
				func(node string) {
					check.Must(net.OwnNodes().StartProxy(ctx, node, candidate.ProxyConfiguration{}))
				})
		})
})

var _ = ginkgo.Describe("an endpoint that was not ready when the proxy ended", func() {
	check.It(spec.ProxyGapFollowed, "receives connections if it is ready when the proxy starts, and one that is ready no longer receives none", check.KeepsTimeline(), check.Long(), check.AloneUnless(spec.OwnNodes),
		func(ctx context.Context, net *check.Network) {
			node := stoppable(ctx, net)
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			net.SetReady(ctx, pods[1], false)
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			paths := func(want check.Want) []check.Case {
				return append(toClusterIP(svc, want, client, check.Host(node.Name)), nodePortsAt(primaryOf(net, node), node.Name, svc, want)...)
			}
			net.Expect(ctx, "one of two endpoints is ready", paths(onlyBy(2, pods[0]))...)
			check.Must(net.OwnNodes().StopProxy(ctx, node.Name))
			net.SetReady(ctx, pods[1], true)
			lists(ctx, net, svc, "both endpoints are ready", pods...)
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
			net.Expect(ctx, "the proxy is started", paths(check.AnsweredByEach(pods...))...)
			check.Must(net.OwnNodes().StopProxy(ctx, node.Name))
			net.SetReady(ctx, pods[0], false)
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
			net.Expect(ctx, "the proxy is started again", paths(onlyBy(2, pods[1]))...)
		})
})

var _ = ginkgo.Describe("a proxy that was cut off from the API server", func() {
	check.It(spec.ProxyGapFollowed, "follows what came, changed and went meanwhile, and what comes then", check.Needs(spec.OwnNodes), check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			gap(ctx, net, net.AddNode(ctx, candidate.ProxyConfiguration{}), "the connection is back",
				func(node string) { check.Must(net.OwnNodes().Interfere(ctx, node, candidate.Disconnect)) },
				func(node string) { check.Must(net.OwnNodes().Interfere(ctx, node, candidate.Reconnect)) })
		})
})

var _ = ginkgo.Describe("a proxy whose watches have expired", func() {
	// The API server knows no change that is older than itself, so it cannot tell the proxy what it missed.
	check.It(spec.ProxyGapFollowed, "follows what came, changed and went, from an API server that was started again", check.Needs(spec.OwnNodes, spec.RestartControlPlane), check.Alone(),
		func(ctx context.Context, net *check.Network) {
			var before string
			gap(ctx, net, net.AddNode(ctx, candidate.ProxyConfiguration{}), "the connection is back, to an API server that was started again",
				func(node string) {
					services, err := net.Client().CoreV1().Services(net.Namespace()).List(ctx, metav1.ListOptions{})
					check.Must(err)
					before = services.ResourceVersion
					check.Must(net.OwnNodes().Interfere(ctx, node, candidate.Disconnect))
				},
				func(node string) {
					net.Restart(ctx)
					check.Record("a watch that begins before the gap", "%s", continued(ctx, net, before))
					check.Must(net.OwnNodes().Interfere(ctx, node, candidate.Reconnect))
				})
		})
})

// continued says what the API server tells a watch that begins at a resource version.
func continued(ctx context.Context, net *check.Network, version string) string {
	ginkgo.GinkgoHelper()
	w, err := net.Client().CoreV1().Services(net.Namespace()).Watch(ctx, metav1.ListOptions{ResourceVersion: version, TimeoutSeconds: new(int64(1))})
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return "has expired"
	}
	check.Must(err)
	defer w.Stop()
	for e := range w.ResultChan() {
		if err := apierrors.FromObject(e.Object); e.Type == watch.Error && (apierrors.IsResourceExpired(err) || apierrors.IsGone(err)) {
			return "has expired"
		}
	}
	return "goes on"
}

var _ = ginkgo.Describe("a proxy whose API server was restarted", func() {
	check.It(spec.ProxyGapFollowed, "serves on meanwhile, and follows what comes, changes and goes then", check.Needs(spec.OwnNodes, spec.RestartControlPlane), check.Alone(),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			inside := []candidate.Client{client, check.Host(node.Name), check.Host(net.Node(2))}
			each, by := check.AnsweredByEach(pods...), check.AnsweredBy(pods...)
			stays, changes, goes := net.Expose(ctx, exposed("stays", selecting("app"))), exposeSelectorless(ctx, net, "changes"), net.Expose(ctx, exposed("goes", selecting("app")))
			slice := net.CreateSlice(ctx, net.Slice(changes, pods...))
			for _, svc := range []*corev1.Service{stays, changes, goes} {
				net.Expect(ctx, "the Services are created", toClusterIP(svc, each, inside...)...)
			}
			unbroken(ctx, net, check.ServiceAddress(stays, exposedPort), by, func() { net.Restart(ctx) }, inside...)
			comes := net.Expose(ctx, exposed("comes", selecting("app")))
			slice.Endpoints = net.Slice(changes, pods[1]).Endpoints
			net.UpdateSlice(ctx, slice)
			net.Unexpose(ctx, goes.Name)
			net.Expect(ctx, "the API server is back", slices.Concat(
				toClusterIP(stays, each, inside...), toClusterIP(comes, each, inside...), toClusterIP(changes, onlyBy(2, pods[1]), inside...),
				once(toClusterIP(goes, check.NotBy(pods...), inside...)))...)
		})
})

// apart are pods, each of which is listed in an EndpointSlice of its own.
type apart struct {
	pods   []candidate.Pod
	slices []*discoveryv1.EndpointSlice
}

func listedApart(ctx context.Context, net *check.Network, svc *corev1.Service, pods []candidate.Pod) apart {
	ginkgo.GinkgoHelper()
	a := apart{pods: pods, slices: make([]*discoveryv1.EndpointSlice, len(pods))}
	for i, pod := range pods {
		a.slices[i] = net.CreateSlice(ctx, net.Slice(svc, pod))
	}
	return a
}
