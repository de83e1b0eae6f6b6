package proxy

import (
	"context"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// byWriters runs f(0) … f(n-1), a few at a time. A slow API server gives up requests, those of other checks too, when
// it has a hundred to answer at once.
func byWriters(n int, f func(i int)) {
	const writers = 6
	check.Concurrently(writers, func(w int) {
		for i := w; i < n; i += writers {
			f(i)
		}
	})
}

var _ = ginkgo.Describe("many Services", func() {
	check.It(spec.ProxyScale, "that all change at a time are followed on every node", check.Long(),
		func(ctx context.Context, net *check.Network) {
			const many = 60
			old, clients := backendsAndClients(ctx, net, "old", net.Node(0), net.Node(1))
			next := net.Backends(ctx, "next", net.Node(1), net.Node(2))
			services, lists := make([]*corev1.Service, many), make([]*discoveryv1.EndpointSlice, many)
			all := func(change func(i int)) {
				byWriters(many, change)
				if lists[many-1] == nil { // the goroutine has failed the check
					check.Abort("a Service was not created")
				}
			}
			everywhere := func(pods []candidate.Pod) []check.Case {
				var cases []check.Case
				for i, svc := range services {
					for k, c := range clients {
						cases = append(cases, check.Case{From: c, To: check.ServiceAddress(svc, exposedPort), Protocol: inTurn(i + k), Want: check.AnsweredBy(pods...), Shots: 1})
					}
				}
				return cases
			}
			all(func(i int) {
				services[i] = exposeSelectorless(ctx, net, net.Name("app"))
				lists[i] = net.CreateSlice(ctx, net.Slice(services[i], old...))
			})
			net.Expect(ctx, "60 Services are created", everywhere(old)...)
			all(func(i int) {
				lists[i].Endpoints = net.Slice(services[i], next...).Endpoints
				lists[i] = net.UpdateSlice(ctx, lists[i])
			})
			net.Expect(ctx, "the endpoints of 60 Services are replaced", everywhere(next)...)
		})
})
