package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("a proxy that did not run for a while", func() {
	check.It(spec.ProxyGapFollowed, "follows what came, changed and went meanwhile", check.KeepsTimeline(), check.Long(),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
			inside := []candidate.Client{client, check.Host(node.Name)}
			// Five slices of one endpoint each: a proxy that reads only some of them, or takes what it reads last for all, shows.
			many := exposeSelectorless(ctx, net, "many")
			manySlices := listedApart(ctx, net, many, append(pods, net.Backends(ctx, "more", net.Node(0), net.Node(1), net.Node(2))...))
			shrinks, ends := exposeSelectorless(ctx, net, "shrinks", onNodePorts()), exposeSelectorless(ctx, net, "ends")
			slice := net.CreateSlice(ctx, net.Slice(shrinks, pods...))
			net.CreateSlice(ctx, net.Slice(ends, pods...)) // it stays when the Service goes
			nodePorts := func(want check.Want) []check.Case { return nodePortsAt(primaryOf(net, node), node.Name, shrinks, want) }
			each := check.AnsweredByEach(pods...)
			net.Expect(ctx, "the Services are created", slices.Concat(
				toClusterIP(many, check.AnsweredByEach(manySlices.pods...), inside...),
				toClusterIP(shrinks, each, inside...), nodePorts(each), toClusterIP(ends, each, inside...))...)

			check.Must(net.OwnNodes().StopProxy(ctx, node.Name))
			comes := exposeSelectorless(ctx, net, "comes") // before the other one goes, whose address it would be given by a server that takes the first free one
			net.CreateSlice(ctx, net.Slice(comes, pods...))
			slice.Endpoints = net.Slice(shrinks, pods[1]).Endpoints
			net.UpdateSlice(ctx, slice)
			net.Unexpose(ctx, ends.Name)
			net.DeleteSlice(ctx, manySlices.slices[0])
			check.Must(net.OwnNodes().StartProxy(ctx, node.Name, candidate.ProxyConfiguration{}))
			net.Expect(ctx, "the proxy is started", slices.Concat(
				toClusterIP(comes, each, inside...),
				toClusterIP(shrinks, onlyBy(2, pods[1]), inside...), nodePorts(onlyBy(2, pods[1])),
				once(toClusterIP(ends, check.NotBy(pods...), inside...)),
				toClusterIP(many, exactlyBy(len(manySlices.pods), manySlices.pods[1:]...), inside...))...)
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
