package check

import (
	"context"
	"net/netip"
	"strings"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
)

var _ = ginkgo.Describe("the pace of the controllers", func() {
	// slowly has the controllers list the plain pod once they were asked for it more often than idle times.
	slowly := func(net *Network, idle int) {
		net.virtual = false
		script.virtualIPs = []string{"10.96.0.9"}
		asked := 0
		script.listed = func() (all []netip.Addr) {
			if asked++; asked > idle {
				for a, pod := range script.pods {
					if strings.HasPrefix(pod.Name, "pace") {
						all = append(all, a)
					}
				}
			}
			return all
		}
	}
	told := func(text string) func(*testing.T, finding) {
		return func(t *testing.T, f finding) {
			for _, e := range f.Evidence {
				if e.Name == "pace" && strings.Contains(e.Value, text) {
					return
				}
			}
			t.Errorf("the evidence does not tell that %s: %+v", text, f.Evidence)
		}
	}
	holds := func(net *Network, demand func() bool) {
		ginkgo.GinkgoHelper()
		net.Converge(context.Background(), "a pod is listed", pacedBound, func(g gomega.Gomega) { g.Expect(demand()).To(gomega.BeTrue(), "listed") })
	}

	it("gives a demand more time where a plain pod took as long", func(_ context.Context, net *Network) {
		slowly(net, 3)
		holds(net, func() bool {
			script.mu.Lock()
			defer script.mu.Unlock()
			return len(script.pods) > 0 // the plain one is there: the demand is met late
		})
	}, judged{verdict: Conformant, look: told("follow a plain pod")})
	it("leaves a demand unmet where they follow a plain pod", func(_ context.Context, net *Network) {
		slowly(net, 0)
		holds(net, func() bool { return false })
	}, judged{verdict: NonConformant, message: []string{"a pod is listed", "listed"}, look: told("follow a plain pod")})
	it("leaves a demand unmet where they do nothing at all", func(_ context.Context, net *Network) {
		slowly(net, 1<<30)
		holds(net, func() bool { return false })
	}, judged{verdict: NonConformant, message: []string{"a pod is listed"}, look: told("do not follow a plain pod")})
})
