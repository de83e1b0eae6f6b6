package proxy

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// quiet makes Services of several kinds, which do not change. It returns calls to all of them by way of the first node, and one of a
// kind that every single connection answers to.
func quiet(ctx context.Context, net *check.Network) (all []check.Case, steady check.Case) {
	ginkgo.GinkgoHelper()
	pods, clients := backendsAndClients(ctx, net, "quiet", net.Node(0), net.Node(1))
	external := net.ExternalAddress()
	plain := net.Expose(ctx, exposed("plain", selecting("quiet"), onNodePorts(), onExternalIPs(external)))
	faithful := net.Expose(ctx, exposed("sticky", selecting("quiet"), sticky()))
	local := net.Expose(ctx, exposed("local", selecting("quiet"), onNodePorts(), internalLocal, externalLocal))
	empty := net.Expose(ctx, exposed("empty"))
	each, near := check.AnsweredByEach(pods...), onlyBy(len(pods), pods[0])
	from := []candidate.Client{clients[0], check.Host(net.Node(0))}
	steady = check.Case{From: check.Host(net.Node(0)), To: check.ServiceAddress(plain, exposedPort), Want: check.AnsweredBy(pods...)}
	all = slices.Concat(
		eachWay(check.ServiceAddress(plain, exposedPort), each, from...), arrivals(net, 0, plain, nil, each),
		calls(check.Outside(net.Node(0)), []netip.Addr{external}, each),
		eachWay(check.ServiceAddress(faithful, exposedPort), check.AlwaysBySame(pods...), from...),
		eachWay(check.ServiceAddress(local, exposedPort), near, from...), arrivals(net, 0, local, nil, near),
		once(eachWay(check.ServiceAddress(empty, exposedPort), check.Unanswered(), clients[0])))
	return all, steady
}

// churn makes Services, changes them and deletes them, in several ways each, and demands that the first node follows each time.
func churn(ctx context.Context, net *check.Network, s *switching, rounds int) {
	ginkgo.GinkgoHelper()
	for i := range rounds {
		s.change(ctx)
		name := fmt.Sprintf("passing-%d", i)
		passing := net.Expose(ctx, exposed(name, withoutSelector(), onNodePorts()))
		slice := net.CreateSlice(ctx, net.Slice(passing, s.pods...))
		to := func(port int32, want check.Want) check.Case {
			return check.Case{From: check.Host(net.Node(0)), To: check.ServiceAddress(passing, port), Want: want}
		}
		net.Expect(ctx, "a Service is created and another one changed", s.call(net.Node(0)), to(exposedPort, check.AnsweredByEach(s.pods...)))
		switch i % 3 {
		case 0:
			net.Change(ctx, name, `{"spec":{"ports":[{"name":"tcp","protocol":"TCP","port":81,"targetPort":8080}]}}`)
			net.Expect(ctx, "the port of a Service changes", to(81, check.AnsweredByEach(s.pods...)))
		case 1:
			net.Change(ctx, name, `{"spec":{"sessionAffinity":"ClientIP"}}`)
			net.Expect(ctx, "a Service becomes sticky", to(exposedPort, check.AlwaysBySame(s.pods...)))
		}
		net.Unexpose(ctx, name)
		net.DeleteSlice(ctx, slice)
	}
}

var _ = ginkgo.Describe("an update that writes only what changed", func() {
	check.It(spec.ProxyPartialSyncComplete, "leaves other Services alone", check.Long(),
		func(ctx context.Context, net *check.Network) {
			s := newSwitching(ctx, net, "app", net.Node(0))
			others, steady := quiet(ctx, net)
			net.Expect(ctx, "Services are created", others...)
			settled(ctx, net, s.pods[0], steady.From)
			unbroken(ctx, net, steady.To, steady.Want, func() { churn(ctx, net, s, 4) }, steady.From)
			net.Expect(ctx, "other Services come, change and go", others...)
		})

	check.It(spec.ProxyPartialSyncComplete, "leaves the same behaviour as a proxy that starts afresh", check.OwnNodes(2), check.Needs(spec.ProxyConfiguration), check.Long(),
		func(ctx context.Context, net *check.Network) {
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables})
			s := newSwitching(ctx, net, "app", node.Name)
			pods := net.Backends(ctx, "quiet", net.Node(0), net.Node(1))
			stays := net.Expose(ctx, exposed("quiet", onNodePorts()))
			goes := net.Expose(ctx, exposed("goes", selecting("quiet"), onNodePorts()))
			shrinks := net.Expose(ctx, exposed("shrinks", withoutSelector()))
			slice := net.CreateSlice(ctx, net.Slice(shrinks, pods...))
			each := check.AnsweredByEach(pods...)
			paths := func(by candidate.Node, going, shrinking check.Want) []check.Case {
				address := primaryOf(net, by)
				return slices.Concat([]check.Case{s.call(by.Name)},
					eachWay(check.ServiceAddress(stays, exposedPort), each, check.Host(by.Name)), nodePortsAt(address, by.Name, stays, each),
					eachWay(check.ServiceAddress(goes, exposedPort), going, check.Host(by.Name)), nodePortsAt(address, by.Name, goes, going),
					eachWay(check.ServiceAddress(shrinks, exposedPort), shrinking, check.Host(by.Name)))
			}
			net.Expect(ctx, "Services are created", paths(node, each, each)...)
			s.change(ctx)
			net.Unexpose(ctx, goes.Name)
			slice.Endpoints = net.Slice(shrinks, pods[1]).Endpoints
			net.UpdateSlice(ctx, slice)
			gone := notBy(pods...)
			net.Expect(ctx, "one Service changes, one goes, and one loses an endpoint", paths(node, gone, onlyBy(2, pods[1]))...)
			fresh := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables}) // its proxy writes everything
			net.Expect(ctx, "another proxy starts", append(paths(fresh, gone, onlyBy(2, pods[1])), paths(node, gone, onlyBy(2, pods[1]))...)...)
		})
})

var _ = ginkgo.Describe("the metrics of failed restores", func() {
	check.It(spec.ProxyRestoreFailuresMetric, "count a restore that fails, and none that succeeds", check.Also(spec.ProxyPartialRestoreFailuresMetric), check.Long(),
		check.Needs(spec.ProxyConfiguration),
		func(ctx context.Context, net *check.Network) {
			// When somebody has flushed the rules, and nothing looks after them for long, an update of one Service
			// fails: it refers to rules of others that are no longer there. The next one writes everything.
			node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables, SyncPeriod: "10m"})
			other := newSwitching(ctx, net, "other", node.Name)
			s := newSwitching(ctx, net, "app", node.Name)
			s.changeAndSee(ctx, node.Name, check.ConvergenceBound)
			// Rules of the other family are flushed too, and fail when Services of other checks change.
			failures := func(m *metrics, name string) float64 { return m.of(net.PrimaryFamily(), name, nil) }
			compare := func(now *metrics, operator string, then *metrics, when string) {
				ginkgo.GinkgoHelper()
				one := func(name string, id spec.ID) {
					ginkgo.GinkgoHelper()
					check.Deciding(func() {
						Expect(failures(now, name)).To(BeNumerically(operator, failures(then, name)), "%s %s", name, when)
					}, id)
				}
				one(restoreFailures, spec.ProxyRestoreFailuresMetric)
				one(partialRestoreFailures, spec.ProxyPartialRestoreFailuresMetric)
			}
			before := metricsOf(ctx, net, node.Name)
			compare(before, "==", &metrics{}, "before anything failed")
			check.Must(net.OwnNodes().Interfere(ctx, node.Name, candidate.FlushRules))
			s.change(ctx)
			failed := before
			for end := failed.answered.Add(net.Patiently(check.ConvergenceBound)); failed.answered.Before(end); failed = metricsOf(ctx, net, node.Name) {
				if failures(failed, restoreFailures) > 0 && failures(failed, partialRestoreFailures) > 0 {
					break
				}
				net.Pass(ctx, 10*lookAgain)
			}
			compare(failed, ">", before, "after an update that refers to rules that somebody has flushed")
			s.change(ctx)
			net.Expect(ctx, "another change is made", s.call(node.Name), other.call(node.Name))
			settled := metricsOf(ctx, net, node.Name)
			for range 3 {
				s.changeAndSee(ctx, node.Name, check.ConvergenceBound)
			}
			compare(metricsOf(ctx, net, node.Name), "==", settled, "after updates that succeeded")
		})

	check.It(spec.ProxyRestoreFailuresNone, "stay at zero while Services come, change and go", check.Timeout(5*time.Minute), check.Long(),
		func(ctx context.Context, net *check.Network) {
			s := newSwitching(ctx, net, "app", net.Node(0), net.Node(1), net.Node(2))
			others, _ := quiet(ctx, net)
			net.Expect(ctx, "Services are created", others...)
			churn(ctx, net, s, 3)
			for _, node := range net.Nodes() {
				m := metricsOf(ctx, net, node.Name)
				Expect(m.total(syncDuration+"_count")).NotTo(BeZero(), "syncs of %s", node.Name)
				Expect(m.total(restoreFailures)).To(BeZero(), "failed restores of %s", node.Name)
				Expect(m.total(partialRestoreFailures)).To(BeZero(), "failed partial restores of %s", node.Name)
			}
		})
})
