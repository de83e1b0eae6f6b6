package proxy

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// converge demands that the controllers follow a change, which what names, within the bound for changes of the data plane.
func converge(ctx context.Context, net *check.Network, what string, demand func(g Gomega)) {
	ginkgo.GinkgoHelper()
	net.Converge(ctx, what, check.ConvergenceBound, demand)
}

// generated demands something of the EndpointSlices that name the Service.
func generated(ctx context.Context, net *check.Network, svc *corev1.Service, what string, demand func(g Gomega, found []discoveryv1.EndpointSlice)) {
	ginkgo.GinkgoHelper()
	converge(ctx, net, what, func(g Gomega) { demand(g, slicesNaming(ctx, net, svc)) })
}

// slicesNaming are the EndpointSlices that name the Service by their label.
func slicesNaming(ctx context.Context, net *check.Network, svc *corev1.Service) []discoveryv1.EndpointSlice {
	ginkgo.GinkgoHelper()
	named := metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=" + svc.Name}
	list, err := net.Client().DiscoveryV1().EndpointSlices(svc.Namespace).List(ctx, named)
	check.Must(err)
	return list.Items
}

// lists demands that the EndpointSlices that name the Service list the pods, in the primary family, and nothing else.
func lists(ctx context.Context, net *check.Network, svc *corev1.Service, what string, pods ...candidate.Pod) {
	ginkgo.GinkgoHelper()
	generated(ctx, net, svc, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
		g.Expect(addressesIn(found)).To(ConsistOf(addressesOf(net.PrimaryFamily(), pods...)), "endpoints of Service %s", svc.Name)
	})
}

// addressesIn are the addresses of all endpoints.
func addressesIn(found []discoveryv1.EndpointSlice) []string {
	addresses := []string{}
	for _, s := range found {
		for _, e := range s.Endpoints {
			addresses = append(addresses, e.Addresses...)
		}
	}
	return addresses
}

// addressesOf are the addresses of pods in a family.
func addressesOf(family corev1.IPFamily, pods ...candidate.Pod) []string {
	addresses := []string{}
	for _, p := range pods {
		addresses = append(addresses, check.AddressOf(p.Addresses, family).String())
	}
	return addresses
}

// differences says what is missing and what is too much, with some examples; empty if nothing is. It is for long lists, which ConsistOf takes long
// to compare and to print.
func differences(got, want []string) string {
	count := map[string]int{}
	for _, w := range want {
		count[w]++
	}
	for _, g := range got {
		count[g]--
	}
	var missing, extra []string
	for text, n := range count {
		switch {
		case n > 0:
			missing = append(missing, text)
		case n < 0:
			extra = append(extra, text)
		}
	}
	if len(missing)+len(extra) == 0 {
		return ""
	}
	slices.Sort(missing)
	slices.Sort(extra)
	const some = 5
	return fmt.Sprintf("%d missing, such as %v; %d too many, such as %v",
		len(missing), missing[:min(some, len(missing))], len(extra), extra[:min(some, len(extra))])
}

// endpointOf is the endpoint that a pod is, and the slice that it stands in; nil if it is none.
func endpointOf(found []discoveryv1.EndpointSlice, pod candidate.Pod) (*discoveryv1.Endpoint, *discoveryv1.EndpointSlice) {
	for i := range found {
		for k := range found[i].Endpoints {
			e := &found[i].Endpoints[k]
			if slices.ContainsFunc(pod.Addresses, func(a netip.Addr) bool { return slices.Contains(e.Addresses, a.String()) }) {
				return e, &found[i]
			}
		}
	}
	return nil, nil
}

// state tells a condition from one that is not given.
func state(condition *bool) string {
	if condition == nil {
		return "not given"
	}
	return fmt.Sprint(*condition)
}

// conditionsOf are the conditions of the endpoint that a pod is.
func conditionsOf(found []discoveryv1.EndpointSlice, pod candidate.Pod) string {
	e, _ := endpointOf(found, pod)
	if e == nil {
		return "no endpoint"
	}
	return fmt.Sprintf("ready %s, serving %s, terminating %s", state(e.Conditions.Ready), state(e.Conditions.Serving), state(e.Conditions.Terminating))
}

// portsOf are the ports of the slices that list endpoints: "http 8080/TCP".
func portsOf(found []discoveryv1.EndpointSlice) []string {
	ports := []string{}
	for _, s := range found {
		if len(s.Endpoints) == 0 {
			continue
		}
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%s %d/%s", ptr.Deref(p.Name, ""), ptr.Deref(p.Port, 0), ptr.Deref(p.Protocol, corev1.ProtocolTCP)))
		}
	}
	return ports
}

var _ = ginkgo.Describe("the ports of generated EndpointSlices", func() {
	check.It(spec.ProxySlicePortNames, "carry the names of the Service ports", func(ctx context.Context, net *check.Network) {
		net.Backends(ctx, "app", net.Node(0))
		several := net.Expose(ctx, check.Service("several", selecting("app"), check.WithPorts(
			check.Port("web", corev1.ProtocolTCP, 80, check.BackendPort), check.Port("metrics", corev1.ProtocolTCP, 90, 9090),
			check.Port("names", corev1.ProtocolUDP, 53, check.BackendPort))))
		single := check.Port("single", corev1.ProtocolTCP, 80, 0)
		single.TargetPort = intstr.FromString("tcp") // another name than that of the Service port
		one := net.Expose(ctx, check.Service("one", selecting("app"), check.WithPorts(single)))
		nameless := net.Expose(ctx, check.Service("nameless", selecting("app"), check.WithPorts(check.Port("", corev1.ProtocolTCP, 80, check.BackendPort))))
		for _, c := range []struct {
			svc   *corev1.Service
			ports []string
		}{
			{several, []string{"web 8080/TCP", "metrics 9090/TCP", "names 8080/UDP"}}, {one, []string{"single 8080/TCP"}}, {nameless, []string{" 8080/TCP"}},
		} {
			generated(ctx, net, c.svc, "a Service is created", func(g Gomega, found []discoveryv1.EndpointSlice) {
				g.Expect(portsOf(found)).To(ConsistOf(c.ports), "ports of Service %s", c.svc.Name)
			})
		}
		net.Change(ctx, "one", `{"spec":{"ports":[{"name":"renamed","port":80,"targetPort":"tcp"}]}}`)
		generated(ctx, net, one, "a port is renamed", func(g Gomega, found []discoveryv1.EndpointSlice) {
			g.Expect(portsOf(found)).To(ConsistOf("renamed 8080/TCP"))
		})
	})

	check.It(spec.ProxySliceAppProtocol, "carry the appProtocol of the Service ports", func(ctx context.Context, net *check.Network) {
		net.Backends(ctx, "app", net.Node(0))
		custom, plain := check.Port("custom", corev1.ProtocolTCP, 80, check.BackendPort), check.Port("plain", corev1.ProtocolTCP, 81, check.BackendPort)
		custom.AppProtocol = new("example.com/custom")
		svc := net.Expose(ctx, check.Service("app", check.WithPorts(custom, plain)))
		protocols := func(found []discoveryv1.EndpointSlice) map[string]string {
			all := map[string]string{}
			for _, s := range found {
				for _, p := range s.Ports {
					all[ptr.Deref(p.Name, "")] = ptr.Deref(p.AppProtocol, "none")
				}
			}
			return all
		}
		generated(ctx, net, svc, "a Service is created", func(g Gomega, found []discoveryv1.EndpointSlice) {
			g.Expect(protocols(found)).To(Equal(map[string]string{"custom": "example.com/custom", "plain": "none"}))
		})
		net.Change(ctx, svc.Name, `{"spec":{"ports":[{"name":"custom","port":80,"targetPort":8080,"appProtocol":"kubernetes.io/h2c"},
			{"name":"plain","port":81,"targetPort":8080}]}}`)
		generated(ctx, net, svc, "the appProtocol changes", func(g Gomega, found []discoveryv1.EndpointSlice) {
			g.Expect(protocols(found)).To(Equal(map[string]string{"custom": "kubernetes.io/h2c", "plain": "none"}))
		})
	})

	check.It(spec.ProxyTargetPortName, "have the number that each pod gives the name", func(ctx context.Context, net *check.Network) {
		pods := make([]candidate.Pod, 2)
		for i, number := range []int{check.BackendPort, 9090} {
			pods[i] = net.Start(ctx, candidate.Pod{
				Node: net.Node(i), Labels: map[string]string{"app": "app"}, Ports: []candidate.PodPort{{Name: "web", Protocol: corev1.ProtocolTCP, Number: number}},
			})
		}
		port := check.Port("http", corev1.ProtocolTCP, exposedPort, 0)
		port.TargetPort = intstr.FromString("web")
		svc := net.Expose(ctx, check.Service("app", check.WithPorts(port)))
		client := net.ClientPod(ctx, net.Node(0))
		net.Expect(ctx, "the Service is created", check.Case{From: client, To: check.ServiceAddress(svc, exposedPort), Want: check.AnsweredByEach(pods...)})
		for i, number := range []string{"http 8080/TCP", "http 9090/TCP"} {
			e, slice := endpointOf(slicesNaming(ctx, net, svc), pods[i])
			Expect(e).NotTo(BeNil(), "pod %s is no endpoint", pods[i].Name)
			Expect(portsOf([]discoveryv1.EndpointSlice{*slice})).To(ConsistOf(number), "pod %s", pods[i].Name)
		}
	})
})

var _ = ginkgo.Describe("a targetPort that is a name", func() {
	check.It(spec.ProxyTargetPortName, "is that of the container which has it for the protocol, be it the second one or a sidecar", check.Needs(spec.PodObjects),
		func(ctx context.Context, net *check.Network) {
			pod := readyPodObject(net.Name("pod"), map[string]string{"app": "two"}, net.Node(0), firstAddress(net.PrimaryFamily()).String())
			having := func(number int32, protocol corev1.Protocol) []corev1.ContainerPort {
				return []corev1.ContainerPort{{Name: "web", ContainerPort: number, Protocol: protocol}}
			}
			pod.Spec.Containers[0].Ports = having(8080, corev1.ProtocolTCP)
			pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: "second", Image: "nothing", Ports: having(9090, corev1.ProtocolUDP)})
			always := corev1.ContainerRestartPolicyAlways
			pod.Spec.InitContainers = []corev1.Container{{Name: "sidecar", Image: "nothing", RestartPolicy: &always, Ports: []corev1.ContainerPort{{Name: "beside", ContainerPort: 7070}}}}
			ginkgo.DeferCleanup(func(ctx context.Context) { removePodObject(ctx, net, pod.Name) })
			createPodObject(ctx, net, pod)
			byName := func(name string, protocol corev1.Protocol, number int32, target string) corev1.ServicePort {
				p := check.Port(name, protocol, number, 0)
				p.TargetPort = intstr.FromString(target)
				return p
			}
			svc := net.Expose(ctx, check.Service("two", check.WithPorts(byName("tcp", corev1.ProtocolTCP, 80, "web"), byName("udp", corev1.ProtocolUDP, 80, "web"), byName("side", corev1.ProtocolTCP, 81, "beside"))))
			generated(ctx, net, svc, "a Service is created whose pod has two containers", func(g Gomega, found []discoveryv1.EndpointSlice) {
				g.Expect(portsOf(found)).To(ConsistOf("tcp 8080/TCP", "udp 9090/UDP", "side 7070/TCP"), "ports of the EndpointSlices")
			})
		})

	check.It(spec.ProxyTargetPortNameLacking, "leads to exactly the pods that have the name, as pods come and go", check.Long(), func(ctx context.Context, net *check.Network) {
		having := func(i int, ports map[string]int) candidate.Pod {
			ginkgo.GinkgoHelper()
			pod := candidate.Pod{PodName: candidate.PodName{Name: net.Name("pod")}, Node: net.Node(i), Labels: map[string]string{"app": "app"}}
			for _, name := range slices.Sorted(maps.Keys(ports)) {
				pod.Ports = append(pod.Ports, candidate.PodPort{Name: name, Protocol: corev1.ProtocolTCP, Number: ports[name]})
			}
			return net.Start(ctx, pod)
		}
		both, web := having(0, map[string]int{"web": 8080, "admin": 9090}), having(1, map[string]int{"web": 8081})
		other := having(2, map[string]int{"other": 8080}) // it listens there, and is none of them
		clients := clientPods(ctx, net)
		byName := func(name string, number int32) corev1.ServicePort {
			p := check.Port(name, corev1.ProtocolTCP, number, 0)
			p.TargetPort = intstr.FromString(name)
			return p
		}
		svc := net.Expose(ctx, check.Service("app", check.WithPorts(byName("web", 80), byName("admin", 81))))
		reached := func(what string, web, admin []candidate.Pod, all ...candidate.Pod) {
			ginkgo.GinkgoHelper()
			var cases []check.Case
			for _, c := range clients {
				cases = append(cases, check.Case{From: c, To: check.ServiceAddress(svc, 80), Want: exactlyBy(len(all), web...)},
					check.Case{From: c, To: check.ServiceAddress(svc, 81), Want: exactlyBy(len(all), admin...)})
			}
			net.Expect(ctx, what, cases...)
		}
		reached("of three pods two have one port, and one has the other", []candidate.Pod{both, web}, []candidate.Pod{both}, both, web, other)
		admin := having(1, map[string]int{"admin": 9091})
		reached("a pod comes with one of the ports", []candidate.Pod{both, web}, []candidate.Pod{both, admin}, both, web, other, admin)
		net.Remove(ctx, both)
		reached("the pod goes that has both ports", []candidate.Pod{web}, []candidate.Pod{admin}, web, other, admin)
	})
})

var _ = ginkgo.Describe("the endpoints of generated EndpointSlices", func() {
	check.It(spec.ProxySliceConditions, "tell in what state the pods are", func(ctx context.Context, net *check.Network) {
		pods := net.Backends(ctx, "app", net.Node(0), net.Node(0), net.Node(1), net.Node(1))
		svc := net.Expose(ctx, exposed("app"))
		conditions := func(what string, want ...string) {
			ginkgo.GinkgoHelper()
			generated(ctx, net, svc, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
				for i := range pods {
					got := conditionsOf(found, pods[i])
					if got != want[i] {
						net.PodsLive(ctx)
					}
					g.Expect(got).To(Equal(want[i]), "pod %s", pods[i].Name)
				}
			})
		}
		const running, failing = "ready true, serving true, terminating false", "ready false, serving false, terminating false"
		const draining, finished = "ready false, serving true, terminating true", "ready false, serving false, terminating true"
		conditions("the Service is created", running, running, running, running)
		net.SetReady(ctx, pods[1], false)
		conditions("a pod fails its readiness probe", running, failing, running, running)
		net.Terminate(ctx, pods[2])
		conditions("a pod is deleted and terminates", running, failing, draining, running)
		net.SetReady(ctx, pods[3], false)
		net.Terminate(ctx, pods[3])
		conditions("a pod that is not ready terminates", running, failing, draining, finished)
		net.SetReady(ctx, pods[1], true)
		conditions("a pod is ready again", running, running, draining, finished)
	})

	check.It(spec.ProxyPublishNotReadySlices, "are ready although the pods are not", func(ctx context.Context, net *check.Network) {
		pod := net.Start(ctx, candidate.Pod{Node: net.Node(0), Labels: map[string]string{"app": "app"}, Unready: true})
		published := net.Expose(ctx, exposed("published", selecting("app"), publishingNotReady()))
		plain := net.Expose(ctx, exposed("plain", selecting("app")))
		demand := func(svc *corev1.Service, what, condition string, ready, notReady []string) {
			ginkgo.GinkgoHelper()
			generated(ctx, net, svc, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
				e, _ := endpointOf(found, pod)
				g.Expect(e).NotTo(BeNil(), "the pod is no endpoint of Service %s", svc.Name)
				g.Expect(state(e.Conditions.Ready)).To(Equal(condition), "condition ready of the endpoint of Service %s", svc.Name)
			})
			converge(ctx, net, what+", Endpoints", func(g Gomega) {
				addresses, others := objectAddresses(endpointsObject(ctx, net, svc))
				g.Expect(addresses).To(Equal(ready), "addresses of the Endpoints object %s", svc.Name)
				g.Expect(others).To(Equal(notReady), "notReadyAddresses of the Endpoints object %s", svc.Name)
			})
		}
		address := addressesOf(net.PrimaryFamily(), pod)
		demand(published, "a Service with publishNotReadyAddresses is created", "true", address, nil)
		demand(plain, "a Service without publishNotReadyAddresses is created", "false", nil, address)
		net.Change(ctx, plain.Name, `{"spec":{"publishNotReadyAddresses":true}}`)
		demand(plain, "publishNotReadyAddresses is set", "true", address, nil)
		net.Change(ctx, published.Name, `{"spec":{"publishNotReadyAddresses":false}}`)
		demand(published, "publishNotReadyAddresses is unset", "false", nil, address)
	})

	check.It(spec.ProxyPublishNotReadyTraffic, "receive traffic although the pods are not ready", func(ctx context.Context, net *check.Network) {
		ready := net.Backends(ctx, "app", net.Node(0))[0]
		unready := net.Start(ctx, candidate.Pod{Node: net.Node(1), Labels: map[string]string{"app": "app"}, Unready: true})
		published := net.Expose(ctx, exposed("published", selecting("app"), publishingNotReady()))
		plain := net.Expose(ctx, exposed("plain", selecting("app")))
		client := net.ClientPod(ctx, net.Node(0))
		var cases []check.Case
		for _, protocol := range []corev1.Protocol{corev1.ProtocolTCP, corev1.ProtocolUDP} {
			cases = append(cases,
				check.Case{From: client, To: check.ServiceAddress(published, exposedPort), Protocol: protocol, Want: check.AnsweredByEach(ready, unready)},
				check.Case{From: client, To: check.ServiceAddress(plain, exposedPort), Protocol: protocol, Want: onlyBy(2, ready)})
		}
		net.Expect(ctx, "the Services are created", cases...)
	})
})

func publishingNotReady() check.ServiceOption {
	return check.With(func(s *corev1.Service) { s.Spec.PublishNotReadyAddresses = true })
}

var _ = ginkgo.Describe("generated EndpointSlices", func() {
	check.It(spec.ProxySliceFamilies, "hold addresses of one family each, and of both for a dual-stack Service", check.DualStack(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			first, second := net.PrimaryFamily(), net.OtherFamily()
			for name, families := range map[string][]corev1.IPFamily{
				"both": {first, second}, "reverse": {second, first}, "first": {first}, "second": {second},
			} {
				policy := corev1.IPFamilyPolicySingleStack
				if len(families) > 1 {
					policy = corev1.IPFamilyPolicyRequireDualStack
				}
				svc := net.Expose(ctx, exposed(name, selecting("app"), check.WithPolicy(policy), check.WithFamilies(families...)))
				generated(ctx, net, svc, fmt.Sprintf("a Service of the families %v is created", families), func(g Gomega, found []discoveryv1.EndpointSlice) {
					byType := map[discoveryv1.AddressType][]string{}
					for _, s := range found {
						byType[s.AddressType] = append(byType[s.AddressType], addressesIn([]discoveryv1.EndpointSlice{s})...)
					}
					g.Expect(byType).To(HaveLen(len(families)), "address types of the slices of Service %s: %v", name, byType)
					for _, f := range families {
						g.Expect(byType[discoveryv1.AddressType(f)]).To(ConsistOf(addressesOf(f, pods...)), "%s slices of Service %s", f, name)
					}
				})
			}
		})

	check.It(spec.ProxySliceSize, "hold at most 100 endpoints", func(ctx context.Context, net *check.Network) {
		pods := podObjects(ctx, net, "app", 101, net.Node(0), net.Node(1), net.Node(2))
		// A headless Service has as many endpoints, and no proxy has to do with them.
		svc := net.Expose(ctx, exposed("app", selecting("app"), check.Headless()))
		generated(ctx, net, svc, "a Service with 101 pods is created", func(g Gomega, found []discoveryv1.EndpointSlice) {
			g.Expect(differences(addressesIn(found), addressesOf(net.PrimaryFamily(), pods...))).To(BeEmpty(), "endpoints")
			for _, s := range found {
				g.Expect(len(s.Endpoints)).To(BeNumerically("<=", 100), "endpoints of slice %s", s.Name)
			}
		})
	})

	check.It(spec.ProxySliceLabels, "name their Service and their controller", func(ctx context.Context, net *check.Network) {
		pod := net.Backends(ctx, "app", net.Node(0))[0]
		svc := net.Expose(ctx, exposed("app"))
		converge(ctx, net, "the Service is created", func(g Gomega) {
			list, err := net.Client().DiscoveryV1().EndpointSlices(svc.Namespace).List(ctx, metav1.ListOptions{})
			check.Must(err)
			_, slice := endpointOf(list.Items, pod)
			g.Expect(slice).NotTo(BeNil(), "no EndpointSlice lists the pod")
			g.Expect(slice.Labels).To(HaveKeyWithValue(discoveryv1.LabelServiceName, svc.Name), "labels of the slice")
			g.Expect(slice.Labels).To(HaveKeyWithValue(discoveryv1.LabelManagedBy, Not(BeEmpty())), "labels of the slice")
			owners := []string{}
			for _, o := range slice.OwnerReferences {
				owners = append(owners, fmt.Sprintf("%s %s %s %s", o.APIVersion, o.Kind, o.Name, o.UID))
			}
			g.Expect(owners).To(ConsistOf(fmt.Sprintf("v1 Service %s %s", svc.Name, svc.UID)), "owners of the slice")
		})
	})
})
