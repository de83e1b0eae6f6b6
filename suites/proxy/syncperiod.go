package proxy

import (
	"context"
	"net/netip"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// The period that is configured; the bound on repairs, half of kube-proxy's default period; and how long rules are left
// alone after a repair. A proxy that notices a loss by something of its own must put that there again.
const interferencePeriod, repairBound, leftAlone = 2 * time.Second, 15 * time.Second, 12 * time.Second

// interfered is a node whose proxy has nothing to do. So only what it does by itself brings back rules that somebody
// has meddled with.
type interfered struct {
	net   *check.Network
	node  candidate.Node
	from  candidate.Client
	to    netip.AddrPort // its cluster IP
	paths []check.Case
}

// newInterfered adds the node and exposes a Service that is served there.
func newInterfered(ctx context.Context, net *check.Network) *interfered {
	ginkgo.GinkgoHelper()
	node := net.AddNode(ctx, candidate.ProxyConfiguration{Mode: candidate.IPTables, SyncPeriod: interferencePeriod.String()})
	pods, client := net.Backends(ctx, "app", net.Node(0), net.Node(1)), net.ClientPod(ctx, node.Name)
	svc := net.Expose(ctx, exposed("app", onNodePorts()))
	paths := slices.Concat(
		eachWay(check.ServiceAddress(svc, exposedPort), check.AnsweredByEach(pods...), client, check.Host(node.Name)),
		nodePortsAt(primaryOf(net, node), node.Name, svc, check.AnsweredByEach(pods...)))
	net.Expect(ctx, "the Service is created", paths...)
	begun := time.Now()
	settled(ctx, net, pods[0], check.Host(node.Name))
	if took := time.Since(begun); took > net.Patiently(repairBound/2) {
		check.Abort("the machine is too slow: an ordinary change took %s to arrive at %s, and rules are to be back within %s", took, node.Name, net.Patiently(repairBound))
	}
	// Changes that others make bring the rules back too: nothing of them may reach the node, and what has reached it must be programmed.
	check.Must(net.OwnNodes().Interfere(ctx, node.Name, candidate.CutOff))
	net.Pass(ctx, interferencePeriod)
	return &interfered{net: net, node: node, from: client, to: check.ServiceAddress(svc, exposedPort), paths: paths}
}

// served reports whether one connection is answered.
func (i *interfered) served(ctx context.Context) bool {
	ginkgo.GinkgoHelper()
	return i.net.Send(ctx, candidate.Probe{From: i.from, To: i.to, Protocol: corev1.ProtocolTCP})[0][0].Result == candidate.Answered
}

// by interferes until the node serves no more, for the rules may be back before anybody looks.
func (i *interfered) by(ctx context.Context, what candidate.Interference) {
	ginkgo.GinkgoHelper()
	for range 3 {
		check.Must(i.net.OwnNodes().Interfere(ctx, i.node.Name, what))
		if !i.served(ctx) {
			return
		}
		i.net.Pass(ctx, leftAlone)
	}
	check.Abort("%s served whatever was done to it: %s", i.node.Name, what)
}

var _ = ginkgo.Describe("syncPeriod", func() {
	check.It(spec.ProxySyncPeriodInterference, "of two seconds brings flushed rules back within fifteen", check.Long(),
		check.Also(spec.ProxySyncConfigurable),
		func(ctx context.Context, net *check.Network) {
			i := newInterfered(ctx, net)
			i.by(ctx, candidate.FlushRules)
			net.ExpectWithin(ctx, "somebody flushes the rules", repairBound, i.paths...)
			net.Pass(ctx, leftAlone)
			i.by(ctx, candidate.FlushRules)
			net.ExpectWithin(ctx, "somebody flushes the rules once more", repairBound, i.paths...)
		})

	check.It(spec.ProxySyncPeriodInterference, "of two seconds brings rules back within fifteen that somebody flushes again and again", check.Long(),
		func(ctx context.Context, net *check.Network) {
			const look = 20 * time.Millisecond
			i := newInterfered(ctx, net)
			i.by(ctx, candidate.FlushRules)
			for range 3 {
				for waited := time.Duration(0); waited < repairBound && !i.served(ctx); waited += look {
					net.Pass(ctx, look)
				}
				check.Must(net.OwnNodes().Interfere(ctx, i.node.Name, candidate.FlushRules))
			}
			net.ExpectWithin(ctx, "somebody flushes the rules whenever they are back", repairBound, i.paths...)
		})

	check.It(spec.ProxySyncPeriodInterference, "of two seconds brings back within fifteen single rules that somebody deleted", check.Long(),
		func(ctx context.Context, net *check.Network) {
			i := newInterfered(ctx, net)
			i.by(ctx, candidate.DropRules)
			net.ExpectWithin(ctx, "somebody deletes the rules of cluster IPs", repairBound, i.paths...)
		})
})
