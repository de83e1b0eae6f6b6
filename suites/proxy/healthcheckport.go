package proxy

import (
	"context"
	"encoding/json"
	"net/http"
	"net/netip"
	"slices"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// noHealth demands that nobody answers for the health of the Service. Somebody else may have been given the port meanwhile, and answer.
func noHealth(svc *corev1.Service) check.Want {
	return check.Want{Text: "no health check of Service " + svc.Name, Shots: 1, Silent: true, Met: func(os []candidate.Outcome) bool {
		return !slices.ContainsFunc(os, func(o candidate.Outcome) bool {
			return o.Result == candidate.Answered && o.Pod.Name == "" && !ofAnother(o.HTTP, svc)
		})
	}}
}

// notWell demands that nobody says that there are endpoints of the Service.
func notWell(svc *corev1.Service) check.Want {
	return check.Want{Text: "no 200 for Service " + svc.Name, Shots: 1, Silent: true, Met: func(os []candidate.Outcome) bool {
		return !slices.ContainsFunc(os, func(o candidate.Outcome) bool {
			return o.HTTP != nil && o.HTTP.Code == http.StatusOK && !ofAnother(o.HTTP, svc)
		})
	}}
}

// ofAnother reports whether the answer is the health of another Service.
func ofAnother(a *candidate.HTTPAnswer, svc *corev1.Service) bool {
	var body struct {
		Service struct{ Namespace, Name string }
	}
	return a != nil && json.Unmarshal([]byte(a.Body), &body) == nil && body.Service.Name != "" &&
		(body.Service.Namespace != svc.Namespace || body.Service.Name != svc.Name)
}

// healthOfAll is the health check of the Service at every node: served, with so many local endpoints, or not at all.
func healthOfAll(net *check.Network, svc *corev1.Service, served bool, local ...int) (cases []check.Case) {
	ginkgo.GinkgoHelper()
	for i, n := range local {
		want := health(n)
		if !served {
			want = noHealth(svc)
		}
		cases = append(cases, healthAt(net, i, svc, want))
	}
	return cases
}

var _ = ginkgo.Describe("the port of the health check", func() {
	for _, c := range []struct {
		when string
		end  func(context.Context, *check.Network, *corev1.Service)
	}{
		{"the Service is deleted", func(ctx context.Context, net *check.Network, svc *corev1.Service) { net.Unexpose(ctx, svc.Name) }},
		{"the type becomes ClusterIP", func(ctx context.Context, net *check.Network, svc *corev1.Service) {
			net.Change(ctx, svc.Name, `{"spec":{"type":"ClusterIP","externalTrafficPolicy":null,"healthCheckNodePort":null,"loadBalancerClass":null,"allocateLoadBalancerNodePorts":null}}`)
		}},
		{"externalTrafficPolicy becomes Cluster", func(ctx context.Context, net *check.Network, svc *corev1.Service) {
			net.Change(ctx, svc.Name, `{"spec":{"externalTrafficPolicy":"Cluster","healthCheckNodePort":null}}`)
		}},
	} {
		check.It(spec.ProxyHealthCheckPortCloses, "closes on every node when "+c.when,
			func(ctx context.Context, net *check.Network) {
				lopsided(ctx, net, "app")
				svc := net.Expose(ctx, exposed("app", balanced(), externalLocal))
				net.Expect(ctx, "the Service is created", healthOfAll(net, svc, true, 2, 1, 0)...)
				c.end(ctx, net, svc)
				net.Expect(ctx, c.when, healthOfAll(net, svc, false, 2, 1, 0)...)
			})
	}

	check.It(spec.ProxyHealthCheckPortCloses, "tells nobody who is connected that all is well when the Service is deleted",
		func(ctx context.Context, net *check.Network) {
			lopsided(ctx, net, "app")
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal))
			asked := func(i int, want check.Want) check.Case {
				c := healthAt(net, i, svc, want)
				c.Connection, c.Shots = "held", 1
				return c
			}
			net.Expect(ctx, "the Service is created", asked(0, health(2)), asked(1, health(1)))
			net.Unexpose(ctx, svc.Name)
			net.Expect(ctx, "the Service is deleted", healthOfAll(net, svc, false, 2, 1)...)
			net.ExpectNow(ctx, "its health is asked on connections that were open", asked(0, notWell(svc)), asked(1, notWell(svc)))
		})

	check.It(spec.ProxyHealthCheckLocalEndpoints, "is opened once a program of the node that had it has gone", check.Long(), check.Also(spec.ProxyHealthCheckPortCloses),
		func(ctx context.Context, net *check.Network) {
			pods, _, _ := lopsided(ctx, net, "app")
			first := net.Expose(ctx, exposed("first", selecting("app"), balanced(), externalLocal))
			port, node := first.Spec.HealthCheckNodePort, net.Nodes()[1]
			net.Expect(ctx, "a Service is created", healthAt(net, 1, first, health(1)))
			net.Unexpose(ctx, first.Name)
			check.Deciding(func() { net.Expect(ctx, "the Service is deleted", healthAt(net, 1, first, noHealth(first))) }, spec.ProxyHealthCheckPortCloses)
			program := net.Start(ctx, candidate.Pod{
				PodName: candidate.PodName{Name: net.Name("program")}, Node: node.Name, HostNetwork: true,
				Ports: []candidate.PodPort{{Protocol: corev1.ProtocolTCP, Number: int(port)}},
			})
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal, check.With(func(s *corev1.Service) { s.Spec.HealthCheckNodePort = port })))
			net.Expect(ctx, "the Service is created", healthAt(net, 0, svc, health(2)), healthAt(net, 1, svc, check.AnsweredBy(program)), healthAt(net, 2, svc, health(0)))
			net.Remove(ctx, program)
			net.Expect(ctx, "the program has gone", healthAt(net, 1, svc, check.NotBy(program)))
			net.SetReady(ctx, pods[0], false) // a change that the proxy has to follow anyway
			net.Expect(ctx, "an endpoint is no longer ready", healthOfAll(net, svc, true, 1, 1, 0)...)
		})

	check.It(spec.ProxyHealthCheckPortFollows, "is another one on every node when the Service is given another one",
		func(ctx context.Context, net *check.Network) {
			lopsided(ctx, net, "app")
			first := net.Expose(ctx, exposed("app", balanced(), externalLocal))
			net.Expect(ctx, "the Service is created", healthOfAll(net, first, true, 2, 1, 0)...)
			again := anotherHealthPort(ctx, net, first)
			net.Expect(ctx, "the Service is given another health check node port",
				append(healthOfAll(net, again, true, 2, 1, 0), healthOfAll(net, first, false, 2, 1, 0)...)...)
		})

	check.It(spec.ProxyNodeDrainHealthCheckPort, "answers by the endpoints of a node that is drained",
		func(ctx context.Context, net *check.Network) {
			asDeclared(net, spec.ProxyHealth, "port-10256") // it tells that the node has heard of its drain
			net.Backends(ctx, "app", net.Node(0))           // on another node, which controls need
			node := net.AddNode(ctx, candidate.ProxyConfiguration{})
			pods := net.Backends(ctx, "app", node.Name)
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal))
			address := check.AddressOf(node.Addresses, net.PrimaryFamily())
			at := func(port int32, path string, code int) check.Case {
				return check.Case{From: check.Outside(net.Node(0)), To: netip.AddrPortFrom(address, uint16(port)), Path: path, Want: check.HTTPStatus(code)}
			}
			port := svc.Spec.HealthCheckNodePort
			net.Expect(ctx, "the Service is created", at(port, candidate.HealthCheckPath, http.StatusOK))
			check.Must(candidate.Patch(ctx, net.Client().CoreV1().Nodes(), node.Name, types.MergePatchType, drainTaint))
			net.Expect(ctx, "the node is about to be deleted", at(candidate.ProxyHealthPort, "/healthz", http.StatusServiceUnavailable))
			net.ExpectNow(ctx, "the health check of the node fails", at(port, candidate.HealthCheckPath, http.StatusOK))
			net.SetReady(ctx, pods[0], false)
			net.Expect(ctx, "its endpoint is no longer ready", at(port, candidate.HealthCheckPath, http.StatusServiceUnavailable))
		})
})

// anotherHealthPort makes the server hand out another health check node port: it is cleared with the policy that needs it, for it cannot be changed.
func anotherHealthPort(ctx context.Context, net *check.Network, svc *corev1.Service) *corev1.Service {
	ginkgo.GinkgoHelper()
	for range 5 {
		net.Change(ctx, svc.Name, `{"spec":{"externalTrafficPolicy":"Cluster","healthCheckNodePort":null}}`)
		if again := net.Change(ctx, svc.Name, `{"spec":{"externalTrafficPolicy":"Local"}}`); again.Spec.HealthCheckNodePort != svc.Spec.HealthCheckNodePort {
			return again
		}
	}
	check.Abort("the server hands out the health check node port %d again and again", svc.Spec.HealthCheckNodePort)
	return nil
}
