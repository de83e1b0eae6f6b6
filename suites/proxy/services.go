package proxy

import (
	"context"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// keeping is the finalizer that some checks hold a Service with.
const keeping = "conformance.example.com/keep"

var _ = ginkgo.Describe("a Service", func() {
	check.It(spec.ProxyServiceAdded, "is served once it is created, be its endpoints there before it or come later",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			all := append(clients, hosts(net)...)
			early := exposed("early", withoutSelector())
			early.Namespace = net.Namespace()
			net.CreateSlice(ctx, net.Slice(early, pods[0]))
			first, second, third := net.Expose(ctx, early), exposeSelectorless(ctx, net, "late"), net.Expose(ctx, exposed("app"))
			net.CreateSlice(ctx, net.Slice(second, pods[1]))
			net.Expect(ctx, "Services are created", slices.Concat(
				toClusterIP(first, check.AnsweredBy(pods[0]), all...),
				toClusterIP(second, check.AnsweredBy(pods[1]), all...),
				toClusterIP(third, check.AnsweredBy(pods...), all...))...)
		})

	check.It(spec.ProxyServiceRemoved, "is no longer served by any address once it is deleted",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app", withoutSelector())
			net.CreateSlice(ctx, net.Slice(svc, pods...)) // it stays when the Service goes
			others := append(outsiders(net), clients[2], check.Host(net.Node(1)))
			paths := func(want check.Want) []check.Case {
				return everyAddress(net, svc, addresses, want, slices.Concat(clients, hosts(net)), others)
			}
			net.Expect(ctx, "the Service is created", paths(check.AnsweredBy(pods...))...)
			net.Unexpose(ctx, svc.Name)
			net.Expect(ctx, "the Service is deleted", once(paths(check.NotBy(pods...)))...)
		})

	check.It(spec.ProxyServiceRemoved, "leaves its addresses to the backends of the Service that gets them next",
		func(ctx context.Context, net *check.Network) {
			old, clients := backendsAndClients(ctx, net, "old", net.Node(0), net.Node(1))
			next := net.Backends(ctx, "next", net.Node(0), net.Node(1))
			first, addresses := exposeOutside(ctx, net, "old")
			paths := func(want check.Want) []check.Case {
				return everyAddress(net, first, addresses, want, slices.Concat(clients, hosts(net)), outsiders(net))
			}
			net.Expect(ctx, "the Service is created", paths(check.AnsweredBy(old...))...)
			net.Unexpose(ctx, first.Name)
			second := net.Expose(ctx, exposed("next", check.WithClusterIP(first.Spec.ClusterIP), onExternalIPs(addresses[0]), check.With(func(s *corev1.Service) {
				s.Spec.Type, s.Spec.LoadBalancerClass = first.Spec.Type, first.Spec.LoadBalancerClass
				for i := range s.Spec.Ports {
					s.Spec.Ports[i].NodePort = first.Spec.Ports[i].NodePort
				}
			})))
			if len(addresses) > 1 {
				announce(ctx, net, second, addresses[1])
			}
			net.Expect(ctx, "its address is given to another Service", paths(exactlyBy(4, next...))...)
		})

	check.It(spec.ProxyFinalizerKeepsTraffic, "is served while it is being deleted, until its last finalizer is gone", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0), net.Node(1))
			held := check.With(func(s *corev1.Service) { s.Finalizers = []string{keeping, keeping + "-longer"} })
			svc, addresses := exposeOutside(ctx, net, "app", withoutSelector(), held)
			slice := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
			paths := func(want check.Want) []check.Case {
				return everyAddress(net, svc, addresses, want, slices.Concat(clients, hosts(net)), outsiders(net))
			}
			net.Expect(ctx, "the Service is created", paths(check.AnsweredBy(pods[0]))...)
			net.Unexpose(ctx, svc.Name)
			net.Expect(ctx, "its deletion is asked for, then another Service is created",
				append(paths(check.AnsweredBy(pods[0])), caughtUp(ctx, net, pods[0], clients...)...)...)
			slice.Endpoints = net.Slice(svc, pods...).Endpoints
			net.UpdateSlice(ctx, slice)
			net.Change(ctx, svc.Name, `{"metadata":{"finalizers":["`+keeping+`"]}}`)
			net.Expect(ctx, "it gets another endpoint while one of two finalizers is left", paths(check.AnsweredByEach(pods...))...)
			net.LetGo(ctx, svc.Name)
			net.Expect(ctx, "its last finalizer is removed", once(paths(check.NotBy(pods...)))...)
		})
})
