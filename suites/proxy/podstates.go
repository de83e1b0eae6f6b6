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
	"k8s.io/client-go/util/retry"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// ownBackends starts a backend of its own on each of the nodes: one that no other check gets.
func ownBackends(ctx context.Context, net *check.Network, labels map[string]string, nodes ...string) []candidate.Pod {
	ginkgo.GinkgoHelper()
	pods := make([]candidate.Pod, len(nodes))
	check.Concurrently(len(nodes), func(i int) {
		pods[i] = net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: net.Name("pod")}, Node: nodes[i], Labels: labels})
	})
	for _, p := range pods {
		if len(p.Addresses) == 0 { // the goroutine has failed the check
			check.Abort("a backend did not start")
		}
	}
	return pods
}

// setStatus changes the status of a Pod object, as a kubelet does.
func setStatus(ctx context.Context, net *check.Network, namespace, name string, change func(*corev1.PodStatus)) {
	ginkgo.GinkgoHelper()
	pods := net.Client().CoreV1().Pods(namespace)
	check.Must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		object, err := pods.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		change(&object.Status)
		_, err = pods.UpdateStatus(ctx, object, metav1.UpdateOptions{})
		return err
	}))
}

// ended sets a phase in which the containers of a pod have ended for good. Its address and its Ready condition stay as they were.
func ended(phase corev1.PodPhase) func(*corev1.PodStatus) {
	return func(s *corev1.PodStatus) {
		s.Phase = phase
		if phase == corev1.PodFailed {
			s.Reason = "Evicted"
		}
	}
}

// ending judges a pod that fails and one that succeeds: neither is an endpoint afterwards, nor of a Service that comes later.
func ending(ctx context.Context, net *check.Network, stays bool) {
	ginkgo.GinkgoHelper()
	pods := ownBackends(ctx, net, map[string]string{"app": "app"}, net.Node(0), net.Node(1), net.Node(2))
	clients := clientPods(ctx, net)
	plain := net.Expose(ctx, exposed("plain", selecting("app")))
	services := []*corev1.Service{
		plain, net.Expose(ctx, exposed("published", selecting("app"), publishingNotReady())), net.Expose(ctx, exposed("headless", selecting("app"), check.Headless())),
	}
	list := func(what string, left ...candidate.Pod) {
		ginkgo.GinkgoHelper()
		for _, svc := range services {
			lists(ctx, net, svc, what, left...)
			converge(ctx, net, what+", Endpoints", func(g Gomega) {
				g.Expect(addressesOfObject(ctx, net, svc)).To(ConsistOf(addressesOf(net.PrimaryFamily(), left...)), "addresses of the Endpoints object %s", svc.Name)
			})
		}
	}
	end := func(pod candidate.Pod, phase corev1.PodPhase) {
		ginkgo.GinkgoHelper()
		setStatus(ctx, net, pod.Namespace, pod.Name, func(s *corev1.PodStatus) {
			ended(phase)(s)
			for i := range s.Conditions {
				if s.Conditions[i].Type == corev1.PodReady && !stays {
					s.Conditions[i].Status = corev1.ConditionFalse
				}
			}
		})
	}
	list("the Services are created", pods...)
	end(pods[0], corev1.PodFailed)
	list("a pod is evicted", pods[1:]...)
	end(pods[1], corev1.PodSucceeded)
	list("a pod has done its work", pods[2])
	services = append(services, net.Expose(ctx, exposed("later", selecting("app"))))
	list("a Service is created after pods have ended", pods[2])
	net.Expect(ctx, "two of three pods have ended", clusterIPCalls(plain, onlyBy(3, pods[2]), clients...)...)
}

var _ = ginkgo.Describe("a pod that has ended", func() {
	check.It(spec.ProxyEndedPodNoEndpoint, "is no endpoint, be it published although it is not ready", check.Needs(spec.PodObjects), check.Long(),
		func(ctx context.Context, net *check.Network) { ending(ctx, net, false) })

	check.It(spec.ProxyEndedPodNoEndpoint, "is no endpoint though its Ready condition stays true", check.Needs(spec.PodObjects), check.Long(),
		func(ctx context.Context, net *check.Network) { ending(ctx, net, true) })
})

// oddPods are states of a pod that cannot serve. Of the Service that selects it, two other pods serve.
var oddPods = []struct {
	name string
	// odd changes the Pod object, which else runs, is ready, and has a node and an address of its own.
	odd func(object *corev1.Pod)
	// shares says that it has the address of another pod.
	shares bool
	// mayServe says that it may be an endpoint itself: nobody answers there.
	mayServe bool
}{
	{name: "unscheduled", odd: func(p *corev1.Pod) { p.Spec.NodeName, p.Status = "", corev1.PodStatus{Phase: corev1.PodPending} }},
	{name: "without-address", odd: func(p *corev1.Pod) { p.Status.PodIP, p.Status.PodIPs = "", nil }},
	{name: "unknown", odd: func(p *corev1.Pod) {
		p.Status.Phase, p.Status.Reason, p.Status.Conditions[0].Status = corev1.PodUnknown, "NodeLost", corev1.ConditionUnknown
	}},
	{name: "without-conditions", odd: func(p *corev1.Pod) { p.Status.Conditions = nil }},
	{name: "on-no-node", mayServe: true, odd: func(p *corev1.Pod) { p.Spec.NodeName = "conformance-gone" }},
	{name: "twin", shares: true, odd: func(p *corev1.Pod) { p.Status.Conditions[0].Status = corev1.ConditionFalse }},
	{name: "ended-twin", shares: true, odd: func(p *corev1.Pod) { ended(corev1.PodSucceeded)(&p.Status) }},
}

var _ = ginkgo.Describe("a pod that cannot serve", func() {
	check.It(spec.ProxyOddPodHarmless, "keeps no other pod of its Service from being an endpoint", check.Needs(spec.PodObjects), check.Long(),
		func(ctx context.Context, net *check.Network) {
			labels := map[string]string{}
			for _, o := range oddPods {
				labels[o.name] = "yes"
			}
			pods := ownBackends(ctx, net, labels, net.Node(0), net.Node(1))
			client := net.ClientPod(ctx, net.Node(2))
			nobody := firstAddress(net.PrimaryFamily())
			services := make([]*corev1.Service, len(oddPods))
			check.Concurrently(len(oddPods), func(i int) {
				o := oddPods[i]
				address := nobody.String()
				if o.shares {
					address = addressesOf(net.PrimaryFamily(), pods[0])[0]
				}
				object := readyPodObject(net.Name("odd"), map[string]string{o.name: "yes"}, pods[0].Node, address)
				o.odd(object)
				createPodObject(ctx, net, object)
				ginkgo.DeferCleanup(func(ctx context.Context) { removePodObject(ctx, net, object.Name) })
				services[i] = net.Expose(ctx, exposed(o.name, check.With(func(s *corev1.Service) { s.Spec.Selector = map[string]string{o.name: "yes"} })))
			})
			listed := func(what string) {
				ginkgo.GinkgoHelper()
				var cases []check.Case
				for i, svc := range services {
					if svc == nil { // the goroutine has failed the check
						check.Abort("a Service was not created")
					}
					generated(ctx, net, svc, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
						for _, p := range pods {
							g.Expect(readiness(found, addressesOf(net.PrimaryFamily(), p)[0])).To(ContainElement("true"), "conditions ready of pod %s among the endpoints of Service %s", p.Name, svc.Name)
						}
					})
					if !oddPods[i].shares && !oddPods[i].mayServe { // which of two entries of an address counts is another requirement
						cases = append(cases, clusterIPCalls(svc, exactlyBy(len(pods), pods...), client)...)
					}
				}
				net.Expect(ctx, what, cases...)
			}
			listed(fmt.Sprintf("%d Services have two pods that serve and one that cannot", len(services)))
			pods = append(pods, ownBackends(ctx, net, labels, net.Node(2))...)
			listed("each of the Services gets another pod")
		})
})

// readiness is what each endpoint with the address says of the condition ready.
func readiness(found []discoveryv1.EndpointSlice, address string) []string {
	said := []string{}
	for _, s := range found {
		for _, e := range s.Endpoints {
			if slices.Contains(e.Addresses, address) {
				said = append(said, state(e.Conditions.Ready))
			}
		}
	}
	return said
}
