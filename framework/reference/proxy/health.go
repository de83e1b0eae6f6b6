package proxy

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

// HealthCheck answers a GET on a port of the node if it is the health check node port of a Service: 200 where the node holds endpoints that
// are ready, 503 where it does not. It returns nil for every other port.
func (n *Node) HealthCheck(port int) *candidate.HTTPAnswer {
	if n.programmed == nil {
		return nil
	}
	s := n.programmed.healths[port]
	if s == nil || !n.running {
		return nil
	}
	seen := map[string]bool{}
	if len(s.ports) > 0 {
		sp := s.ports[0] // every port has the same pods
		for _, list := range [][]*Endpoint{sp.v4, sp.v6} {
			for _, e := range list {
				if n.countsForHealth(e) {
					seen[e.Node+podOf(e, list)] = true
				}
			}
		}
	}
	count := len(seen)
	code := http.StatusServiceUnavailable
	if count > 0 || n.faults.On(fault.HealthCheckAlwaysOK) {
		code = http.StatusOK
	}
	if n.Draining && n.faults.On(fault.DrainFailsHealthCheck) {
		code = http.StatusServiceUnavailable
	}
	header := map[string][]string{"Content-Type": {"application/json"}, "X-Load-Balancing-Endpoint-Weight": {strconv.Itoa(count)}}
	local := count
	switch {
	case n.faults.On(fault.HealthCheckNoWeight):
		delete(header, "X-Load-Balancing-Endpoint-Weight")
	case n.faults.On(fault.HealthCheckWrongCount):
		local++
	}
	body, _ := json.Marshal(map[string]any{ // of plain values
		"service": map[string]string{"namespace": s.Namespace, "name": s.Name}, "localEndpoints": local, "serviceProxyHealthy": true,
	})
	return &candidate.HTTPAnswer{Code: code, Header: header, Body: string(body)}
}

// podOf tells pods apart by their place: a pod of both families has one in each list.
func podOf(e *Endpoint, list []*Endpoint) string {
	for i, f := range list {
		if f == e {
			return fmt.Sprint(i)
		}
	}
	return ""
}

func (n *Node) countsForHealth(e *Endpoint) bool {
	f := n.faults
	return (e.Ready || f.On(fault.HealthCheckCountsTerminating) && e.Terminating && e.Serving || f.On(fault.HealthCheckCountsUnready)) &&
		(n.isLocal(e) || f.On(fault.HealthCheckCountsRemote))
}

// Serve answers a GET on the proxy's own ports: its metrics, on loopback, and its health. It returns nil for every other port.
func (n *Node) Serve(now time.Time, loopback bool, port int, path string) *candidate.HTTPAnswer {
	if !n.running {
		return nil
	}
	switch {
	case port == candidate.ProxyMetricsPort && loopback && path == "/metrics":
		return &candidate.HTTPAnswer{Code: http.StatusOK, Body: n.metrics()}
	case port == candidate.ProxyMetricsPort && loopback && path == "/proxyMode":
		mode := n.config.Mode
		if mode == "" {
			mode = "iptables"
		}
		return &candidate.HTTPAnswer{Code: http.StatusOK, Body: mode}
	case port == candidate.ProxyHealthPort && (path == "/healthz" || path == "/livez"):
		overdue := !n.pending.IsZero() && now.Sub(n.pending) >= 2*n.period && !n.faults.On(fault.OverdueHealthy)
		healthy := n.programmed != nil && !overdue && (path == "/livez" || !n.Draining || n.faults.On(fault.DrainIgnored))
		if n.faults.On(fault.HealthzAlwaysFails) || path == "/livez" && n.Draining && n.faults.On(fault.LivezFollowsNode) {
			healthy = false
		}
		code := http.StatusOK
		if !healthy {
			code = http.StatusServiceUnavailable
		}
		body, _ := json.Marshal(map[string]any{"lastUpdated": now, "currentTime": now, "nodeEligible": !n.Draining}) // of plain values
		return &candidate.HTTPAnswer{Code: code, Body: string(body)}
	}
	return nil
}

// metrics are what kube-proxy exports under these names, as far as the specification speaks of them.
func (n *Node) metrics() string {
	var b strings.Builder
	syncs := n.syncs
	if n.faults.On(fault.SyncMetricFrozen) {
		syncs = 1
	}
	histogram := func(name string, count int) {
		fmt.Fprintf(&b, "# TYPE %s histogram\n%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", name, name, count, name, float64(count)*1e-6, name, count)
	}
	if !n.faults.On(fault.SyncMetricMissing) {
		histogram("kubeproxy_sync_proxy_rules_duration_seconds", syncs)
	}
	programmed := n.changes
	if n.faults.On(fault.ProgrammingMetricFrozen) {
		programmed = 0
	}
	histogram("kubeproxy_network_programming_duration_seconds", programmed)
	failures := n.failures
	if n.faults.On(fault.RestoreFailuresGrow) {
		failures = n.syncs
	}
	if !n.faults.On(fault.RestoreMetricsMissing) {
		fmt.Fprintf(&b, "# TYPE kubeproxy_sync_proxy_rules_iptables_restore_failures_total counter\nkubeproxy_sync_proxy_rules_iptables_restore_failures_total %d\n", failures)
		fmt.Fprintf(&b, "# TYPE kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total counter\nkubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total %d\n", failures)
	}
	internal, external := n.withoutLocal()
	fmt.Fprintf(&b, "# TYPE kubeproxy_sync_proxy_rules_no_local_endpoints_total gauge\n")
	fmt.Fprintf(&b, "kubeproxy_sync_proxy_rules_no_local_endpoints_total{traffic_policy=\"internal\"} %d\n", internal)
	fmt.Fprintf(&b, "kubeproxy_sync_proxy_rules_no_local_endpoints_total{traffic_policy=\"external\"} %d\n", external)
	return b.String()
}

// withoutLocal counts the Services that have endpoints, and under a Local policy none on this node (KEP-2086).
func (n *Node) withoutLocal() (internal, external int) {
	if n.programmed == nil || n.faults.On(fault.NoLocalMetricZero) {
		return 0, 0
	}
	for _, s := range n.programmed.services {
		for _, sp := range s.ports {
			all := append(append([]*Endpoint{}, sp.v4...), sp.v6...)
			if len(n.clusterEndpoints(all)) == 0 || len(n.localEndpoints(all)) > 0 {
				continue
			}
			if local(&s.Spec, ClusterIP) {
				internal++
			}
			if local(&s.Spec, NodePort) && s.Spec.Type != "ClusterIP" {
				external++
			}
			break
		}
	}
	return internal, external
}
