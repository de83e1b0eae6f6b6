package traffic

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/internal/differential/random"
	"github.com/service-conformance/conformance/internal/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }

// referenceSide starts a reference that ends with the test.
func referenceSide(t *testing.T, faults ...string) *Side {
	t.Helper()
	set, err := fault.Parse(faults...)
	if err != nil {
		t.Fatal(err)
	}
	r, err := reference.New(reference.Options{Faults: set, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	side, err := NewSide(t.Context(), "reference", r)
	if err != nil {
		t.Fatal(err)
	}
	return side
}

// try compares two references, and returns what was found and shrunk.
func try(t *testing.T, most int, faults ...string) (found []random.Found[Topology, Difference], tally random.Tally) {
	t.Helper()
	pair := NewPair(referenceSide(t), referenceSide(t, faults...), 0)
	test := random.Test[Topology, Difference]{Make: Random, Compare: pair.Compare, Slots: 1}
	tally, err := test.Run(t.Context(), random.Options[Topology, Difference]{
		Seed: 7, Until: time.Now().Add(time.Hour), Most: most, First: func(f random.Found[Topology, Difference]) { found = append(found, f) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		if found[i].Input, found[i].Difference, err = pair.Shrink(t.Context(), found[i].Input, found[i].Difference); err != nil {
			t.Fatal(err)
		}
	}
	return found, tally
}

func TestTheReferenceIsLikeItself(t *testing.T) {
	const most = 150
	found, tally := try(t, most)
	for _, f := range found {
		t.Errorf("topology %d: %s", f.Number, f.Difference)
	}
	if tally.Inputs != most || tally.Next != most || tally.Unsteady != 0 {
		t.Error(tally)
	}
}

func TestADifferenceIsFoundAndShrunk(t *testing.T) {
	for _, name := range []string{"cluster-prefers-local", "external-local-ignored"} {
		found, _ := try(t, 60, name)
		if len(found) == 0 {
			t.Errorf("nothing differs with the fault %s", name)
			continue
		}
		small := found[0].Input
		endpoints := 0
		for _, l := range small.States[0].Slices {
			endpoints += len(l.Endpoints)
		}
		if len(small.States) != 1 || len(small.States[0].Services) != 1 || len(small.States[0].Slices) > 2 || endpoints > 2 {
			data, _ := json.Marshal(small)
			t.Errorf("%s: %s\n%s", name, found[0].Difference, data)
		}
	}
}

func TestABadTopologyIsNamed(t *testing.T) {
	good := `{"states":[{"services":[{"id":0,"families":"4","ports":[{"protocol":"TCP"}],"external":[0]}],"slices":[{"id":0,"service":0,"family":4,"endpoints":[{"pod":1}]}],"probes":[{"from":"pod","node":0,"service":0,"port":0,"to":"externalIP","family":4}]}]}`
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ from, to, want string }{
		{`"states"`, `"stages"`, "unknown field"},
		{`"id":0,"families"`, `"id":9,"families"`, "service 9"},
		{`"families":"4"`, `"families":"5"`, "service 0"},
		{`"external":[0]`, `"external":[7]`, "no external address 7"},
		{`"service":0,"family":4`, `"service":1,"family":4`, "slice 0"},
		{`"pod":1`, `"pod":6`, "no pod 6"},
		{`"node":0`, `"node":3`, "no such client or address"},
		{good, `{"states":[]}`, "at least one state"},
	} {
		if _, err := Parse([]byte(strings.Replace(good, bad.from, bad.to, 1))); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v, want %s", bad.to, err, bad.want)
		}
	}
}
