package allocation

import (
	"context"
	"fmt"
	"slices"
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
	// storiedFamilies has a range of each family. The first one is as small, the second one never ends.
	storiedFamilies = "10.96.32.0/27,fd00:10:96:32::/112"
	// storyClients is how many clients send requests at the same time, and storyLength how many requests they send together at most.
	storyClients, storyLength = 6, 1800
	// storyTime bounds how long they do so where requests take their time.
	storyTime = 10 * time.Second
	// storyDecided bounds how long it takes to decide about one address, node port or Service.
	storyDecided = 20 * time.Second
)

// freesWhenStored binds a history to the requirement that it decides beside its own.
var freesWhenStored = check.Also(spec.AllocUpdateFreesWhenStored)

var _ = ginkgo.Describe("the history of several clients", func() {
	check.It(spec.AllocHistoryExplained, "has an explanation while they use one API server", freesWhenStored, check.Exclusive(), check.OnServiceCIDR(storied),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, oneAddress, cp)
			s.tell(ctx, func() {})
			s.beExplained(ctx, spec.AllocHistoryExplained)
		})

	check.It(spec.AllocHistoryExplained, "has an explanation while they use two API servers on one storage", freesWhenStored, check.Exclusive(), check.OnServiceCIDR(storied),
		check.Needs(spec.SeveralAPIServers),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, oneAddress, cp, cp.Another(ctx, nil))
			s.tell(ctx, func() {})
			s.beExplained(ctx, spec.AllocHistoryExplained)
		})

	check.It(spec.AllocHistoryExplained, "has an explanation while one of two API servers is killed and restarted", freesWhenStored, check.Exclusive(), check.OnServiceCIDR(storied),
		check.Needs(spec.SeveralAPIServers, spec.RestartControlPlane), check.Timeout(2*time.Minute),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, oneAddress, cp, cp.Another(ctx, nil))
			s.tell(ctx, func() { s.restart(ctx) })
			s.beExplained(ctx, spec.AllocHistoryExplained)
		})

	check.It(spec.AllocHistoryExplained, "has an explanation while Services get and lose a second family through two API servers", freesWhenStored, check.Exclusive(),
		check.Needs(spec.DualStack, spec.SeveralAPIServers), check.OnServiceCIDR(storiedFamilies),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, twoFamilies, cp, cp.Another(ctx, nil))
			s.tell(ctx, func() {})
			s.beExplained(ctx, spec.AllocHistoryExplained)
		})

	check.It(spec.AllocNodePortHistoryExplained, "has an explanation while they use one API server", freesWhenStored, check.NodePorts(fewPorts),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, oneNodePort, cp)
			s.tell(ctx, func() {})
			s.beExplained(ctx, spec.AllocNodePortHistoryExplained)
		})

	check.It(spec.AllocNodePortHistoryExplained, "has an explanation while one of two API servers is killed and restarted", freesWhenStored, check.NodePorts(fewPorts),
		check.Needs(spec.SeveralAPIServers, spec.RestartControlPlane), check.Timeout(2*time.Minute),
		func(ctx context.Context, cp *check.ControlPlane) {
			s := newStory(ctx, oneNodePort, cp, cp.Another(ctx, nil))
			s.tell(ctx, func() { s.restart(ctx) })
			s.beExplained(ctx, spec.AllocNodePortHistoryExplained)
		})
})

// beExplained demands that an order of all requests explains every answer. What readers saw of something while an update gave it back is another requirement.
func (s *story) beExplained(ctx context.Context, id spec.ID) {
	ginkgo.GinkgoHelper()
	for _, ip := range s.takenAgain(ctx) {
		s.history.Clouds = append(s.history.Clouds, history.Cloud{Register: ip}) // whether it is free after all is another requirement
	}
	check.Record("answers", "%s", s.tally())
	check.Record("history", "%d requests of %d clients in %.1f s, %.0f a second", len(s.history.Operations), storyClients, s.took.Seconds(), float64(s.sent)/s.took.Seconds())
	began := time.Now()
	check.Deciding(func() { s.decide(s.withoutUpdates()) }, id)
	check.Deciding(func() { s.decide(&s.history) }, spec.AllocUpdateFreesWhenStored)
	check.Record("decided in", "%.1f s", time.Since(began).Seconds())
}

// decide demands that a history has an explanation.
func (s *story) decide(h *history.History) {
	ginkgo.GinkgoHelper()
	unexplained, undecided := h.Decide(storyDecided)
	if unexplained != nil {
		s.recordObjects(unexplained.Register)
		ginkgo.Fail(tellUnexplained(unexplained) + s.tellHolders(unexplained))
	}
	if len(undecided) > 0 {
		check.Abort("no order of the requests on %s was found within %s, and it is not known whether there is one", strings.Join(undecided, ", "), storyDecided)
	}
}

// withoutUpdates is the history without what readers saw of an address or node port while an update was giving it back.
func (s *story) withoutUpdates() *history.History {
	updates := map[string][]window{} // by register and holder
	key := func(register, holder string) string { return register + " of " + holder }
	for i := range s.history.Operations {
		o := &s.history.Operations[i]
		for _, e := range o.Effects {
			if !e.Others && e.From != history.Free && e.To == history.Free && !deletes(o, e.From) && !strings.HasPrefix(e.Register, servicePrefix) {
				updates[key(e.Register, e.From)] = append(updates[key(e.Register, e.From)], window{o.Begin, o.End})
			}
		}
	}
	h := s.history
	h.Operations = slices.Clone(h.Operations)
	for i := range h.Operations {
		o := &h.Operations[i]
		o.Effects = slices.DeleteFunc(slices.Clone(o.Effects), func(e history.Effect) bool {
			return e.From == e.To && !e.Others && slices.ContainsFunc(strings.Split(e.From, together), func(holder string) bool {
				return slices.ContainsFunc(updates[key(e.Register, holder)], func(w window) bool { return w.from <= o.End && o.Begin <= w.to })
			})
		})
	}
	return &h
}

// deletes reports whether an operation deletes a Service.
func deletes(o *history.Operation, name string) bool {
	return slices.ContainsFunc(o.Effects, func(e history.Effect) bool { return e.Register == service(name) && e.To == history.Free })
}

// tellUnexplained is what a reader sees: the requests in the order in which they began, each with its answer.
func tellUnexplained(u *history.Unexplained) string {
	b := &strings.Builder{}
	fmt.Fprintf(b, "expected an order of all requests that explains every answer\nobserved that %s. These requests have no order that explains their answers:", u.Why)
	for i := range u.Operations {
		fmt.Fprintf(b, "\n%d. %s", i+1, tellOperation(&u.Operations[i], u.Register))
	}
	return b.String()
}

func tellOperation(o *history.Operation, register string) string {
	end := "no answer"
	if o.End != history.Never {
		end = fmt.Sprintf("to %s", moment(o.End))
	}
	return fmt.Sprintf("client %d, %s %s: %s%s\n   %s", o.Client+1, moment(o.Begin), end, o.Answer, shown(o, register), o.Command)
}

// tellHolders tells how those got and lost a register that a list shows to have it at the same time. The list alone has no explanation, so the history has only that.
func (s *story) tellHolders(u *history.Unexplained) string {
	var holders []string
	for _, e := range u.Last.Effects {
		if e.Register == u.Register {
			holders = strings.Split(e.From, together)
		}
	}
	if len(holders) < 2 {
		return ""
	}
	b := &strings.Builder{}
	b.WriteString("\nThese requests gave it to them, and took it from them:")
	for i := range s.history.Operations {
		o := &s.history.Operations[i]
		if slices.ContainsFunc(o.Effects, func(e history.Effect) bool {
			return e.Register == u.Register && !e.Others && e.From != e.To && (slices.Contains(holders, e.From) || slices.Contains(holders, e.To))
		}) {
			fmt.Fprintf(b, "\n- %s", tellOperation(o, u.Register))
		}
	}
	return b.String()
}

// shown is what a list shows of an address or node port.
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
	var conflicts, given int
	for i := range s.history.Operations {
		for _, e := range s.history.Operations[i].Effects {
			switch {
			case e.Others:
				conflicts++
			case e.From == history.Free && e.To != history.Free && !strings.HasPrefix(e.Register, servicePrefix):
				given++
			}
		}
	}
	return fmt.Sprintf("%d were given, %d of them of the lower band by choice of the server, %d refused as in use, nothing was free %d times, and a server died during %d requests",
		given, s.lower.Load(), conflicts, s.full.Load(), s.died.Load())
}

// moment is a time since the beginning of a history.
func moment(d time.Duration) string {
	return fmt.Sprintf("%.3f ms", float64(d)/float64(time.Millisecond))
}
