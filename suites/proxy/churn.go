package proxy

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// unbroken demands that the demand holds for every single connection that the clients make to the address while something changes. What is new
// there must be settled before.
func unbroken(ctx context.Context, net *check.Network, to netip.AddrPort, want check.Want, change func(), clients ...candidate.Client) {
	ginkgo.GinkgoHelper()
	var cases []check.Case
	for _, c := range clients {
		cases = append(cases, check.Case{From: c, To: to, Want: want})
	}
	everyShot(ctx, net, change, cases...)
}

// everyShot demands that every single shot of the cases is as they want while something changes: each client sends one after the other. Of a case with a
// connection each shot is a request on it.
func everyShot(ctx context.Context, net *check.Network, change func(), cases ...check.Case) {
	ginkgo.GinkgoHelper()
	eachShot(ctx, net, change, net.WithinClaims(cases...)...)
}

// eachShot is everyShot of cases that can all be judged.
func eachShot(ctx context.Context, net *check.Network, change func(), cases ...check.Case) {
	ginkgo.GinkgoHelper()
	if len(cases) == 0 {
		change()
		return
	}
	c, what := cases[0], "connections"
	if c.Connection != "" {
		what = "requests on one connection"
	}
	outcomes := net.During(ctx, candidate.Probe{From: c.From, To: c.To, Protocol: c.Protocol, Path: c.Path, SourcePort: c.SourcePort, Connection: c.Connection}, func() {
		ginkgo.GinkgoHelper()
		eachShot(ctx, net, change, cases[1:]...)
	})
	failed := map[string]int{}
	for _, o := range outcomes {
		if !c.Want.Met([]candidate.Outcome{o}) {
			failed[fmt.Sprintf("%s %s", o.Result, o.Pod.Name)]++
		}
	}
	check.Record(fmt.Sprintf("%s of the %s to %s", what, c.From, c.To), "%d, of these otherwise than demanded: %v", len(outcomes), failed)
	if len(failed) > 0 {
		net.PodsLive(ctx)
		net.Diagnose(ctx, c.To)
	}
	Expect(failed).To(BeEmpty(), "%s of the %s to %s, out of %d, that were not %s", what, c.From, c.To, len(outcomes), c.Want.Text)
}

var _ = ginkgo.Describe("while backends change", func() {
	check.It(spec.ProxyBackendChangeTransparent, "clients go on using the address, and afterwards meet current backends only", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2), net.Node(0))
			svc := exposeSelectorless(ctx, net, "app")
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[:2]...))
			callers := append(clients, check.Host(net.Node(1)))
			net.Expect(ctx, "the Service is created", clusterIPCalls(svc, check.AnsweredByEach(pods[:2]...), callers...)...)
			settled(ctx, net, pods[0], check.Host(net.Node(0)), check.Host(net.Node(1)), check.Host(net.Node(2)))
			// The pods that leave go on answering. A connection that one of them answers late is not lost, and need not
			// be elsewhere yet.
			unbroken(ctx, net, check.ServiceAddress(svc, exposedPort), check.AnsweredBy(pods...), func() {
				for last := 2; last < len(pods); last++ { // one comes and one goes, as in a rolling update
					slice.Endpoints = net.Slice(svc, pods[last-1:last+1]...).Endpoints
					slice = net.UpdateSlice(ctx, slice)
					net.Expect(ctx, "a backend is replaced", clusterIPCalls(svc, exactlyBy(4, pods[last-1:last+1]...), callers...)...)
				}
			}, clients[0], clients[2])
		})

	check.It(spec.ProxyBackendChangeTransparent, "connections to a backend that stays are kept", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			svc := exposeSelectorless(ctx, net, "app", onNodePorts())
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			kept := []check.Case{{From: check.Outside(net.Node(2)), To: onNode(net, 2, svc), Connection: "kept", Want: check.AnsweredBy(pods[0])}}
			for _, c := range []candidate.Client{clients[0], clients[1], check.Host(net.Node(2))} {
				kept = append(kept, check.Case{From: c, To: check.ServiceAddress(svc, exposedPort), Connection: "kept", Want: check.AnsweredBy(pods[0])})
			}
			net.Expect(ctx, "the Service is created", kept...)
			for _, listed := range [][]candidate.Pod{pods, {pods[1], pods[0]}, {pods[0]}} {
				slice.Endpoints = net.Slice(svc, listed...).Endpoints
				slice = net.UpdateSlice(ctx, slice)
				fresh := clusterIPCalls(svc, exactlyBy(3, listed...), clients[0], check.Host(net.Node(2)), clients[2])
				net.Expect(ctx, fmt.Sprintf("the Service has %d endpoints", len(listed)), append(fresh, kept...)...)
			}
		})

	check.It(spec.ProxyClusterIPOutlivesBackends, "the address works after every backend was replaced", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			old, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			callers := append(clients, check.Host(net.Node(2)))
			remembered := check.ServiceAddress(svc, exposedPort)
			net.Expect(ctx, "the Service is created", eachWay(remembered, check.AnsweredBy(old...), callers...)...)
			check.Concurrently(len(old), func(i int) { net.Remove(ctx, old[i]) })
			net.Expect(ctx, "all backends are gone", once(eachWay(remembered, check.Unanswered(), callers...))...)
			pods := net.Backends(ctx, "app", net.Node(1), net.Node(2))
			net.Expect(ctx, "others have come", clusterIPCalls(svc, check.AnsweredByEach(pods...), callers...)...)
		})
})
