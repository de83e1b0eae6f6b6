package proxy

import (
	"context"
	"fmt"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// labelled starts a pod with labels.
func labelled(ctx context.Context, net *check.Network, labels map[string]string) candidate.Pod {
	ginkgo.GinkgoHelper()
	return net.Start(ctx, candidate.Pod{Node: net.Node(0), Labels: labels})
}

// relabel changes labels of a Pod by a JSON merge patch.
func relabel(ctx context.Context, net *check.Network, pod candidate.Pod, labels string) {
	ginkgo.GinkgoHelper()
	patch := fmt.Sprintf(`{"metadata":{"labels":%s}}`, labels)
	check.Must(candidate.Patch(ctx, net.Client().CoreV1().Pods(pod.Namespace), pod.Name, types.MergePatchType, patch))
}

// undisturbed is a control. It returns when a Service that is created now lists the pod. So the controllers have had
// their time for an earlier Service.
func undisturbed(ctx context.Context, net *check.Network, app string, pods ...candidate.Pod) {
	ginkgo.GinkgoHelper()
	later := net.Expose(ctx, exposed(net.Name("later"), selecting(app)))
	lists(ctx, net, later, "a later Service is created", pods...)
}

// slicesByOthers are those of the Service but for mirrored ones.
func slicesByOthers(ctx context.Context, net *check.Network, svc *corev1.Service) []discoveryv1.EndpointSlice {
	ginkgo.GinkgoHelper()
	return slices.DeleteFunc(slicesNaming(ctx, net, svc), func(s discoveryv1.EndpointSlice) bool {
		return s.Labels[discoveryv1.LabelManagedBy] == "endpointslicemirroring-controller.k8s.io"
	})
}

var _ = ginkgo.Describe("the selector of a Service", func() {
	check.It(spec.ProxySelectorAllLabels, "selects the pods of its namespace that have every label", func(ctx context.Context, net *check.Network) {
		labels := []map[string]string{
			{"app": "shop", "tier": "front"}, {"app": "shop", "tier": "front", "more": "yes"},
			{"app": "shop"}, {"tier": "front"}, {"app": "shop", "tier": "back"}, nil,
		}
		pods := make([]candidate.Pod, len(labels))
		var client candidate.Client
		starts := []func(){
			func() { client = net.ClientPod(ctx, net.Node(0)) },
			func() {
				net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Namespace: net.NewNamespace(ctx)}, Node: net.Node(0), Labels: labels[0]})
			},
		}
		for i := range labels {
			starts = append(starts, func() { pods[i] = labelled(ctx, net, labels[i]) })
		}
		check.Concurrently(len(starts), func(i int) { starts[i]() })
		both := pods[:2:2]
		svc := net.Expose(ctx, exposed("shop", check.With(func(s *corev1.Service) { s.Spec.Selector = map[string]string{"app": "shop", "tier": "front"} })))
		lists(ctx, net, svc, "the Service is created", both...)
		// The last pod shows that the controllers have seen those before it.
		both = append(both, labelled(ctx, net, map[string]string{"app": "shop", "tier": "front"}))
		lists(ctx, net, svc, "a pod with all labels is started", both...)
		net.Expect(ctx, "a pod with all labels is started",
			check.Case{From: client, To: check.ServiceAddress(svc, exposedPort), Want: check.AnsweredByEach(both...)})
	})

	check.It(spec.ProxySelectorAllLabels, "follows labels that change", func(ctx context.Context, net *check.Network) {
		pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
		svc := net.Expose(ctx, exposed("app"))
		lists(ctx, net, svc, "the Service is created", pods...)
		relabel(ctx, net, pods[0], `{"app":"other"}`)
		lists(ctx, net, svc, "a label of a pod gets another value", pods[1])
		relabel(ctx, net, pods[1], `{"app":null}`)
		lists(ctx, net, svc, "a label of a pod is removed")
		relabel(ctx, net, pods[0], `{"app":"app"}`)
		lists(ctx, net, svc, "a pod gets the label", pods[0])
	})

	check.It(spec.ProxySelectorAllLabels, "may change", func(ctx context.Context, net *check.Network) {
		a, b := net.Backends(ctx, "a", net.Node(0))[0], net.Backends(ctx, "b", net.Node(1))[0]
		svc := net.Expose(ctx, exposed("a"))
		lists(ctx, net, svc, "the Service is created", a)
		net.Change(ctx, svc.Name, `{"spec":{"selector":{"app":"b"}}}`)
		lists(ctx, net, svc, "the selector changes", b)
	})

	check.It(spec.ProxySelectorAdded, "brings exactly the pods that it selects, after an Endpoints object by hand, after another selector, and after none", check.Long(),
		func(ctx context.Context, net *check.Network) {
			byHand, first, second := net.Backends(ctx, "by-hand", net.Node(0))[0], net.Backends(ctx, "first", net.Node(1))[0], net.Backends(ctx, "second", net.Node(2))[0]
			all := []candidate.Pod{byHand, first, second}
			clients := clientPods(ctx, net)
			svc := net.Expose(ctx, exposed("app", withoutSelector()))
			object := endpointsOf(ctx, net, svc, byHand)
			selects := func(what, app string, pods ...candidate.Pod) {
				ginkgo.GinkgoHelper()
				if app != "" {
					net.Change(ctx, svc.Name, `{"spec":{"selector":{"app":"`+app+`"}}}`)
				}
				lists(ctx, net, svc, what, pods...)
				net.Expect(ctx, what, clusterIPCalls(svc, onlyBy(len(all), pods...), clients...)...)
			}
			selects("an Endpoints object is made by hand", "", byHand)
			selects("a Service with an Endpoints object by hand gets a selector", "first", first)
			converge(ctx, net, "the Endpoints object", func(g Gomega) {
				g.Expect(addressesOfObject(ctx, net, svc)).To(ConsistOf(addressesOf(net.PrimaryFamily(), first)), "addresses of the Endpoints object %s", object.Name)
			})
			selects("the selector changes", "second", second)
			net.Change(ctx, svc.Name, `{"spec":{"selector":null}}`)
			undisturbed(ctx, net, "first", first) // the controllers have seen the Service without a selector
			selects("the selector comes back as another one", "first", first)
			net.Remove(ctx, first)
			first = net.Backends(ctx, "first", net.Node(0))[0]
			selects("its pod is replaced", "", first)
		})

	check.It(spec.ProxySelectorAdded, "brings exactly the pods that it selects to a Service that was an alias for a time", check.Long(),
		func(ctx context.Context, net *check.Network) {
			old := net.Backends(ctx, "app", net.Node(0))[0]
			client := net.ClientPod(ctx, net.Node(1))
			svc := net.Expose(ctx, exposed("app"))
			lists(ctx, net, svc, "the Service is created", old)
			net.Change(ctx, svc.Name, `{"spec":{"type":"ExternalName","externalName":"`+externalHost+`","selector":null,"clusterIP":null,"clusterIPs":null}}`)
			undisturbed(ctx, net, "app", old)
			net.Remove(ctx, old)
			young := net.Backends(ctx, "app", net.Node(2))[0]
			net.Change(ctx, svc.Name, `{"spec":{"type":"ClusterIP","externalName":null,"selector":{"app":"app"}}}`)
			lists(ctx, net, svc, "a Service that was an alias has a selector again", young)
			now := net.Get(ctx, svc.Name)
			Expect(now).To(check.BeAccepted())
			net.Expect(ctx, "a Service that was an alias has a selector again", clusterIPCalls(now.Service, onlyBy(2, young), client)...)
		})

	check.It(spec.ProxyExternalNameNoEndpoints, "is ignored for an alias", func(ctx context.Context, net *check.Network) {
		pod := net.Backends(ctx, "app", net.Node(0))[0]
		alias := net.Expose(ctx, check.Service("alias", check.ExternalName("example.com"), selecting("app")))
		ported := net.Expose(ctx, exposed("ported", check.ExternalName("example.com"), selecting("app"),
			check.WithPorts(check.Port("tcp", corev1.ProtocolTCP, exposedPort, check.BackendPort))))
		undisturbed(ctx, net, "app", pod)
		for _, svc := range []*corev1.Service{alias, ported} {
			Expect(addressesIn(slicesNaming(ctx, net, svc))).To(BeEmpty(), "endpoints of Service %s", svc.Name)
			Expect(slicesNaming(ctx, net, svc)).To(BeEmpty(), "EndpointSlices of Service %s", svc.Name)
			hasNoEndpointsObject(ctx, net, svc)
		}
	})
})

var _ = ginkgo.Describe("the endpoints of a Service without a selector", func() {
	check.It(spec.ProxySelectorlessUntouched, "are left to others", func(ctx context.Context, net *check.Network) {
		pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
		svc := net.Expose(ctx, exposed("byhand", withoutSelector()))
		none := net.Expose(ctx, exposed("none", withoutSelector()))
		unmanaged := net.CreateSlice(ctx, net.Slice(svc, pods[0]))
		managed := net.Slice(svc, pods[0])
		managed.Labels[discoveryv1.LabelManagedBy] = "somebody.example.com"
		managed = net.CreateSlice(ctx, managed)
		// Whatever wakes the controllers: the Service and the pod change.
		net.Change(ctx, svc.Name, `{"metadata":{"labels":{"changed":"yes"}}}`)
		net.SetReady(ctx, pods[0], false)
		net.SetReady(ctx, pods[0], true)
		undisturbed(ctx, net, "app", pods...)
		found := map[string]string{}
		for _, s := range slicesNaming(ctx, net, svc) {
			found[s.Name] = s.ResourceVersion
		}
		Expect(found).To(Equal(map[string]string{unmanaged.Name: unmanaged.ResourceVersion, managed.Name: managed.ResourceVersion}),
			"the EndpointSlices of the Service, with their resource versions")
		Expect(slicesNaming(ctx, net, none)).To(BeEmpty(), "EndpointSlices of a Service for which nobody has made any")
		hasNoEndpointsObject(ctx, net, svc)
	})

	check.It(spec.ProxySelectorlessUntouched, "stay what others make of them when the selector is gone", func(ctx context.Context, net *check.Network) {
		pods := net.Backends(ctx, "app", net.Node(0))
		svc := net.Expose(ctx, exposed("app"))
		lists(ctx, net, svc, "the Service is created", pods...)
		net.Change(ctx, svc.Name, `{"spec":{"selector":null}}`)
		later := net.Backends(ctx, "app", net.Node(1))[0]
		undisturbed(ctx, net, "app", pods[0], later) // the controllers have seen the Service without a selector
		Expect(addressesIn(slicesNaming(ctx, net, svc))).NotTo(ContainElement(addressesOf(net.PrimaryFamily(), later)[0]), "endpoints of a Service whose selector was taken away before the pod came")
		for _, s := range slicesNaming(ctx, net, svc) { // as the external process does that manages them now
			net.DeleteSlice(ctx, &s)
		}
		slice := net.CreateSlice(ctx, net.Slice(svc, later))
		net.SetReady(ctx, pods[0], false)
		undisturbed(ctx, net, "app", pods[0], later)
		Expect(addressesIn(slicesByOthers(ctx, net, svc))).To(ConsistOf(addressesOf(net.PrimaryFamily(), later)), "endpoints in the slices that are not mirrored; one was made by hand: %s", slice.Name)
	})
})
