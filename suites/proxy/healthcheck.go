package proxy

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strconv"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// healthAt is the health check of the Service at the i-th node, as a load balancer asks for it.
func healthAt(net *check.Network, i int, svc *corev1.Service, want check.Want) check.Case {
	ginkgo.GinkgoHelper()
	if svc.Spec.HealthCheckNodePort == 0 {
		check.Abort("Service %s has no health check node port", svc.Name)
	}
	to := netip.AddrPortFrom(nodeAddress(net, i), uint16(svc.Spec.HealthCheckNodePort))
	return check.Case{From: check.Outside(net.Node(i)), To: to, Path: candidate.HealthCheckPath, Want: want}
}

// health demands the code of a node with so many local endpoints.
func health(local int) check.Want {
	if local > 0 {
		return check.HTTPStatus(http.StatusOK)
	}
	return check.HTTPStatus(http.StatusServiceUnavailable)
}

// healthContent demands the answer of a node with so many local endpoints: code, JSON and header.
func healthContent(svc *corev1.Service, local int) check.Want {
	content := check.Want{
		Text: fmt.Sprintf("JSON that names the Service and %d local endpoints, and the weight %d", local, local), Shots: 1,
		Met: func(os []candidate.Outcome) bool {
			return !slices.ContainsFunc(os, func(o candidate.Outcome) bool { return !tellsHealth(o.HTTP, svc, local) })
		},
	}
	return check.AllOf(health(local), content)
}

func tellsHealth(a *candidate.HTTPAnswer, svc *corev1.Service, local int) bool {
	if a == nil {
		return false
	}
	var body struct {
		Service             struct{ Namespace, Name string }
		LocalEndpoints      *int
		ServiceProxyHealthy *bool
	}
	weight := http.Header(a.Header).Get("X-Load-Balancing-Endpoint-Weight")
	return json.Unmarshal([]byte(a.Body), &body) == nil && body.Service.Namespace == svc.Namespace && body.Service.Name == svc.Name &&
		body.LocalEndpoints != nil && *body.LocalEndpoints == local && (body.ServiceProxyHealthy == nil || *body.ServiceProxyHealthy) &&
		weight == strconv.Itoa(local)
}

var _ = ginkgo.Describe("the health check node port", func() {
	check.It(spec.ProxyHealthCheckLocalEndpoints, "tells which nodes hold ready endpoints, as these come and go",
		func(ctx context.Context, net *check.Network) {
			_, second, _ := lopsided(ctx, net, "app")
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal))
			ask := func(what string, local ...int) {
				ginkgo.GinkgoHelper()
				var cases []check.Case
				for i, n := range local {
					cases = append(cases, healthAt(net, i, svc, health(n)))
				}
				net.Expect(ctx, what, cases...)
			}
			ask("the Service is created", 2, 1, 0)
			net.SetReady(ctx, second[0], false)
			ask("the only endpoint of a node becomes unready", 2, 0, 0)
			third := net.Backends(ctx, "app", net.Node(2))
			net.SetReady(ctx, second[0], true)
			ask("a node gets an endpoint, and another one its ready one back", 2, 1, 1)
			net.Remove(ctx, third[0])
			ask("the only endpoint of a node goes", 2, 1, 0)
		})

	check.It(spec.ProxyHealthCheckLocalEndpoints, "fails on every node while the Service has no endpoint",
		func(ctx context.Context, net *check.Network) {
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal))
			cases := func(local int) []check.Case {
				return []check.Case{healthAt(net, 0, svc, health(local)), healthAt(net, 1, svc, health(0)), healthAt(net, 2, svc, health(0))}
			}
			net.Expect(ctx, "the Service is created without endpoints", cases(0)...)
			pods := net.Backends(ctx, "app", net.Node(0))
			net.Expect(ctx, "an endpoint comes", cases(1)...)
			net.SetReady(ctx, pods[0], false)
			net.Expect(ctx, "the only endpoint becomes unready", cases(0)...)
		})

	check.It(spec.ProxyHealthCheckLocalEndpoints, "tells two Services apart",
		func(ctx context.Context, net *check.Network) {
			net.Backends(ctx, "one", net.Node(0))
			net.Backends(ctx, "two", net.Node(1))
			one := net.Expose(ctx, exposed("one", balanced(), externalLocal))
			two := net.Expose(ctx, exposed("two", balanced(), externalLocal))
			net.Expect(ctx, "the Services are created",
				healthAt(net, 0, one, health(1)), healthAt(net, 1, one, health(0)), healthAt(net, 0, two, health(0)), healthAt(net, 1, two, health(1)))
		})

	check.It(spec.ProxyHealthCheckLocalEndpoints, "counts the pods of every port",
		func(ctx context.Context, net *check.Network) {
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1))
			svc := net.Expose(ctx, exposed("app", withoutSelector(), balanced(), externalLocal,
				check.WithPorts(check.Port("first", corev1.ProtocolTCP, 80, check.BackendPort), check.Port("second", corev1.ProtocolTCP, 81, check.BackendPort))))
			for i, name := range []string{"first", "second"} {
				slice := net.Slice(svc, pods[i])
				slice.Ports = []discoveryv1.EndpointPort{{Name: &name, Port: new(int32(check.BackendPort)), Protocol: new(corev1.ProtocolTCP)}}
				net.CreateSlice(ctx, slice)
			}
			net.Expect(ctx, "each port has a pod on another node",
				healthAt(net, 0, svc, health(1)), healthAt(net, 1, svc, health(1)), healthAt(net, 2, svc, health(0)))
		})

	check.It(spec.ProxyHealthCheckResponse, "says so in JSON, with the number of local endpoints as a weight",
		func(ctx context.Context, net *check.Network) {
			first, _, _ := lopsided(ctx, net, "app")
			svc := net.Expose(ctx, exposed("app", balanced(), externalLocal))
			net.Expect(ctx, "the Service is created",
				healthAt(net, 0, svc, healthContent(svc, 2)), healthAt(net, 1, svc, healthContent(svc, 1)), healthAt(net, 2, svc, healthContent(svc, 0)))
			net.SetReady(ctx, first[0], false)
			net.Expect(ctx, "one of two endpoints of a node becomes unready",
				healthAt(net, 0, svc, healthContent(svc, 1)), healthAt(net, 1, svc, healthContent(svc, 1)), healthAt(net, 2, svc, healthContent(svc, 0)))
		})
})
