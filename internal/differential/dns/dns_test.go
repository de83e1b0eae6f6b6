package dns

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
func try(t *testing.T, most int, faults ...string) (found []random.Found[Zone, Difference], tally random.Tally) {
	t.Helper()
	pair := &Pair{Reference: referenceSide(t), Real: referenceSide(t, faults...)}
	test := random.Test[Zone, Difference]{Make: Random, Compare: pair.Compare, Slots: 1}
	tally, err := test.Run(t.Context(), random.Options[Zone, Difference]{
		Seed: 7, Until: time.Now().Add(time.Hour), Most: most, First: func(f random.Found[Zone, Difference]) { found = append(found, f) },
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
	const most = 200
	found, tally := try(t, most)
	for _, f := range found {
		t.Errorf("zone %d: %s", f.Number, f.Difference)
	}
	if tally.Inputs != most || tally.Next != most || tally.Unsteady != 0 {
		t.Error(tally)
	}
}

func TestADifferenceIsFoundAndShrunk(t *testing.T) {
	for _, name := range []string{"dns-headless-unready-listed", "dns-reverse-unknown", "dns-headless-reverse-unknown", "dns-case-matters", "dns-external-name-unknown"} {
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
		if len(small.States) != 1 || len(small.States[0].Services) != 1 || endpoints > 2 {
			data, _ := json.Marshal(small)
			t.Errorf("%s: %s\n%s", name, found[0].Difference, data)
		}
	}
}

func TestABadZoneIsNamed(t *testing.T) {
	good := `{"states":[{"services":[{"id":0,"kind":"headless","families":"4"}],"slices":[{"id":0,"service":0,"family":4,"endpoints":[{"address":1}]}],"questions":[{"service":0,"type":"PTR","of":"endpoint","address":1,"family":4}]}]}`
	if _, err := Parse([]byte(good)); err != nil {
		t.Fatal(err)
	}
	for _, bad := range []struct{ from, to, want string }{
		{`"states"`, `"stages"`, "unknown field"},
		{`"id":0,"kind"`, `"id":9,"kind"`, "service 9"},
		{`"families":"4"`, `"families":"5"`, "service 0"},
		{`"kind":"headless"`, `"kind":"other"`, `no kind "other"`},
		{`"service":0,"family":4`, `"service":1,"family":4`, "slice 0"},
		{`[{"address":1}]`, `[{"address":6}]`, "no address 6"},
		{`"address":1,"family":4}`, `"address":1,"family":5}`, "no such name or address"},
		{good, `{"states":[]}`, "at least one state"},
	} {
		if _, err := Parse([]byte(strings.Replace(good, bad.from, bad.to, 1))); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%s: %v, want %s", bad.to, err, bad.want)
		}
	}
}

// FuzzParse has files of anybody: what is taken can be shown as commands.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"states":[{"services":[{"id":0,"kind":"headless","families":"4"}],"slices":[{"id":0,"service":0,"family":4,"endpoints":[{"address":1}]}],"questions":[{"service":0,"type":"PTR","of":"endpoint","address":1,"family":4}]}]}`))
	f.Add([]byte(`{"states":[{"services":[{"id":0,"kind":"alias","target":"service 1"}],"questions":[{"service":2,"type":"A"}]}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		z, err := Parse(data)
		if err != nil {
			return
		}
		for _, q := range z.States[len(z.States)-1].Questions {
			if _, err := (&Side{}).Commands(z, q); err != nil {
				t.Error(err)
			}
		}
	})
}
