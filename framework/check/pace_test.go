package check

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
)

// pacedBound is the bound of the demands here, which wait on a real clock.
const pacedBound = 50 * time.Millisecond

var _ = ginkgo.Describe("the pace of nodes", func() {
	plain := netip.MustParseAddrPort("10.96.0.9:80")
	// served has all nodes but the last one serve the demand. The nodes that follows names serve the plain Service, as
	// soon as it says so.
	served := func(net *Network, last string, follows func(node string) bool, demand func() bool) {
		net.virtual = false
		script.virtualIPs = []string{plain.Addr().String()}
		script.shots = func(p candidate.Probe, _ int) candidate.Outcome {
			sender, _, _ := strings.Cut(p.From.Pod.Name, "-client-") // the pod that was lent is called by its node
			switch {
			case p.To == vip && (p.From.Node != last || demand()):
				return by("backend")
			case p.To == plain && follows(sender):
				for _, pod := range script.pods {
					if strings.HasPrefix(pod.Name, "pace") {
						return candidate.Outcome{Result: candidate.Answered, Pod: pod.PodName, PodPort: BackendPort}
					}
				}
			}
			return script.honest(p)
		}
	}
	cases := func(nodes ...string) (all []Case) {
		for _, node := range nodes {
			all = append(all, Case{From: Host(node), To: vip, Want: AnsweredBy(podNamed("backend"))})
		}
		return all
	}
	never := func() bool { return false }
	everywhere := func(string) bool { return true }
	nowhere := func(string) bool { return false }
	hasPace := func(t *testing.T, f finding) {
		for _, e := range f.Evidence {
			if e.Name == "pace" {
				return
			}
		}
		t.Errorf("the evidence does not tell the pace: %+v", f.Evidence)
	}

	it("makes a demand unknown that one node does not meet, where that node follows nothing else either", func(ctx context.Context, net *Network) {
		served(net, "node-2", func(node string) bool { return node != "node-2" }, never)
		net.ExpectWithin(ctx, "the Service is created", pacedBound, cases("node-0", "node-1", "node-2")...)
	}, judged{verdict: Unknown, reason: "the nodes node-2 do not serve a plain Service"})
	it("leaves a demand unmet that one node does not meet, where that node follows a plain Service", func(ctx context.Context, net *Network) {
		served(net, "node-2", everywhere, never)
		net.ExpectWithin(ctx, "the Service is created", pacedBound, cases("node-0", "node-2")...)
	}, judged{verdict: NonConformant, message: []string{"node-2"}, look: hasPace})
	it("leaves a demand unmet that no node meets, where none follows a plain Service", func(ctx context.Context, net *Network) {
		served(net, "node-2", nowhere, never)
		net.ExpectWithin(ctx, "the Service is created", pacedBound, cases("node-2")...)
	}, judged{verdict: NonConformant, message: []string{"node-2"}})
	it("gives a demand more time where a plain Service took as long", func(ctx context.Context, net *Network) {
		exposed := false
		served(net, "node-2", func(string) bool { exposed = true; return true }, func() bool { return exposed })
		net.ExpectWithin(ctx, "the Service is created", pacedBound, cases("node-0", "node-2")...)
	}, judged{verdict: Conformant, look: hasPace})
})
