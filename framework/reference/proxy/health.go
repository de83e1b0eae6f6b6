package proxy

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// HealthCheck answers a GET on a port of an address of the node if it is the health check node port of a Service. Who asks at an address of IPv6 learns of endpoints of
// IPv6. Who asks for another path than candidate.HealthCheckPath learns nothing. It returns nil for every other port, and where a program of the node has the port.
func (n *Node) HealthCheck(at netip.AddrPort, path string, taken bool) *candidate.HTTPAnswer {
	if n.programmed == nil {
		return nil
	}
	ipv6 := at.Addr().Unmap().Is6()
	s := n.programmed.healths[int(at.Port())]
	if s == nil || !n.running || !n.healthOn.Do(n, at.Addr()) || !n.healthOpened.Do(n, s, taken) {
		return nil
	}
	if path != candidate.HealthCheckPath {
		return &candidate.HTTPAnswer{Code: http.StatusNotFound}
	}
	seen := map[netip.Addr]bool{}
	for _, sp := range n.healthPorts.Do(s) {
		for _, e := range sp.endpoints(ipv6) {
			if n.countsForHealth.Do(n, e) {
				seen[e.Address.Addr()] = true
			}
		}
	}
	answer := n.healthAnswer.Do(s, len(seen))
	answer.Code = n.healthCode.Do(n, len(seen))
	return answer
}

// Rules for health check node ports.
var (
	countsForHealth = rule.New("proxy-health-check-counts-ready", func(n *Node, e *Endpoint) bool {
		return e.Ready && n.isLocal(e)
	}, spec.ProxyHealthCheckLocalEndpoints, spec.ProxyTerminatingHealthCheckFails)

	// nodePortAddresses are for them, too.
	healthOn = rule.New("proxy-health-check-on-address", func(n *Node, a netip.Addr) bool {
		return len(n.config.NodePortAddresses) == 0 || n.servesNodePorts.Do(n, a)
	}, spec.ProxyHealthCheckNodePortAddresses)

	// The proxy opens the port when it can.
	healthOpened = rule.New("proxy-health-check-port-opened", func(_ *Node, _ *service, taken bool) bool { return !taken }, spec.ProxyHealthCheckLocalEndpoints)

	// Each port may have pods of its own.
	healthPorts = rule.New("proxy-health-check-every-port", func(s *service) []*servicePort { return s.ports }, spec.ProxyHealthCheckLocalEndpoints)

	// The node's endpoints alone decide, not whether the node is about to go.
	healthCode = rule.New("proxy-health-check-code", func(_ *Node, count int) int {
		return codeOf(count > 0)
	}, spec.ProxyHealthCheckLocalEndpoints, spec.ProxyTerminatingHealthCheckFails, spec.ProxyNodeDrainHealthCheckPort)

	healthAnswer = rule.New("proxy-health-check-answer", func(s *service, count int) *candidate.HTTPAnswer {
		body, _ := json.Marshal(map[string]any{ // of plain values
			"service": map[string]string{"namespace": s.Namespace, "name": s.Name}, "localEndpoints": count, "serviceProxyHealthy": true,
		})
		return &candidate.HTTPAnswer{Header: map[string][]string{"Content-Type": {"application/json"}, weightHeader: {strconv.Itoa(count)}}, Body: string(body)}
	}, spec.ProxyHealthCheckResponse)
)

// weightHeader has the number of local endpoints.
const weightHeader = "X-Load-Balancing-Endpoint-Weight"

func codeOf(healthy bool) int {
	if healthy {
		return http.StatusOK
	}
	return http.StatusServiceUnavailable
}

// Serve answers a GET on the proxy's own ports: its metrics, on loopback, and its health. It returns nil for every other port.
func (n *Node) Serve(now time.Time, loopback bool, port int, path string) *candidate.HTTPAnswer {
	if !n.running {
		return nil
	}
	switch {
	case port == candidate.ProxyMetricsPort && loopback && path == "/metrics":
		return &candidate.HTTPAnswer{Code: http.StatusOK, Body: n.exported()}
	case port == candidate.ProxyMetricsPort && loopback && path == "/proxyMode":
		return &candidate.HTTPAnswer{Code: http.StatusOK, Body: cmp.Or(n.config.Mode, "iptables")}
	case port == candidate.ProxyHealthPort && !n.healthAddress.Do(loopback):
	case port == candidate.ProxyHealthPort && path == "/healthz":
		return n.health(now, n.healthz.Do(n, now))
	case port == candidate.ProxyHealthPort && path == "/livez":
		return n.health(now, n.livez.Do(n, now))
	}
	return nil
}

func (n *Node) health(now time.Time, healthy bool) *candidate.HTTPAnswer {
	body, _ := json.Marshal(map[string]any{"lastUpdated": now, "currentTime": now, "nodeEligible": !n.Draining}) // of plain values
	return &candidate.HTTPAnswer{Code: codeOf(healthy), Body: string(body)}
}

// Rules for the health of the proxy.
var (
	healthAddress = rule.New("proxy-health-on-every-address", func(bool) bool { return true }, spec.ProxyHealthz)

	healthz = rule.New("proxy-health-with-node", func(n *Node, now time.Time) bool {
		return n.upToDate(now) && !n.Draining
	}, spec.ProxyHealthz, spec.ProxyNodeDrainHealth)

	livez = rule.New("proxy-health-without-node", (*Node).upToDate, spec.ProxyHealthz)

	overdue = rule.New("proxy-sync-overdue", func(n *Node, now time.Time) bool {
		return !n.pending.IsZero() && now.Sub(n.pending) >= 2*n.period
	}, spec.ProxyHealthz)
)

// upToDate reports whether something is programmed and no sync is overdue.
func (n *Node) upToDate(now time.Time) bool { return n.programmed != nil && !n.overdue.Do(n, now) }

// exported are the metrics, as far as the specification speaks of them.
func (n *Node) exported() string {
	var b strings.Builder
	for i := range n.metrics {
		b.WriteString(n.metrics[i].Do(n))
	}
	return b.String()
}

// Rules for the metrics.
var (
	syncMetric = rule.New("proxy-metric-of-syncs", func(n *Node) string {
		return syncDurations(n.syncs)
	}, spec.ProxySyncDurationMetric, spec.ProxySyncMinPeriod)

	programmingMetric = rule.New("proxy-metric-of-network-programming", func(n *Node) string {
		return programmingDurations(n.changes)
	}, spec.ProxyProgrammingDurationMetric)

	restoreMetrics = rule.New("proxy-metrics-of-failed-restores", func(n *Node) string {
		return restoreFailures(n.failures)
	}, spec.ProxyRestoreFailuresMetric, spec.ProxyPartialRestoreFailuresMetric, spec.ProxyRestoreFailuresNone)

	noLocalMetric = rule.New("proxy-metric-of-no-local-endpoints", func(n *Node) string {
		return withoutLocalEndpoints(n.withoutLocal())
	}, spec.ProxyNoLocalEndpointsMetric)
)

// The metrics have the names that kube-proxy exports them under.
func syncDurations(count int) string {
	return histogram("kubeproxy_sync_proxy_rules_duration_seconds", count)
}

func programmingDurations(count int) string {
	return histogram("kubeproxy_network_programming_duration_seconds", count)
}

func restoreFailures(count int) string {
	return counter("kubeproxy_sync_proxy_rules_iptables_restore_failures_total", count) +
		counter("kubeproxy_sync_proxy_rules_iptables_partial_restore_failures_total", count)
}

func withoutLocalEndpoints(internal, external int) string {
	const name = "kubeproxy_sync_proxy_rules_no_local_endpoints_total"
	return fmt.Sprintf("# TYPE %s gauge\n%s{traffic_policy=\"internal\"} %d\n%s{traffic_policy=\"external\"} %d\n", name, name, internal, name, external)
}

func histogram(name string, count int) string {
	return fmt.Sprintf("# TYPE %s histogram\n%s_bucket{le=\"+Inf\"} %d\n%s_sum %g\n%s_count %d\n", name, name, count, name, float64(count)*1e-6, name, count)
}

func counter(name string, count int) string {
	return fmt.Sprintf("# TYPE %s counter\n%s %d\n", name, name, count)
}

// withoutLocal counts the Services that have endpoints, and under a Local policy none on this node (KEP-2086).
func (n *Node) withoutLocal() (internal, external int) {
	if n.programmed == nil {
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
