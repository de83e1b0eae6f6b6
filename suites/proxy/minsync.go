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

// syncedWithin demands that between two readings the proxy has not synced more often than it may with a time of at least period from
// the end of a sync to the start of the next.
func syncedWithin(before, after *metrics, period time.Duration) {
	ginkgo.GinkgoHelper()
	took := elapsed(before, after)
	bound := float64(int(took/period) + 1)
	first := before.perFamily(syncDuration+"_count", nil)
	syncs := map[string]float64{}
	for family, n := range after.perFamily(syncDuration+"_count", nil) {
		syncs[family] = n - first[family]
	}
	check.Record("syncs", "%v within %s, with a minSyncPeriod of %s", syncs, took, period)
	for family, n := range syncs {
		Expect(n).To(BeNumerically("<=", bound), "syncs of %s within %s, with a minSyncPeriod of %s", family, took, period)
	}
}

var _ = ginkgo.Describe("minSyncPeriod", func() {
	check.It(spec.ProxySyncMinPeriod, "passes between two syncs, and a change waits no longer than that", check.Also(spec.ProxySyncMinPeriodDelay), check.Long(),
		func(ctx context.Context, net *check.Network) {
			// A proxy that leaves changes to syncPeriod is late by far.
			const period, farAway = 2 * time.Second, "10m"
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: "iptables", MinSyncPeriod: period.String(), SyncPeriod: farAway})
			s := newSwitching(ctx, net, "app", node.Name)
			var gaps []time.Duration
			check.Deciding(func() { gaps = s.pace(ctx, node.Name, 2, period+check.ConvergenceBound, nil) }, spec.ProxySyncMinPeriodDelay)
			check.Deciding(func() {
				Expect(slices.Min(gaps)).To(BeNumerically(">=", period), "the time between syncs that brought two changes, at most; minSyncPeriod is %s", period)
			}, spec.ProxySyncMinPeriod)
		})

	check.It(spec.ProxySyncMergesChanges, "merges a hundred changes into few syncs, and loses none", check.Also(spec.ProxySyncMinPeriod), check.Long(),
		check.Needs(spec.ProxyMetrics),
		func(ctx context.Context, net *check.Network) {
			const services, rounds, period = 25, 4, 3 * time.Second
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: "iptables", MinSyncPeriod: period.String()})
			pods := net.Backends(ctx, "app", net.Node(0), net.Node(1), net.Node(2))
			svcs, endpointSlices := make([]*corev1.Service, services), make([]*discoveryv1.EndpointSlice, services)
			for i := range services {
				svcs[i] = exposeSelectorless(ctx, net, fmt.Sprintf("app-%d", i))
				endpointSlices[i] = net.CreateSlice(ctx, net.Slice(svcs[i], pods[0]))
			}
			calls := func(pod candidate.Pod) []check.Case {
				var cases []check.Case
				for _, svc := range svcs {
					cases = append(cases, check.Case{From: check.Host(node.Name), To: check.At(svc, exposedPort), Want: check.AnsweredBy(pod), Shots: 1})
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

	check.It(spec.ProxySyncMinPeriodDefault, "is one second where the configuration does not name it, and one of zero lets one sync follow another at once",
		check.Also(spec.ProxySyncMinPeriodZero), check.Needs(spec.ProxyMetrics), check.Alone(),
		func(ctx context.Context, net *check.Network) {
			const second = time.Second
			unnamed := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: "iptables", MinSyncPeriod: "default"})
			zero := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: "iptables", MinSyncPeriod: "0s"})
			s := newSwitching(ctx, net, "app", unnamed.Name, zero.Name)
			check.Deciding(func() {
				const changes = 3
				before := metricsOf(ctx, net, unnamed.Name)
				gaps := s.pace(ctx, unnamed.Name, changes, check.ConvergenceBound, func(gap time.Duration) bool { return gap < 2*second })
				Expect(slices.Min(gaps)).To(BeNumerically(">=", second), "the time between syncs that brought two changes, at most; minSyncPeriod is not set")
				if slices.Min(gaps) >= 2*second {
					s.mustHaveWaited(before, metricsOf(ctx, net, unnamed.Name), gaps, 2*second-second/4)
				}
				Expect(slices.Min(gaps)).To(BeNumerically("<", 2*second),
					"the shortest time between syncs that brought two changes, out of %d; minSyncPeriod is not set", changes)
			}, spec.ProxySyncMinPeriodDefault)
			check.Deciding(func() {
				// The shortest time that stands for a period which somebody waits for; one second is the default.
				const waiting, changes = 900 * time.Millisecond, 2
				before := metricsOf(ctx, net, zero.Name)
				gaps := s.pace(ctx, zero.Name, changes, check.ConvergenceBound, func(gap time.Duration) bool { return gap < waiting })
				if slices.Min(gaps) >= waiting {
					s.mustHaveWaited(before, metricsOf(ctx, net, zero.Name), gaps, waiting/2)
				}
				Expect(slices.Min(gaps)).To(BeNumerically("<", waiting),
					"the shortest time between syncs that brought two changes, out of %d, with a minSyncPeriod of 0s", changes)
			}, spec.ProxySyncMinPeriodZero)
		})

	check.It(spec.ProxySyncConfigurable, "is that of the file on each node", check.Needs(spec.ProxyMetrics), check.Long(),
		func(ctx context.Context, net *check.Network) {
			const slow, changes = 5 * time.Second, 10
			slowly := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: "iptables", MinSyncPeriod: slow.String(), SyncPeriod: "20s"})
			quickly := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: "iptables", MinSyncPeriod: "200ms", SyncPeriod: "20s"})
			s := newSwitching(ctx, net, "app", slowly.Name, quickly.Name)
			before := metricsOf(ctx, net, slowly.Name)
			s.pace(ctx, quickly.Name, changes, check.ConvergenceBound, nil)
			after := metricsOf(ctx, net, slowly.Name)
			syncedWithin(before, after, slow)
		})
})
