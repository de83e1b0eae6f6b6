package allocation

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

const (
	// goings is for how many updates clients wait a little longer than for the one before, for the last one longer than an update takes.
	goings = 24
	// goingsAgain is how often they do so at most until some have gone in the middle of an update, and fewGone how many are enough. Of a server that always answers
	// before, nothing is asked.
	goingsAgain, fewGone = 8, 3
)

var _ = ginkgo.Describe("updates whose client goes away", func() {
	of := func(u updated, options ...any) {
		check.It(spec.AllocCutUpdateLeaksNothing, "leaves "+u.what+" free, or is made", append(options, u.isOfOne)...)
	}
	of(fromAlias)
	of(secondFamily, check.DualStack())
	of(portOfNewType)
	of(furtherPort)
	of(healthPort, check.Claiming(spec.FeatureHealthCheckNodePort))
})

// isOfOne demands of updates whose client did not wait for the answer that what they ask for is the Service's, or can be had by another one.
func (u updated) isOfOne(ctx context.Context, cp *check.ControlPlane) {
	stored, cut, sent := 0, 0, 0
	var whole time.Duration // what an update takes that a client waits for
	started := time.Now()
	for i := 0; cut < fewGone && i <= goings*goingsAgain || i <= goings && time.Since(started) < roundsTime; i++ {
		before := cp.Arrange(ctx, check.Service(cp.Name("updated"), u.from...))
		w := u.wants(ctx, cp, cp.FreeNodePorts(ctx, 1)[0], 0)
		patience := whole * time.Duration(1+i%goings) * 3 / 2 / goings
		short, gone := context.WithTimeout(ctx, patience)
		if i == 0 {
			gone()
			short, gone = context.WithCancel(ctx)
		}
		began := time.Now()
		_, err := cp.Ask(short, http.MethodPatch, cp.Path(before.Name), merge, []byte(body("", u.fields(before, w))))
		gone()
		sent++
		switch took := time.Since(began); {
		case i == 0:
			check.Must(err)
			whole = took
		case err == nil:
			whole = min(whole, took)
		default:
			cut++
		}
		next := w.next(cp)
		check.Converge(ctx, fmt.Sprintf("%s is the Service's, or free", u.what), named, func(g Gomega) {
			now := cp.Get(ctx, before.Name)
			g.Expect(now).To(check.BeAccepted())
			if w.isHeldBy(now.Service) {
				stored++
				return
			}
			g.Expect(cp.Create(ctx, next)).To(check.BeAccepted(), "%s, which the update of %s had asked for, whose client went away after %s", u.what, before.Name, patience)
		})
		cp.Do(ctx, http.MethodDelete, cp.Path(next.Name), "", nil)
		Expect(cp.Delete(ctx, before.Name)).To(check.BeAccepted())
	}
	check.Record("updates", "%d, of which %d were made, and the client of %d went away", sent, stored, cut)
}

// isHeldBy reports whether a Service has what an update asked for.
func (w *wanted) isHeldBy(svc *corev1.Service) bool {
	if w.ip != "" {
		return slices.Contains(addressesHeld(svc), w.ip)
	}
	return svc.Spec.HealthCheckNodePort == w.port || slices.ContainsFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool { return p.NodePort == w.port })
}
