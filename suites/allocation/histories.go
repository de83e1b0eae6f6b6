package allocation

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
	"github.com/service-conformance/conformance/internal/history"
)

const (
	// storied is a range with 29 addresses besides that of the Service "kubernetes", and with both bands. storiedFurther is that of ServiceCIDR objects that come and go.
	storied, storiedFurther = "10.96.32.0/27", "10.96.33.0/29"
	// storyClients is how many clients send requests at the same time, and storyLength how many requests they send together at most.
	storyClients, storyLength = 6, 1800
	// storyTime bounds how long they do so where requests take their time.
	storyTime = 10 * time.Second
	// storyDecided bounds how long it takes to decide about one address or Service.
	storyDecided = 20 * time.Second
)

var _ = ginkgo.Describe("the history of several clients", func() {
	check.It(spec.AllocHistoryExplained, "has an explanation while they use one API server", check.Exclusive(), check.OnServiceCIDR(storied),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, cp)
			s.tell(ctx, func() {})
			s.beExplained(ctx)
		})

	check.It(spec.AllocHistoryExplained, "has an explanation while they use two API servers on one storage", check.Exclusive(), check.OnServiceCIDR(storied),
		check.Needs(spec.SeveralAPIServers),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, cp, cp.Another(ctx, nil))
			s.tell(ctx, func() {})
			s.beExplained(ctx)
		})

	check.It(spec.AllocHistoryExplained, "has an explanation while one of two API servers is killed and restarted", check.Exclusive(), check.OnServiceCIDR(storied),
		check.Needs(spec.SeveralAPIServers, spec.RestartControlPlane), check.Timeout(2*time.Minute),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, cp, cp.Another(ctx, nil))
			s.tell(ctx, func() { s.restart(ctx) })
			s.beExplained(ctx)
		})
})

// beExplained demands that an order of all requests explains every answer.
func (s *story) beExplained(ctx context.Context) {
	ginkgo.GinkgoHelper()
	for _, ip := range s.takenAgain(ctx) {
		s.history.Clouds = append(s.history.Clouds, history.Cloud{Register: ip}) // whether it is free after all is another requirement
	}
	began := time.Now()
	unexplained, undecided := s.history.Decide(storyDecided)
	check.Record("answers", "%s", s.tally())
	check.Record("history", "%d requests of %d clients in %.1f s, %.0f a second; decided in %.1f s", len(s.history.Operations), storyClients, s.took.Seconds(),
		float64(s.sent)/s.took.Seconds(), time.Since(began).Seconds())
	if unexplained != nil {
		s.recordObjects(unexplained.Register)
		ginkgo.Fail(tellUnexplained(unexplained))
	}
	if len(undecided) > 0 {
		check.Abort("no order of the requests on %s was found within %s, and it is not known whether there is one", strings.Join(undecided, ", "), storyDecided)
	}
}

// tellUnexplained is what a reader sees: the requests in the order in which they began, each with its answer.
func tellUnexplained(u *history.Unexplained) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "expected an order of all requests that explains every answer\nobserved that %s. These requests have no order that explains their answers:", u.Why)
	for i := range u.Operations {
		o := &u.Operations[i]
		end := "no answer"
		if o.End != history.Never {
			end = fmt.Sprintf("to %s", moment(o.End))
		}
		fmt.Fprintf(b, "\n%d. client %d, %s %s: %s%s\n   %s", i+1, o.Client+1, moment(o.Begin), end, o.Answer, shown(o, u.Register), o.Command)
	}
	return b.String()
}

// shown is what a list shows of an address.
func shown(o *history.Operation, register string) string {
	for _, e := range o.Effects {
		if len(o.Effects) > 2 && e.Register == register {
			return fmt.Sprintf(", %s: %s", register, e.To)
		}
	}
	return ""
}

// tally counts what the answers were.
func (s *story) tally() string {
	var full, lower, conflicts, given int
	for i := range s.history.Operations {
		o := &s.history.Operations[i]
		switch {
		case len(o.Held) > len(s.upper):
			full++
		case len(o.Held) > 0:
			lower++
		}
		for _, e := range o.Effects {
			switch {
			case e.Others:
				conflicts++
			case e.From == history.Free && e.To != history.Free && !strings.HasPrefix(e.Register, servicePrefix):
				given++
			}
		}
	}
	return fmt.Sprintf("%d addresses were given, %d of them of the lower band by choice of the server, %d refused as in use, the range was full %d times, and a server died during %d requests", given, lower, conflicts, full, s.died.Load())
}

// moment is a time since the beginning of a history.
func moment(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
}
