package proxy

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// syncedWithin looks at how often the proxy has synced between two readings. That is not more often than a time of at
// least period from the end of a sync to the start of the next allows.
func syncedWithin(before, after *metrics, period time.Duration) {
	ginkgo.GinkgoHelper()
	took := elapsed(before, after)
	bound := float64(int(took/period) + 1)
	first := before.perFamily(syncDuration+"_count", nil)
	syncs := map[string]float64{}
	for family, n := range after.perFamily(syncDuration+"_count", nil) {
		syncs[family] = n - first[family]
	}
	if len(syncs) == 0 {
		check.Abort("the proxy has no metric %s: how often it synced is not known", syncDuration)
	}
	check.Record("syncs", "%v within %s, with a minSyncPeriod of %s", syncs, took, period)
	for family, n := range syncs {
		Expect(n).To(BeNumerically("<=", bound), "syncs of %s within %s, with a minSyncPeriod of %s", family, took, period)
	}
}

var _ = ginkgo.Describe("minSyncPeriod", func() {
	check.It(spec.ProxySyncMinPeriod, "passes between two syncs, and a change does not wait for syncPeriod", check.Also(spec.ProxySyncMinPeriodDelay), check.Long(),
		func(ctx context.Context, net *check.Network) {
			// A proxy that leaves changes to syncPeriod is late by far.
			const period, farAway = 2 * time.Second, "10m"
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables, MinSyncPeriod: period.String(), SyncPeriod: farAway})
			s := newSwitching(ctx, net, "app", node.Name)
			var gaps []time.Duration
			check.Deciding(func() { gaps = s.pace(ctx, node.Name, 2, period+check.ConvergenceBound) }, spec.ProxySyncMinPeriodDelay)
			check.Deciding(func() {
				Expect(slices.Min(gaps)).To(BeNumerically(">=", period), "the time between syncs that brought two changes, at most; minSyncPeriod is %s", period)
			}, spec.ProxySyncMinPeriod)
		})

	check.It(spec.ProxySyncMergesChanges, "merges a hundred changes into few syncs, and loses none", check.Also(spec.ProxySyncMinPeriod), check.Long(),
		check.Needs(spec.ProxyMetrics),
		func(ctx context.Context, net *check.Network) {
			const services, rounds, period = 25, 4, 3 * time.Second
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables, MinSyncPeriod: period.String()})
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svcs, endpointSlices := make([]*corev1.Service, services), make([]*discoveryv1.EndpointSlice, services)
			for i := range services {
				svcs[i] = exposeSelectorless(ctx, net, fmt.Sprintf("app-%d", i))
				endpointSlices[i] = net.CreateSlice(ctx, net.Slice(svcs[i], pods[0]))
			}
			calls := func(pod candidate.Pod) []check.Case {
				var cases []check.Case
				for _, svc := range svcs {
					cases = append(cases, check.Case{From: check.Host(node.Name), To: check.ServiceAddress(svc, exposedPort), Want: check.AnsweredBy(pod), Shots: 1})
				}
				return cases
			}
			net.Expect(ctx, "Services are created", calls(pods[0])...)
			before := metricsOf(ctx, net, node.Name)
			for round := range rounds {
				for i, svc := range svcs {
					endpointSlices[i].Endpoints = net.Slice(svc, pods[(1+round)%len(pods)]).Endpoints
					endpointSlices[i] = net.UpdateSlice(ctx, endpointSlices[i])
				}
			}
			check.Deciding(func() {
				net.ExpectWithin(ctx, fmt.Sprintf("the endpoints of %d Services change %d times", services, rounds), period+check.ConvergenceBound,
					calls(pods[rounds%len(pods)])...)
			}, spec.ProxySyncMergesChanges)
			after := metricsOf(ctx, net, node.Name)
			check.Deciding(func() { syncedWithin(before, after, period) }, spec.ProxySyncMergesChanges, spec.ProxySyncMinPeriod)
		})

	check.It(spec.ProxySyncMinPeriodDefault, "is one second where the configuration does not name it, and one of zero lets one sync follow another at once", check.OwnNodes(2),
		check.Also(spec.ProxySyncMinPeriodZero), check.Needs(spec.ProxyMetrics), check.Alone(),
		func(ctx context.Context, net *check.Network) {
			const second = time.Second
			// The shortest time that stands for a period of zero that somebody waits for; one second is the default.
			const waiting = 900 * time.Millisecond
			start := func(name, period string, changes int, enough time.Duration) *paced {
				node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables, MinSyncPeriod: period}).Name
				return &paced{
					switching: switchingFor(ctx, net, name), node: node, changes: changes, within: check.ConvergenceBound,
					enough: func(gap time.Duration) bool { return gap < enough },
				}
			}
			unnamed, zero := start("unnamed", "default", 3, 2*second), start("zero", "0s", 2, waiting)
			net.Expect(ctx, "two Services are created", unnamed.call(unnamed.node), zero.call(zero.node))
			// Side by side: what changes for one node comes to the other as well, by the same sync or by one that waits as long.
			unnamedBefore, zeroBefore := metricsOf(ctx, net, unnamed.node), metricsOf(ctx, net, zero.node)
			paceAll(ctx, net, unnamed, zero)
			unnamedAfter, zeroAfter := metricsOf(ctx, net, unnamed.node), metricsOf(ctx, net, zero.node)
			check.Deciding(func() {
				shortest := slices.Min(unnamed.gaps)
				Expect(shortest).To(BeNumerically(">=", second), "the time between syncs that brought two changes, at most; minSyncPeriod is not set")
				if shortest >= 2*second {
					unnamed.mustHaveWaited(unnamedBefore, unnamedAfter, unnamed.gaps, 2*second-second/4)
				}
				Expect(shortest).To(BeNumerically("<", 2*second),
					"the shortest time between syncs that brought two changes, out of %d; minSyncPeriod is not set", unnamed.changes)
			}, spec.ProxySyncMinPeriodDefault)
			check.Deciding(func() {
				shortest := slices.Min(zero.gaps)
				if shortest >= waiting {
					zero.mustHaveWaited(zeroBefore, zeroAfter, zero.gaps, waiting/2)
				}
				Expect(shortest).To(BeNumerically("<", waiting),
					"the shortest time between syncs that brought two changes, out of %d, with a minSyncPeriod of 0s", zero.changes)
			}, spec.ProxySyncMinPeriodZero)
		})

	check.It(spec.ProxySyncConfigurable, "is that of the file on each node", check.OwnNodes(2), check.Needs(spec.ProxyMetrics), check.Long(),
		func(ctx context.Context, net *check.Network) {
			const slow, changes = 5 * time.Second, 10
			slowly := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables, MinSyncPeriod: slow.String(), SyncPeriod: "20s"})
			quickly := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables, MinSyncPeriod: "200ms", SyncPeriod: "20s"})
			s := newSwitching(ctx, net, "app", slowly.Name, quickly.Name)
			before := metricsOf(ctx, net, slowly.Name)
			s.pace(ctx, quickly.Name, changes, check.ConvergenceBound)
			after := metricsOf(ctx, net, slowly.Name)
			syncedWithin(before, after, slow)
		})
})
