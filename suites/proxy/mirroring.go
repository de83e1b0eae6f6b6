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

// endpointsByHand exposes a headless Service without a selector, which concerns no proxy. It makes the Endpoints object
// of its name with n addresses that nobody has.
func endpointsByHand(ctx context.Context, net *check.Network, name string, n int, labels map[string]string) (*corev1.Service, *corev1.Endpoints) {
	ginkgo.GinkgoHelper()
	svc := net.Expose(ctx, exposed(name, withoutSelector(), check.Headless()))
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "tcp", Port: check.BackendPort, Protocol: corev1.ProtocolTCP}}}
	address := firstAddress(net.PrimaryFamily())
	for range n {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: address.String()})
		address = address.Next()
	}
	return svc, createEndpoints(ctx, net, svc, labels, subset)
}

// mirrors demands that the slices of the Service hold the addresses of the Endpoints object, each as ready as it says, and its ports.
func mirrors(ctx context.Context, net *check.Network, svc *corev1.Service, what string, object *corev1.Endpoints) {
	ginkgo.GinkgoHelper()
	want, ports := []string{}, []string{}
	for _, s := range object.Subsets {
		for _, a := range s.Addresses {
			want = append(want, a.IP+" ready true")
		}
		for _, a := range s.NotReadyAddresses {
			want = append(want, a.IP+" ready false")
		}
		for _, p := range s.Ports {
			ports = append(ports, fmt.Sprintf("%s %d/%s", p.Name, p.Port, p.Protocol))
		}
	}
	generated(ctx, net, svc, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
		got := []string{}
		for _, s := range found {
			for _, e := range s.Endpoints {
				got = append(got, e.Addresses[0]+" ready "+state(e.Conditions.Ready))
			}
		}
		g.Expect(differences(got, want)).To(BeEmpty(), "mirrored endpoints")
		g.Expect(portsOf(found)).To(ConsistOf(ports), "mirrored ports")
	})
}

// mirrored demands the number of addresses that the slices of the Service hold.
func mirrored(ctx context.Context, net *check.Network, svc *corev1.Service, what string, n int) {
	ginkgo.GinkgoHelper()
	generated(ctx, net, svc, what, func(g Gomega, found []discoveryv1.EndpointSlice) {
		g.Expect(len(addressesIn(found))).To(Equal(n), "number of mirrored addresses")
	})
}

var _ = ginkgo.Describe("a hand-made Endpoints object", func() {
	check.It(spec.ProxySelectorlessEndpointsMirrored, "is mirrored into EndpointSlices", func(ctx context.Context, net *check.Network) {
		svc, object := endpointsByHand(ctx, net, "byhand", 3, nil)
		mirrors(ctx, net, svc, "the Endpoints object is created", object)
		subset := &object.Subsets[0]
		subset.Addresses, subset.NotReadyAddresses = subset.Addresses[:1], subset.Addresses[1:]
		object = replaceEndpoints(ctx, net, object)
		mirrors(ctx, net, svc, "addresses are no longer ready", object)
		object.Subsets[0].Ports[0].Port = 9090
		object = replaceEndpoints(ctx, net, object)
		mirrors(ctx, net, svc, "a port changes", object)
		check.Must(candidate.Delete(ctx, net.Client().CoreV1().Endpoints(svc.Namespace), object.Name, metav1.DeleteOptions{}))
		mirrored(ctx, net, svc, "the Endpoints object is deleted", 0)
	})

	check.It(spec.ProxySelectorlessEndpointsMirrored, "is mirrored where its Service had a selector before", check.Long(), func(ctx context.Context, net *check.Network) {
		pods := net.Backends(ctx, "app", net.Node(0))
		svc := net.Expose(ctx, exposed("app"))
		lists(ctx, net, svc, "the Service is created", pods...)
		net.Change(ctx, svc.Name, `{"spec":{"selector":null}}`)
		undisturbed(ctx, net, "app", pods...) // the controllers have seen the Service without a selector
		byHand := firstAddress(net.PrimaryFamily()).String()
		objects := net.Client().CoreV1().Endpoints(svc.Namespace)
		check.Must(retry.RetryOnConflict(retry.DefaultBackoff, func() error {
			object, err := objects.Get(ctx, svc.Name, metav1.GetOptions{})
			if err != nil {
				return err
			}
			object.Subsets = []corev1.EndpointSubset{{Addresses: []corev1.EndpointAddress{{IP: byHand}}, Ports: object.Subsets[0].Ports}}
			_, err = objects.Update(ctx, object, metav1.UpdateOptions{})
			return err
		}))
		generated(ctx, net, svc, "its Endpoints object is changed by hand", func(g Gomega, found []discoveryv1.EndpointSlice) {
			g.Expect(addressesIn(found)).To(ContainElement(byHand), "addresses of its EndpointSlices")
		})
	})

	check.It(spec.ProxySelectorlessEndpointsMirrored, "is mirrored up to 1000 addresses", func(ctx context.Context, net *check.Network) {
		all, object := endpointsByHand(ctx, net, "all", 1000, nil)
		mirrors(ctx, net, all, "an Endpoints object with 1000 addresses is created", object)
		more, _ := endpointsByHand(ctx, net, "more", 1001, nil)
		mirrored(ctx, net, more, "an Endpoints object with 1001 addresses is created", 1000)
	})

	check.It(spec.ProxySelectorlessEndpointsMirrored, "is not mirrored if it carries the label skip-mirror", func(ctx context.Context, net *check.Network) {
		skip := map[string]string{discoveryv1.LabelSkipMirror: "true"}
		skipped, _ := endpointsByHand(ctx, net, "skipped", 2, skip)
		svc, object := endpointsByHand(ctx, net, "later", 2, nil)
		mirrors(ctx, net, svc, "a later Endpoints object is created", object)
		Expect(addressesIn(slicesNaming(ctx, net, skipped))).To(BeEmpty(), "endpoints that are mirrored although the label skip-mirror says no")
		object.Labels = skip
		replaceEndpoints(ctx, net, object)
		mirrored(ctx, net, svc, "the Endpoints object gets the label skip-mirror", 0)
	})

	check.It(spec.ProxySelectorlessEndpointsMirrored, "is mirrored where it is there before its Service, and serves it", func(ctx context.Context, net *check.Network) {
		pod, client := net.Backends(ctx, "app", net.Node(0))[0], net.ClientPod(ctx, net.Node(1))
		early := exposed("early", withoutSelector())
		early.Namespace = net.Namespace()
		object := endpointsOf(ctx, net, early, pod)
		svc := net.Expose(ctx, early)
		mirrors(ctx, net, svc, "a Service is created after its Endpoints object", object)
		net.Expect(ctx, "a Service is created after its Endpoints object", clusterIPCalls(svc, check.AnsweredBy(pod), client)...)
	})

	check.It(spec.ProxySelectorlessEndpointsMirrored, "is mirrored whole where two subsets list an address with ports of their own", func(ctx context.Context, net *check.Network) {
		numbers := []int{check.BackendPort, 9090}
		pod, client := listening(ctx, net, "app", numbers, net.Node(0))[0], net.ClientPod(ctx, net.Node(1))
		svc := exposeSelectorless(ctx, net, "app", check.WithPorts(check.Port("a", corev1.ProtocolTCP, 80, numbers[0]), check.Port("b", corev1.ProtocolTCP, 81, numbers[1])))
		var subsets []corev1.EndpointSubset
		for i, name := range []string{"a", "b"} {
			subsets = append(subsets, corev1.EndpointSubset{
				Addresses: []corev1.EndpointAddress{{IP: addressesOf(net.PrimaryFamily(), pod)[0]}},
				Ports:     []corev1.EndpointPort{{Name: name, Port: int32(numbers[i]), Protocol: corev1.ProtocolTCP}},
			})
		}
		object := createEndpoints(ctx, net, svc, nil, subsets...)
		generated(ctx, net, svc, "an Endpoints object with two subsets is created", func(g Gomega, found []discoveryv1.EndpointSlice) {
			g.Expect(portsOf(found)).To(ConsistOf("a 8080/TCP", "b 9090/TCP"), "mirrored ports") // in one slice or in two
			g.Expect(differences(slices.Compact(addressesIn(found)), addressesOf(net.PrimaryFamily(), pod))).To(BeEmpty(), "mirrored addresses of Endpoints object %s", object.Name)
		})
		var cases []check.Case
		for i, number := range numbers {
			cases = append(cases, check.Case{From: client, To: check.ServiceAddress(svc, 80+int32(i)), Want: byEachOf([]candidate.Pod{pod}, []int{number})})
		}
		net.Expect(ctx, "an Endpoints object with two subsets is created", cases...)
	})
})
