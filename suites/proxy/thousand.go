package proxy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// The size of a large cluster. The pods are few: each answers on many ports, and serves many Services. On which port, and which ten of the pods are
// endpoints, is no Service's alone, but both together are.
const (
	thousand     = 1000
	tenEndpoints = 10
	tenOf        = tenEndpoints + 2
	portsOfEach  = 17
	firstOfPorts = check.BackendPort + 1
)

// thousandBound is how long a thousand new Services may take: no document says, so it is many times what a single change may take.
const thousandBound = 5 * check.ConvergenceBound

// oneOfMany is a Service with ten endpoints.
type oneOfMany struct {
	svc   *corev1.Service
	slice *discoveryv1.EndpointSlice
	pods  []candidate.Pod
}

// tenPods are the endpoints of the i-th Service: all but two of the pods. It is another two for 60 Services in a row.
func tenPods(all []candidate.Pod, i int) []candidate.Pod {
	first := i % tenOf
	second := (first + 1 + i/tenOf%5) % tenOf
	ten := slices.Delete(slices.Clone(all), max(first, second), max(first, second)+1)
	return slices.Delete(ten, min(first, second), min(first, second)+1)
}

// podsOfMany are the pods that all of the Services share.
func podsOfMany(ctx context.Context, net *check.Network) []candidate.Pod {
	ginkgo.GinkgoHelper()
	var ports []candidate.PodPort
	for i := range portsOfEach {
		ports = append(ports, candidate.PodPort{Name: fmt.Sprintf("tcp-%d", i), Protocol: corev1.ProtocolTCP, Number: firstOfPorts + i})
	}
	pods := make([]candidate.Pod, tenOf)
	check.Concurrently(tenOf, func(i int) { pods[i] = net.Start(ctx, candidate.Pod{Node: net.Node(i % 3), Ports: ports}) })
	if slices.ContainsFunc(pods, func(p candidate.Pod) bool { return p.Name == "" }) { // the goroutine has failed the check
		check.Abort("a backend did not start")
	}
	return pods
}

// exposeOneOfMany makes the i-th Service.
func exposeOneOfMany(ctx context.Context, net *check.Network, all []candidate.Pod, i int) *oneOfMany {
	ginkgo.GinkgoHelper()
	port := check.Port("tcp", corev1.ProtocolTCP, exposedPort, firstOfPorts+i%portsOfEach)
	m := &oneOfMany{pods: tenPods(all, i), svc: net.Expose(ctx, check.Service(net.Name("app"), withoutSelector(), check.WithPorts(port)))}
	m.slice = net.CreateSlice(ctx, net.Slice(m.svc, m.pods...))
	return m
}

// replace gives it the endpoints of the i-th Service.
func (m *oneOfMany) replace(ctx context.Context, net *check.Network, all []candidate.Pod, i int) {
	ginkgo.GinkgoHelper()
	m.pods = tenPods(all, i)
	m.slice.Endpoints = net.Slice(m.svc, m.pods...).Endpoints
	m.slice = net.UpdateSlice(ctx, m.slice)
}

// answered are calls by each of the clients with the demand. They must come to the port of the endpoints, which is not
// that of the next Service.
func (m *oneOfMany) answered(want check.Want, clients ...candidate.Client) []check.Case {
	onPort := check.OnPort(int(m.svc.Spec.Ports[0].TargetPort.IntVal))
	return m.calls(check.AllOf(want, onPort), clients...)
}

func (m *oneOfMany) calls(want check.Want, clients ...candidate.Client) []check.Case {
	var cases []check.Case
	for _, c := range clients {
		cases = append(cases, check.Case{From: c, To: check.ServiceAddress(m.svc, exposedPort), Want: want})
	}
	return cases
}

// exactly demands that each endpoint answers, and none of the pods that are none.
func (m *oneOfMany) exactly(clients ...candidate.Client) []check.Case {
	return m.answered(exactlyBy(tenOf, m.pods...), clients...)
}

// eachOnce are one call to each of the Services by each of the clients.
func eachOnce(all []*oneOfMany, clients []candidate.Client) []check.Case {
	var cases []check.Case
	for _, m := range all {
		cases = append(cases, once(m.answered(check.AnsweredBy(m.pods...), clients...))...)
	}
	return cases
}

var _ = ginkgo.Describe("a thousand Services of ten endpoints", func() {
	check.It(spec.ProxyManyServices, "are served, and each single change among them is followed on every node", check.Also(spec.ProxyScale),
		check.Slow(), check.Alone(), check.Timeout(10*time.Minute),
		func(ctx context.Context, net *check.Network) {
			net.NeedAddresses(ctx, thousand)
			pods, clients := podsOfMany(ctx, net), clientPods(ctx, net)
			all, began := make([]*oneOfMany, thousand), time.Now()
			byWriters(thousand, func(i int) { all[i] = exposeOneOfMany(ctx, net, pods, i) })
			if slices.Contains(all, nil) { // the goroutine has failed the check
				check.Abort("a Service was not created")
			}
			check.Record("size", "%d Services with %d endpoints each, created in %s", thousand, tenEndpoints, time.Since(began).Round(time.Second/10))
			check.Deciding(func() {
				net.ExpectWithin(ctx, "1,000 Services of 10 endpoints are created", thousandBound, eachOnce(all, clients)...)
				some := []*oneOfMany{all[0], all[thousand-1]}
				for range 10 {
					some = append(some, all[net.Rand().IntN(thousand)])
				}
				for _, m := range some {
					net.ExpectNow(ctx, "1,000 Services are there", m.exactly(clients...)...)
				}
			}, spec.ProxyManyServices)
			const next = thousand
			changed, last := all[net.Rand().IntN(thousand-1)], all[thousand-1]
			check.Deciding(func() {
				changed.replace(ctx, net, pods, next)
				net.Expect(ctx, "the endpoints of one of 1,000 Services are replaced", changed.exactly(clients...)...)
				added := exposeOneOfMany(ctx, net, pods, next)
				net.Expect(ctx, "a Service is added to 1,000", added.exactly(clients...)...)
				all[thousand-1] = added
				net.Unexpose(ctx, last.svc.Name)
				net.Expect(ctx, "one of 1,000 Services is deleted", once(last.calls(check.NotBy(last.pods...), clients...))...)
			}, spec.ProxyScale)
			check.Deciding(func() {
				net.ExpectNow(ctx, "single Services among 1,000 have changed", eachOnce(all, clients)...)
			}, spec.ProxyManyServices)
		})
})
