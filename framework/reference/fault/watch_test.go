package fault

import (
	"reflect"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

type (
	answering = func(svc *corev1.Service) bool
	filling   = func(svc *corev1.Service)
	taking    = func(n *int)
)

// shelf is a book of rules of each kind: one that answers, one that changes an object, and one that is not pure.
type shelf struct {
	pure  rule.Pure
	asks  rule.Rule[answering]
	fills []rule.Rule[filling]
	takes rule.Rule[taking]
	empty []rule.Rule[taking]
}

func newShelf() *shelf {
	return &shelf{
		pure:  rule.Pure{Answers: []reflect.Type{reflect.TypeFor[answering]()}, Changes: []reflect.Type{reflect.TypeFor[filling]()}},
		asks:  rule.New("asks", func(svc *corev1.Service) bool { return svc.Name == "a" }, spec.APIPortsList),
		fills: []rule.Rule[filling]{rule.New("fills", func(svc *corev1.Service) { svc.Spec.Type = "ClusterIP" }, spec.APIPortsList)},
		takes: rule.New("takes", func(n *int) { *n++ }, spec.APIPortsList),
	}
}

func TestReach(t *testing.T) {
	always := &Fault{Name: "always"}   // another answer for every Service but a
	label := &Fault{Name: "label"}     // fills in a label of b
	first := &Fault{Name: "first"}     // a rule before fills that changes c
	last := &Fault{Name: "last"}       // a rule after fills that changes nothing
	takes := &Fault{Name: "takes"}     // a rule that is not pure: each use counts
	nowhere := &Fault{Name: "nowhere"} // a rule in a list that was empty: nobody knows
	panics := &Fault{Name: "panics"}
	bug := func(do filling) rule.Rule[filling] { return rule.New("a bug", do) }
	edits := []Edit[shelf]{
		{always, func(b *shelf) { b.asks.Replace(func(*corev1.Service) bool { return true }) }},
		{label, func(b *shelf) {
			rule.Find(b.fills, "fills").Wrap(func(right filling) filling {
				return func(svc *corev1.Service) {
					right(svc)
					if svc.Name == "b" {
						svc.Labels = map[string]string{"x": "y"}
					}
				}
			})
		}},
		{first, func(b *shelf) {
			b.fills = rule.Before(b.fills, "fills", bug(func(svc *corev1.Service) {
				if svc.Name == "c" {
					svc.Labels = map[string]string{"x": "y"}
				}
			}))
		}},
		{last, func(b *shelf) { b.fills = append(b.fills, bug(func(*corev1.Service) {})) }},
		{takes, func(b *shelf) { b.takes.Replace(func(n *int) { *n++ }) }},
		{nowhere, func(b *shelf) { b.empty = append(b.empty, rule.New("a bug", func(*int) {})) }},
		{panics, func(b *shelf) { b.asks.Replace(func(*corev1.Service) bool { panic("x") }) }},
	}
	r := NewReach()
	for _, check := range []string{"a", "b", "c", "takes"} {
		b := Apply(newShelf(), edits, Of().RecordedBy(r)) // checks share no book
		r.Begin(check)
		if check == "takes" {
			n := 0
			if b.takes.Do(&n); n != 1 {
				t.Errorf("a recorded rule has run %d times", n)
			}
			continue
		}
		svc := &corev1.Service{}
		svc.Name = check
		if got := b.asks.Do(svc); got != (check == "a") {
			t.Errorf("the recorded rule says %t of %s", got, check)
		}
		for i := range b.fills {
			b.fills[i].Do(svc)
		}
		if svc.Spec.Type != "ClusterIP" || svc.Labels != nil {
			t.Errorf("a fault has changed what the recorded rules do: %+v", svc)
		}
	}
	for f, want := range map[*Fault][]string{
		always: {"b", "c"}, label: {"b"}, first: {"c"}, last: nil, takes: {"takes"}, nowhere: {Outside}, panics: {"a", "b", "c"},
	} {
		if got := r.Checks(f); !slices.Equal(got, want) {
			t.Errorf("%s reaches %q, want %q", f.Name, got, want)
		}
	}
	if got := r.Rules(first); !slices.Equal(got, []string{"fills"}) {
		t.Errorf("the rules of a fault that adds one before fills: %q", got)
	}
}
