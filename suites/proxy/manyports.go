package proxy

import (
	"context"
	"fmt"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// manyPorts is more ports than the 100 that the document of EndpointSlice once named as its limit.
const manyPorts = 120

// withManyPorts are the ports 1000, 1001 and so on, which lead to the numbers in turn.
func withManyPorts(n int, numbers []int) check.ServiceOption {
	ports := make([]corev1.ServicePort, n)
	for i := range ports {
		ports[i] = check.Port(fmt.Sprintf("p%d", i), corev1.ProtocolTCP, int32(1000+i), numbers[i%len(numbers)])
	}
	return check.WithPorts(ports...)
}

var _ = ginkgo.Describe("a Service of many ports", func() {
	check.It(spec.ProxyManyPorts, "is served on each of them, or refused", check.Long(), func(ctx context.Context, net *check.Network) {
		var numbers []int
		for i := range 7 {
			numbers = append(numbers, check.BackendPort+i)
		}
		pod := listening(ctx, net, "app", numbers, net.Node(0))[0]
		clients := clientPods(ctx, net)
		served := func(what string, svc *corev1.Service) {
			ginkgo.GinkgoHelper()
			var cases []check.Case
			for i, p := range svc.Spec.Ports {
				want := check.AllOf(check.AnsweredBy(pod), check.OnPort(int(p.TargetPort.IntVal)))
				cases = append(cases, check.Case{From: clients[i%len(clients)], To: check.ServiceAddress(svc, p.Port), Want: want})
			}
			net.Expect(ctx, what, cases...)
		}
		few := net.Expose(ctx, check.Service("few", selecting("app"), withManyPorts(3, numbers)))
		served("a Service of 3 ports is created", few)
		if made := net.Create(ctx, check.Service("many", selecting("app"), withManyPorts(manyPorts, numbers))); made.Accepted() {
			served(fmt.Sprintf("a Service of %d ports is created", manyPorts), made.Service)
		}
		more := check.Service(few.Name, withManyPorts(manyPorts, numbers))
		grown := net.Get(ctx, few.Name)
		Expect(grown).To(check.BeAccepted())
		grown.Service.Spec.Ports = more.Spec.Ports
		if updated := net.Update(ctx, grown.Service); updated.Accepted() {
			served(fmt.Sprintf("it grows to %d ports", manyPorts), updated.Service)
		} else {
			served("an update to more ports is refused", few)
		}
	})
})

// objectCapacity is how many addresses an Endpoints object holds.
const objectCapacity = 1000

var _ = ginkgo.Describe("the Endpoints object of a Service with more than 1000 pods", func() {
	check.It(spec.ProxyEndpointsObjectTruncated, "holds 1000 of them and says that it is truncated, and all of them when there are fewer", check.Needs(spec.PodObjects), check.Slow(),
		func(ctx context.Context, net *check.Network) {
			pods := podObjects(ctx, net, "app", objectCapacity+2, net.Node(0), net.Node(1), net.Node(2))
			svc := net.Expose(ctx, exposed("app", selecting("app"), check.Headless()))
			holds := func(what string, n int, truncated bool) {
				ginkgo.GinkgoHelper()
				converge(ctx, net, what, func(g Gomega) {
					g.Expect(addressesOfObject(ctx, net, svc)).To(HaveLen(n), "addresses of the Endpoints object")
					object, err := net.Client().CoreV1().Endpoints(svc.Namespace).Get(ctx, svc.Name, metav1.GetOptions{})
					check.Must(err)
					g.Expect(object.Annotations[corev1.EndpointsOverCapacity] == "truncated").To(Equal(truncated), "the annotation %s says truncated: %v", corev1.EndpointsOverCapacity, object.Annotations)
				})
				lists(ctx, net, svc, what, pods...)
			}
			remove := func(n int) {
				ginkgo.GinkgoHelper()
				for range n {
					removePodObject(ctx, net, pods[len(pods)-1].Name)
					pods = pods[:len(pods)-1]
				}
			}
			holds("a Service with 1002 pods is created", objectCapacity, true)
			remove(1)
			holds("one of 1002 pods goes", objectCapacity, true)
			remove(2)
			holds("999 of 1002 pods are left", objectCapacity-1, false)
		})
})
