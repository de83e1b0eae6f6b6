package spec

import (
	"reflect"
	"strings"
	"testing"
	"testing/fstest"
)

func TestDeviationsComeFromThePublishedLists(t *testing.T) {
	c := mustLoad(t, markdownFiles)
	lists := fstest.MapFS{"lists/someproxy.yaml": {Data: []byte(`
deviations:
- {requirement: alloc-second, check: a, proxyMode: iptables, reason: Drops it., source: x.go}
- {requirement: alloc-second, check: b, proxyMode: iptables, reason: Drops it., source: x.go}
- {requirement: alloc-second, proxyMode: nftables, reason: Drops it., source: x.go}
- {requirement: alloc-second, versions: "<1.34", reason: Refuses it.}
`)}}
	if err := c.takeListed(lists, "lists"); err != nil {
		t.Fatal(err)
	}
	want := []Deviation{
		{Implementation: "someproxy iptables and nftables", Behavior: "Drops it.", Source: "x.go"},
		{Implementation: "someproxy", Versions: "<1.34", Behavior: "Refuses it."},
	}
	if got := c.Get("alloc-second").Deviations; !reflect.DeepEqual(got, want) {
		t.Errorf("deviations %+v", got)
	}
	unknown := fstest.MapFS{"lists/p.yaml": {Data: []byte("deviations:\n- {requirement: alloc-none, reason: x}\n")}}
	if err := c.takeListed(unknown, "lists"); err == nil || !strings.Contains(err.Error(), "alloc-none") {
		t.Errorf("error %v", err)
	}
}

// A deviation that makes a check fail stands in a published list, and nowhere else.
func TestNoDeviationIsSaidTwice(t *testing.T) {
	for _, r := range Default().Requirements {
		for i, d := range r.Deviations {
			for _, e := range r.Deviations[:i] {
				if d.Implementation == e.Implementation && d.Versions == e.Versions && d.Source == e.Source {
					t.Errorf("%s: the deviation of %s is said twice: %q and %q", r.ID, d.Implementation, d.Behavior, e.Behavior)
				}
			}
		}
	}
}
