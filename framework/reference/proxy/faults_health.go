package proxy

import (
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// What can be wrong with health check node ports.
var healthCheckFaults = []wrong{
	{fault.HealthCheckCountsTerminating, func(b *book) {
		b.countsForHealth.Wrap(func(right func(*Node, *Endpoint) bool) func(*Node, *Endpoint) bool {
			return func(n *Node, e *Endpoint) bool { return right(n, e) || e.Terminating && e.Serving && n.isLocal(e) }
		})
	}},
	{fault.HealthCheckFirstPort, func(b *book) {
		b.healthPorts.Replace(func(s *service) []*servicePort { return s.ports[:min(1, len(s.ports))] })
	}},
	{fault.HealthCheckCountsUnready, func(b *book) { b.countsForHealth.Replace((*Node).isLocal) }},
	{fault.HealthCheckCountsRemote, func(b *book) { b.countsForHealth.Replace(func(_ *Node, e *Endpoint) bool { return e.Ready }) }},
	{fault.HealthCheckAlwaysOK, func(b *book) { b.healthCode.Replace(func(*Node, int) int { return http.StatusOK }) }},
	{fault.DrainFailsHealthCheck, func(b *book) {
		b.healthCode.Wrap(func(right func(*Node, int) int) func(*Node, int) int {
			return func(n *Node, count int) int {
				if n.Draining {
					return http.StatusServiceUnavailable
				}
				return right(n, count)
			}
		})
	}},
	{fault.HealthCheckOnEveryAddress, func(b *book) { b.healthOn.Replace(func(*Node, netip.Addr) bool { return true }) }},
	{fault.HealthCheckPortGivenUp, func(b *book) {
		type place struct {
			node *Node
			of   types.UID
		}
		given := map[place]bool{}
		b.healthOpened.Wrap(func(right func(*Node, *service, bool) bool) func(*Node, *service, bool) bool {
			return func(n *Node, s *service, taken bool) bool {
				at := place{n, s.UID}
				given[at] = given[at] || taken
				return right(n, s, given[at])
			}
		})
	}},
	{fault.HealthCheckNoWeight, func(b *book) {
		b.healthAnswer.Wrap(func(right func(*service, int) *candidate.HTTPAnswer) func(*service, int) *candidate.HTTPAnswer {
			return func(s *service, count int) *candidate.HTTPAnswer {
				answer := right(s, count)
				delete(answer.Header, weightHeader)
				return answer
			}
		})
	}},
	{fault.HealthCheckWrongCount, func(b *book) { // in the body only
		b.healthAnswer.Wrap(func(right func(*service, int) *candidate.HTTPAnswer) func(*service, int) *candidate.HTTPAnswer {
			return func(s *service, count int) *candidate.HTTPAnswer {
				answer := right(s, count+1)
				answer.Header[weightHeader] = []string{strconv.Itoa(count)}
				return answer
			}
		})
	}},
}

// What can be wrong with the health of the proxy, and with its metrics.
var healthFaults = []wrong{
	{fault.HealthzOnLoopback, func(b *book) { b.healthAddress.Replace(func(loopback bool) bool { return loopback }) }},
	{fault.OverdueHealthy, func(b *book) { b.overdue.Off() }},
	{fault.DrainIgnored, func(b *book) { b.healthz.Replace((*Node).upToDate) }},
	{fault.HealthzAlwaysFails, func(b *book) {
		b.healthz.Off()
		b.livez.Off()
	}},
	{fault.LivezFollowsNode, func(b *book) {
		b.livez.Wrap(func(right reporting) reporting {
			return func(n *Node, now time.Time) bool { return right(n, now) && !n.Draining }
		})
	}},

	{fault.SyncMetricMissing, func(b *book) { rule.Find(b.metrics, syncMetric.Name).Off() }},
	{fault.SyncMetricFrozen, measured(syncMetric, func(*Node) string { return syncDurations(1) })},
	{fault.ProgrammingMetricFrozen, measured(programmingMetric, func(*Node) string { return programmingDurations(0) })},
	{fault.RestoreMetricsMissing, func(b *book) { rule.Find(b.metrics, restoreMetrics.Name).Off() }},
	{fault.RestoreFailuresGrow, measured(restoreMetrics, func(n *Node) string { return restoreFailures(n.syncs) })},
	{fault.NoLocalMetricZero, measured(noLocalMetric, func(*Node) string { return withoutLocalEndpoints(0, 0) })},
}

// measured is a fault: a metric says something else.
func measured(r rule.Rule[measuring], wrong measuring) func(*book) {
	return func(b *book) { rule.Find(b.metrics, r.Name).Replace(wrong) }
}
