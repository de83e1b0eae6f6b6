package proxy

import (
	"context"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// condition is a state that an endpoint can be in.
type condition struct {
	name                        string
	ready, serving, terminating bool
}

// conditions are the states that an EndpointSlice tells of.
var conditions = []condition{
	{"ready", true, true, false},
	{"draining", false, true, true},  // terminating, still serving
	{"finished", false, false, true}, // terminating, no longer serving
	{"unready", false, false, false},
}

const (
	isReady = 1 << iota
	isDraining
	isFinished
	isUnready
	allMixes
)

// mixName names a mix of conditions.
func mixName(mix int) string {
	var names []string
	for k, c := range conditions {
		if mix&(1<<k) != 0 {
			names = append(names, c.name)
		}
	}
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, "-")
}

// mixture is a set of mixes: those that have some conditions and lack others.
type mixture struct{ has, lacks int }

func (m mixture) String() string {
	if m.has == 0 {
		return "not " + mixName(m.lacks)
	}
	if m.lacks == 0 {
		return mixName(m.has)
	}
	return mixName(m.has) + ", not " + mixName(m.lacks)
}

// mixed are Services, one for every mix of a mixture. Each has endpoints on the first node, one for every condition of the mix, and,
// where asked for, a ready one on the second node. The pods are shared.
type mixed struct {
	mixture
	ready, draining candidate.Pod
	services        []*corev1.Service
}

func newMixed(ctx context.Context, net *check.Network, which mixture, readyElsewhere bool, options ...check.ServiceOption) *mixed {
	ginkgo.GinkgoHelper()
	pods := net.Backends(ctx, "app", net.Node(0), net.Node(0), net.Node(0), net.Node(0), net.Node(1))
	m := &mixed{mixture: which, ready: pods[0], draining: pods[1]}
	var mixes []int
	for mix := range allMixes {
		if mix&which.has == which.has && mix&which.lacks == 0 {
			mixes = append(mixes, mix)
		}
	}
	m.services = make([]*corev1.Service, len(mixes))
	check.Concurrently(len(mixes), func(i int) {
		svc := net.Expose(ctx, exposed(mixName(mixes[i]), append(slices.Clone(options), withoutSelector(), onNodePorts())...))
		slice := net.Slice(svc)
		for k, c := range conditions {
			if mixes[i]&(1<<k) != 0 {
				e := check.Endpoint(pods[k], net.PrimaryFamily())
				e.Conditions = discoveryv1.EndpointConditions{Ready: &c.ready, Serving: &c.serving, Terminating: &c.terminating}
				slice.Endpoints = append(slice.Endpoints, e)
			}
		}
		if readyElsewhere {
			slice.Endpoints = append(slice.Endpoints, check.Endpoint(pods[4], net.PrimaryFamily()))
		}
		net.CreateSlice(ctx, slice)
		m.services[i] = svc
	})
	if slices.Contains(m.services, nil) {
		check.Abort("a Service was not created")
	}
	return m
}

// expect looks at every Service. It demands what a pod on the i-th node gets from the cluster IP, and what a client
// outside gets from the node port of the first node.
func (m *mixed) expect(ctx context.Context, net *check.Network, i int, internal, external check.Want) {
	ginkgo.GinkgoHelper()
	client := net.ClientPod(ctx, net.Node(i))
	var cases []check.Case
	for _, svc := range m.services {
		cases = append(cases,
			check.Case{From: client, To: check.ServiceAddress(svc, exposedPort), Want: internal},
			check.Case{From: check.Outside(net.Node(0)), To: onNodePort(net, 0, svc, 1), Protocol: corev1.ProtocolUDP, Want: external})
	}
	// That nobody answers says nothing of proxies that have not come to these Services yet.
	cases = append(cases, caughtUp(ctx, net, m.ready, client, check.Host(net.Node(0)))...)
	net.Expect(ctx, fmt.Sprintf("Services are created with every mix of endpoints on a node (%s)", m.mixture), cases...)
}

var _ = ginkgo.Describe("a terminating endpoint", func() {
	check.It(spec.ProxyTerminatingLocalUsed, "is used under policy Local while it serves and the node has no ready one",
		func(ctx context.Context, net *check.Network) {
			m := newMixed(ctx, net, mixture{has: isDraining, lacks: isReady}, true, internalLocal, externalLocal)
			m.expect(ctx, net, 0, onlyBy(4, m.draining), onlyBy(4, m.draining))
		})

	check.It(spec.ProxyTerminatingLocalUsed, "is not used under policy Local when it no longer serves",
		func(ctx context.Context, net *check.Network) {
			m := newMixed(ctx, net, mixture{lacks: isReady | isDraining}, true, internalLocal, externalLocal)
			m.expect(ctx, net, 0,
				check.Unanswered(), check.Unanswered())
		})

	check.It(spec.ProxyTerminatingAvoided, "gets no new connections under policy Local while the node has a ready one",
		func(ctx context.Context, net *check.Network) {
			m := newMixed(ctx, net, mixture{has: isReady}, true, internalLocal, externalLocal)
			m.expect(ctx, net, 0, onlyBy(5, m.ready), onlyBy(5, m.ready))
		})

	check.It(spec.ProxyTerminatingAvoided, "gets no new connections under policy Cluster while there is a ready one",
		func(ctx context.Context, net *check.Network) {
			m := newMixed(ctx, net, mixture{has: isReady}, false)
			m.expect(ctx, net, 2, onlyBy(4, m.ready), onlyBy(4, m.ready))
		})

	check.It(spec.ProxyTerminatingClusterUsed, "is used under policy Cluster while it serves and there is no ready one",
		func(ctx context.Context, net *check.Network) {
			m := newMixed(ctx, net, mixture{has: isDraining, lacks: isReady}, false)
			m.expect(ctx, net, 2, onlyBy(3, m.draining), onlyBy(3, m.draining))
		})

	check.It(spec.ProxyTerminatingClusterUsed, "is not used under policy Cluster when it no longer serves",
		func(ctx context.Context, net *check.Network) {
			m := newMixed(ctx, net, mixture{lacks: isReady | isDraining}, false)
			none := check.Unanswered()
			m.expect(ctx, net, 2, none, none)
		})
})

var _ = ginkgo.Describe("a pod that terminates", func() {
	check.It(spec.ProxyTerminatingDrains, "goes on serving its node under externalTrafficPolicy Local until it ends, without a connection lost", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc, addresses := exposeOutside(ctx, net, "app", externalLocal)
			last := check.AnsweredBy(pods[0])
			net.Expect(ctx, "the Service is created", arrivals(net, 0, svc, addresses, last)...)
			settled(ctx, net, pods[1], check.Host(net.Node(0)))
			everyShot(ctx, net, func() {
				net.Terminate(ctx, pods[0])
				// That the node has followed shows at the cluster IP: its policy is Cluster, and another pod is ready.
				net.Expect(ctx, "the last pod of a node begins to terminate", append(
					arrivals(net, 0, svc, addresses, onlyBy(2, pods[0])),
					clusterIPCalls(svc, onlyBy(2, pods[1]), check.Host(net.Node(0)))...)...)
			}, connections(arrivals(net, 0, svc, addresses, last))...)
			net.Remove(ctx, pods[0])
			// A pod that is gone is as silent as what is demanded: the node must have followed.
			lists(ctx, net, svc, "the last pod of a node has ended", pods[1])
			settled(ctx, net, pods[1], check.Host(net.Node(0)))
			none := check.Unanswered()
			net.Expect(ctx, "the last pod of a node has ended", arrivals(net, 0, svc, addresses, none)...)
		})

	check.It(spec.ProxyTerminatingHealthCheckFails, "no longer counts for the health check of its node, which it still serves",
		check.Also(spec.ProxyTerminatingDrains), check.Claiming(spec.FeatureHealthCheckNodePort),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal))
			var addresses []netip.Addr
			if net.Has(spec.LoadBalancer) {
				addresses = append(addresses, net.ExternalAddress())
				announce(ctx, net, svc, addresses...)
			}
			check.Deciding(func() {
				net.Expect(ctx, "the Service is created", healthAt(net, 0, svc, health(2)), healthAt(net, 1, svc, health(1)), healthAt(net, 2, svc, health(0)))
				check.Concurrently(2, func(i int) { net.Terminate(ctx, pods[i]) })
				net.Expect(ctx, "all pods of a node begin to terminate", healthAt(net, 0, svc, health(0)), healthAt(net, 1, svc, health(1)))
			}, spec.ProxyTerminatingHealthCheckFails)
			check.Deciding(func() {
				net.Expect(ctx, "the health check of a node whose pods terminate fails",
					append(arrivals(net, 0, svc, addresses, check.AnsweredByEach(pods[:2]...)), healthAt(net, 0, svc, check.HTTPStatus(http.StatusServiceUnavailable)))...)
			}, spec.ProxyTerminatingDrains)
		})

	check.It(spec.ProxyTerminatingAvoided, "gets no new connections while others are ready", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(0), net.Node(1))
			client := net.ClientPod(ctx, net.Node(0))
			cluster := net.Expose(ctx, exposed("cluster", selecting("app"), onNodePorts()))
			local := net.Expose(ctx, exposed("local", selecting("app"), onNodePorts(), internalLocal, externalLocal))
			each, near := check.AnsweredByEach(pods...), check.AnsweredByEach(pods[:2]...)
			net.Expect(ctx, "the Services are created", slices.Concat(
				clusterIPCalls(cluster, each, client), arrivals(net, 0, cluster, nil, each),
				clusterIPCalls(local, near, client), arrivals(net, 0, local, nil, near))...)
			net.Terminate(ctx, pods[0])
			left, stays := check.AnsweredByEach(pods[1:]...), onlyBy(3, pods[1])
			net.Expect(ctx, "a pod begins to terminate", slices.Concat(
				clusterIPCalls(cluster, left, client), arrivals(net, 0, cluster, nil, left),
				clusterIPCalls(local, stays, client), arrivals(net, 0, local, nil, stays))...)
		})

	check.It(spec.ProxyTerminatingClusterUsed, "serves under policy Cluster when every pod terminates", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			client := net.ClientPod(ctx, net.Node(2))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			each := check.AnsweredByEach(pods...)
			cases := append(clusterIPCalls(svc, each, client), arrivals(net, 2, svc, nil, each)...)
			net.Expect(ctx, "the Service is created", cases...)
			net.Terminate(ctx, pods[0])
			net.Expect(ctx, "one of two pods begins to terminate", append(
				clusterIPCalls(svc, onlyBy(2, pods[1]), client), arrivals(net, 2, svc, nil, onlyBy(2, pods[1]))...)...)
			net.Terminate(ctx, pods[1])
			net.Expect(ctx, "every pod terminates", cases...)
		})

	check.It(spec.ProxyConditionUnset, "is used where serving is not set, and does not terminate where that is not set",
		func(ctx context.Context, net *check.Network) {
			pods, clients := backendsAndClients(ctx, net, "app", net.Node(0))
			var cases []check.Case
			for _, c := range []struct {
				name       string
				conditions discoveryv1.EndpointConditions
				want       check.Want
			}{
				{"serving-unset", discoveryv1.EndpointConditions{Ready: new(false), Terminating: new(true)}, check.AnsweredBy(pods...)},
				{"serving-false", discoveryv1.EndpointConditions{Ready: new(false), Serving: new(false), Terminating: new(true)}, check.ConnectionRefused()},
				{"terminating-unset", discoveryv1.EndpointConditions{Ready: new(false)}, check.ConnectionRefused()},
			} {
				svc := net.Expose(ctx, exposed(c.name, withoutSelector()))
				slice := net.Slice(svc, pods...)
				slice.Endpoints[0].Conditions = c.conditions
				net.CreateSlice(ctx, slice)
				cases = append(cases, toClusterIP(svc, c.want, clients...)...)
			}
			net.Expect(ctx, "Services are created whose endpoints name some of their conditions", cases...)
		})

	check.It(spec.ProxyTerminatingConnectionsKept, "keeps the connections that it has", check.KeepsTimeline(),
		func(ctx context.Context, net *check.Network) {
			// Its readiness changes while it terminates, so it has a name.
			first := net.Start(ctx, candidate.Pod{PodName: candidate.PodName{Name: net.Name("app")}, Node: net.Node(0), Labels: map[string]string{"app": "app"}})
			client := net.ClientPod(ctx, net.Node(1))
			svc := net.Expose(ctx, exposed("app", onNodePorts()))
			held := func(want check.Want) []check.Case {
				return []check.Case{
					{From: client, To: check.ServiceAddress(svc, exposedPort), Connection: "cluster IP", Want: want},
					{From: check.Host(net.Node(2)), To: check.ServiceAddress(svc, exposedPort), Connection: "cluster IP, host", Want: want},
					{From: arriving(net, 1), To: onNode(net, 1, svc), Connection: "node port", Want: want},
				}
			}
			fresh := func(want check.Want) []check.Case {
				return []check.Case{
					{From: client, To: check.ServiceAddress(svc, exposedPort), Want: want},
					{From: check.Host(net.Node(2)), To: check.ServiceAddress(svc, exposedPort), Want: want},
					{From: arriving(net, 1), To: onNode(net, 1, svc), Want: want},
				}
			}
			net.Expect(ctx, "the Service is created", fresh(check.AnsweredBy(first))...)
			settled(ctx, net, first, hosts(net)...)
			net.ExpectNow(ctx, "connections are opened", held(check.AnsweredBy(first))...)
			second := net.Backends(ctx, "app", net.Node(2))[0]
			net.Expect(ctx, "a second endpoint comes", fresh(check.AnsweredByEach(first, second))...)
			everyShot(ctx, net, func() {
				net.Terminate(ctx, first)
				net.Expect(ctx, "the first one begins to terminate", fresh(onlyBy(2, second))...)
			}, held(check.AnsweredBy(first))...)
			// Not serving either, the pod gets no new connection even where it is the only one.
			net.SetReady(ctx, first, false)
			net.SetReady(ctx, second, false)
			net.Expect(ctx, "no endpoint is ready, and the one that terminates does not serve", fresh(check.Unanswered())...)
			net.ExpectNow(ctx, "a pod that has connections terminates and does not serve", held(check.AnsweredBy(first))...)
		})
})
