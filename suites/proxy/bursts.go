package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// flips is how often the readiness of each pod changes at once, and rebirths how often a Service is made anew under its name.
const flips, rebirths = 9, 6

// agree demands that EndpointSlices and Endpoints object of the Service say of each pod what it is.
func agree(ctx context.Context, net *check.Network, svc *corev1.Service, what string, ready map[string]bool) {
	ginkgo.GinkgoHelper()
	var want []string
	for address, yes := range ready {
		want = append(want, fmt.Sprintf("%s ready %v", address, yes))
	}
	converge(ctx, net, what, func(g Gomega) {
		var slicesSay, objectSays []string
		for _, s := range slicesNaming(ctx, net, svc) {
			for _, e := range s.Endpoints {
				slicesSay = append(slicesSay, e.Addresses[0]+" ready "+state(e.Conditions.Ready))
			}
		}
		yes, no := objectAddresses(endpointsObject(ctx, net, svc))
		for _, a := range yes {
			objectSays = append(objectSays, a+" ready true")
		}
		for _, a := range no {
			objectSays = append(objectSays, a+" ready false")
		}
		g.Expect(slicesSay).To(ConsistOf(want), "endpoints in EndpointSlices of Service %s", svc.Name)
		g.Expect(objectSays).To(ConsistOf(want), "addresses in the Endpoints object of Service %s", svc.Name)
	})
}

var _ = ginkgo.Describe("the endpoints of a Service", func() {
	check.It(spec.ProxyEndpointsSettle, "are those of its pods once readiness has gone to and fro quickly", check.Long(),
		func(ctx context.Context, net *check.Network) {
			pods := ownBackends(ctx, net, map[string]string{"app": "app"}, net.Node(0), net.Node(1), net.Node(2), net.Node(0))
			client := net.ClientPod(ctx, net.Node(0))
			svc := net.Expose(ctx, exposed("app"))
			ready := map[string]bool{}
			for _, a := range addressesOf(net.PrimaryFamily(), pods...) {
				ready[a] = true
			}
			agree(ctx, net, svc, "the Service is created", ready)
			for round := range 3 { // of the pods it is others that are ready in the end
				check.Concurrently(len(pods), func(i int) {
					for k := range flips + (i+round)%2 {
						net.SetReady(ctx, pods[i], k%2 != 0)
					}
				})
				var serving []candidate.Pod
				for i, p := range pods {
					yes := (flips+(i+round)%2)%2 == 0
					ready[addressesOf(net.PrimaryFamily(), p)[0]] = yes
					if yes {
						serving = append(serving, p)
					}
				}
				what := fmt.Sprintf("readiness of %d pods has changed %d times", len(pods), flips)
				agree(ctx, net, svc, what, ready)
				net.Expect(ctx, what, clusterIPCalls(svc, exactlyBy(len(pods), serving...), client)...)
			}
		})

	check.It(spec.ProxyEndpointsSettle, "are those of its pods when it was deleted and made again under its name, again and again", check.Long(),
		func(ctx context.Context, net *check.Network) {
			app, other := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.Backends(ctx, "other", net.Node(2))
			client := net.ClientPod(ctx, net.Node(0))
			var svc *corev1.Service
			for i := range rebirths {
				if svc != nil {
					net.Unexpose(ctx, svc.Name)
				}
				svc = net.Expose(ctx, exposed("reborn", selecting([]string{"other", "app"}[i%2])))
			}
			ready := map[string]bool{}
			for _, a := range addressesOf(net.PrimaryFamily(), app...) {
				ready[a] = true
			}
			what := fmt.Sprintf("a Service was made %d times under one name", rebirths)
			agree(ctx, net, svc, what, ready)
			converge(ctx, net, what+", its owners", func(g Gomega) {
				for _, s := range slicesNaming(ctx, net, svc) {
					if len(s.Endpoints) > 0 {
						g.Expect(slices.ContainsFunc(s.OwnerReferences, func(o metav1.OwnerReference) bool { return o.UID == svc.UID })).To(BeTrue(), "EndpointSlice %s belongs to the Service that there is", s.Name)
					}
				}
			})
			net.Expect(ctx, what, clusterIPCalls(svc, exactlyBy(len(app)+len(other), app...), client)...)
		})

	check.It(spec.ProxyEndpointsSettle, "are those of its pods when these and Services have changed while no controller ran", check.Needs(spec.RestartControllers), check.Alone(), // controllers that start look at everything, whatever another check waits for
		func(ctx context.Context, net *check.Network) {
			own := func(node int) candidate.Pod {
				return ownBackends(ctx, net, map[string]string{"app": "app"}, net.Node(node))[0]
			}
			stays, goes, turns := own(0), own(1), own(2)
			client := net.ClientPod(ctx, net.Node(0))
			primary := func(p candidate.Pod) string { return addressesOf(net.PrimaryFamily(), p)[0] }
			svc := net.Expose(ctx, exposed("app"))
			agree(ctx, net, svc, "the Service is created", map[string]bool{primary(stays): true, primary(goes): true, primary(turns): true})
			var comes candidate.Pod
			var late *corev1.Service
			net.WithoutControllers(ctx, func() {
				net.Remove(ctx, goes)
				net.SetReady(ctx, turns, false)
				comes = own(1)
				late = net.Expose(ctx, exposed("late", selecting("app")))
			})
			const what = "pods came, went and changed while no controller ran"
			for _, s := range []*corev1.Service{svc, late} {
				agree(ctx, net, s, what, map[string]bool{primary(stays): true, primary(comes): true, primary(turns): false})
			}
			net.Expect(ctx, what, append(clusterIPCalls(svc, exactlyBy(4, stays, comes), client), clusterIPCalls(late, exactlyBy(4, stays, comes), client)...)...)
		})

	check.It(spec.ProxySlicesRestored, "come back in EndpointSlices that somebody has changed or deleted", func(ctx context.Context, net *check.Network) {
		pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
		client := net.ClientPod(ctx, net.Node(2))
		svc := net.Expose(ctx, exposed("app"))
		lists(ctx, net, svc, "the Service is created", pods...)
		whole := func(what string) {
			ginkgo.GinkgoHelper()
			lists(ctx, net, svc, what, pods...)
			net.Expect(ctx, what, clusterIPCalls(svc, check.AnsweredByEach(pods...), client)...)
		}
		edit := func(what string, change func(s *discoveryv1.EndpointSlice)) {
			ginkgo.GinkgoHelper()
			slice := slicesNaming(ctx, net, svc)[0]
			change(&slice)
			net.UpdateSlice(ctx, &slice)
			whole(what)
		}
		edit("somebody takes an endpoint out of a generated EndpointSlice", func(s *discoveryv1.EndpointSlice) { s.Endpoints = s.Endpoints[:1] })
		edit("somebody makes an endpoint of a generated EndpointSlice not ready", func(s *discoveryv1.EndpointSlice) { s.Endpoints[0].Conditions.Ready = new(false) })
		slice := slicesNaming(ctx, net, svc)[0]
		net.DeleteSlice(ctx, &slice)
		whole("somebody deletes a generated EndpointSlice")
	})
})
