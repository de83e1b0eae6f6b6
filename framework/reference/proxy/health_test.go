package proxy

import (
	"encoding/json"
	"net/http"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
)

func TestHealthCheckNodePort(t *testing.T) {
	const port = 31000
	at := func(port uint16) netip.AddrPort { return netip.AddrPortFrom(netip.MustParseAddr(nodeIP), port) }
	withHealth := web(func(s *corev1.Service) { bothLocal(s); s.Spec.HealthCheckNodePort = port })
	for name, c := range map[string]struct {
		endpoints   []discoveryv1.Endpoint
		code, count int
	}{
		"none":                    {nil, http.StatusServiceUnavailable, 0},
		"ready here":              {[]discoveryv1.Endpoint{endpoint(1, "n1", ready)}, http.StatusOK, 1},
		"two ready here, one not": {[]discoveryv1.Endpoint{endpoint(1, "n1", ready), endpoint(2, "n1", ready), endpoint(3, "n1", unready)}, http.StatusOK, 2},
		"ready there":             {[]discoveryv1.Endpoint{endpoint(1, "n2", ready), endpoint(2, "", ready)}, http.StatusServiceUnavailable, 0},
		"unready here":            {[]discoveryv1.Endpoint{endpoint(1, "n1", unready)}, http.StatusServiceUnavailable, 0},
		"terminating here":        {[]discoveryv1.Endpoint{endpoint(1, "n1", terminating)}, http.StatusServiceUnavailable, 0},
	} {
		n := nodeWith(candidate.ProxyConfiguration{}, withHealth, slice(c.endpoints...))
		answer := n.HealthCheck(at(port), candidate.HealthCheckPath, false)
		if answer == nil {
			t.Fatalf("%s: no answer", name)
		}
		var body struct {
			Service        struct{ Namespace, Name string }
			LocalEndpoints int
		}
		if err := json.Unmarshal([]byte(answer.Body), &body); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if answer.Code != c.code || body.LocalEndpoints != c.count || body.Service.Name != "web" {
			t.Errorf("%s: %d, %s; want %d and %d endpoints", name, answer.Code, answer.Body, c.code, c.count)
		}
	}
	n := nodeWith(candidate.ProxyConfiguration{}, withHealth, slice(endpoint(1, "n1", ready)))
	if n.HealthCheck(at(port+1), candidate.HealthCheckPath, false) != nil {
		t.Error("another port answers")
	}
	if a := n.HealthCheck(at(port), "/", false); a == nil || a.Code != http.StatusNotFound {
		t.Errorf("another path is not found: %v", a)
	}
	if n.HealthCheck(at(port), candidate.HealthCheckPath, true) != nil {
		t.Error("the port answers that a program of the node has")
	}
	n.Stop()
	if n.HealthCheck(at(port), candidate.HealthCheckPath, false) != nil {
		t.Error("the port answers without a proxy")
	}
	expect(t, "rules of a stopped proxy", reached(n, packet(podIP, clusterIP)), "1:8080")
}

func TestHealthOfTheProxy(t *testing.T) {
	n := nodeWith(candidate.ProxyConfiguration{}, web(nil))
	for _, c := range []struct {
		draining       bool
		healthz, livez int
	}{{false, http.StatusOK, http.StatusOK}, {true, http.StatusServiceUnavailable, http.StatusOK}} {
		n.Draining = c.draining
		for path, want := range map[string]int{"/healthz": c.healthz, "/livez": c.livez} {
			if got := n.Serve(start, false, candidate.ProxyHealthPort, path).Code; got != want {
				t.Errorf("%s, draining %v: %d, want %d", path, c.draining, got, want)
			}
		}
	}
	if n.Serve(start, false, candidate.ProxyMetricsPort, "/metrics") != nil {
		t.Error("metrics are served to others than loopback")
	}
}
