package proxy

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

var _ = ginkgo.Describe("an endpoint that was terminating", func() {
	check.It(spec.ProxyEndpointComesBack, "receives connections when it is ready again, at every address", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app", withoutSelector())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods...))
			paths := func(want check.Want) []check.Case {
				return everyAddress(net, svc, addresses, want, append(clients, check.Host(net.Node(2))), outsiders(net))
			}
			terminate := func(yes bool) {
				ginkgo.GinkgoHelper()
				no := !yes
				slice.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: &no, Serving: new(true), Terminating: &yes}
				slice = net.UpdateSlice(ctx, slice)
			}
			net.Expect(ctx, "the Service is created", paths(check.AnsweredByEach(pods...))...)
			for range 2 { // the second time the proxy has seen it before
				terminate(true)
				net.Expect(ctx, "one of two endpoints begins to terminate", paths(onlyBy(2, pods[1]))...)
				terminate(false)
				net.Expect(ctx, "it is ready again at the same address", paths(check.AnsweredByEach(pods...))...)
			}
		})
})

// twins is how many Services list an endpoint twice. A proxy that takes one of the two by chance is wrong on one of three nodes with a probability of
// error below check.FalseAlarm.
const twins = 10

var _ = ginkgo.Describe("an endpoint in two slices", func() {
	check.It(spec.ProxyEndpointReadyInOneSlice, "receives connections if it is ready in either",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			var cases []check.Case
			for i := range twins {
				name := fmt.Sprintf("twins-%d", i)
				svc := exposeSelectorless(ctx, net, name)
				ready, unready := net.Slice(svc, pods...), net.Slice(svc, pods[0])
				unready.Endpoints[0].Conditions = discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false)}
				ready.Name, unready.Name = name+"-a", name+"-b"
				order := []*discoveryv1.EndpointSlice{ready, unready}
				if i%2 == 1 { // by name and by time
					ready.Name, unready.Name = unready.Name, ready.Name
					order = []*discoveryv1.EndpointSlice{unready, ready}
				}
				for _, slice := range order {
					net.CreateSlice(ctx, slice)
				}
				cases = append(cases, clusterIPCalls(svc, check.AnsweredByEach(pods...), clients...)...)
			}
			net.Expect(ctx, "EndpointSlices list an address as ready and as not ready", append(cases, caughtUp(ctx, net, pods[1], clients...)...)...)
		})
})
