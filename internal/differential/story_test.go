package differential

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/internal/differential/random"
)

// storyServer starts a reference with the ranges of stories that ends with the test.
func storyServer(t *testing.T, faults ...string) Server {
	t.Helper()
	return startedServer(t, false, faults)
}

func startedServer(t *testing.T, controllers bool, faults []string) Server {
	t.Helper()
	set, err := fault.Parse(faults...)
	if err != nil {
		t.Fatal(err)
	}
	s, err := apiserver.New(apiserver.Options{ServiceCIDRs: Ranges(), Faults: set, Seed: 1, Controllers: controllers})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	return Server{Client: &http.Client{Transport: s}, URL: s.URL(), Reference: true}
}

// tellStories compares two references, and returns what was found and shrunk.
func tellStories(t *testing.T, most int, faults ...string) (found []random.Found[Story, Told], tally random.Tally) {
	t.Helper()
	pair := Pair{Reference: storyServer(t), Real: storyServer(t, faults...)}
	test := random.Test[Story, Told]{Make: RandomStory, Compare: pair.Compare, Slots: Slots}
	tally, err := test.Run(t.Context(), random.Options[Story, Told]{
		Seed: 3, Until: time.Now().Add(time.Hour), Most: most, Workers: 4, First: func(f random.Found[Story, Told]) { found = append(found, f) },
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range found {
		if found[i].Input, found[i].Difference, err = pair.Shrink(t.Context(), 0, found[i].Input, found[i].Difference); err != nil {
			t.Fatal(err)
		}
	}
	return found, tally
}

func TestTheReferenceTellsTheSameStories(t *testing.T) {
	const most = 200
	found, tally := tellStories(t, most)
	for _, f := range found {
		data, _ := json.Marshal(f.Input)
		t.Errorf("story %d: %s\n%s", f.Number, f.Difference, data)
	}
	if tally.Inputs != most || tally.Next != most || tally.Unsteady != 0 {
		t.Error(tally)
	}
}

func TestAnotherStoryIsFoundAndShrunk(t *testing.T) {
	found, _ := tellStories(t, 60, "conditions-dropped", "cluster-ip-mutable")
	if len(found) == 0 {
		t.Fatal("nothing differs with faults")
	}
	for _, f := range found {
		if len(f.Input.Steps) > 3 {
			data, _ := json.Marshal(f.Input)
			t.Errorf("%s: %s", f.Difference.Class(), data)
		}
	}
}

// TestControllersAreCompared has controllers with a bug beside sound ones.
func TestControllersAreCompared(t *testing.T) {
	for _, c := range []struct {
		fault string
		most  int
	}{{"", 40}, {"ended-pod-endpoint", 30}, {"hints-zone-for-node", 30}} {
		var faults []string
		if c.fault != "" {
			faults = []string{c.fault}
		}
		pair := Pair{Reference: startedServer(t, true, nil), Real: startedServer(t, true, faults), Following: 50 * time.Millisecond}
		if err := pair.Nodes(t.Context()); err != nil {
			t.Fatal(err)
		}
		var found []random.Found[Story, Told]
		test := random.Test[Story, Told]{Make: RandomPods, Compare: pair.CompareControllers, Slots: Slots}
		tally, err := test.Run(t.Context(), random.Options[Story, Told]{
			Seed: 3, Until: time.Now().Add(time.Hour), Most: c.most, Workers: 4, First: func(f random.Found[Story, Told]) { found = append(found, f) },
		})
		if err != nil || tally.Inputs != c.most {
			t.Fatal(tally, err)
		}
		if (len(found) > 0) != (c.fault != "") {
			t.Fatalf("with fault %q: %d classes of differences", c.fault, len(found))
		}
		if len(found) == 0 {
			continue
		}
		story, d, err := pair.ShrinkControllers(t.Context(), 0, found[0].Input, found[0].Difference)
		if err != nil || len(story.Steps) > 5 {
			data, _ := json.Marshal(story)
			t.Errorf("with fault %q: %s: %s %v", c.fault, d.Class(), data, err)
		}
	}
}

// TestWhatOthersAreToldIsCompared has a server that calls every change ADDED: its answers to all other requests are right.
func TestWhatOthersAreToldIsCompared(t *testing.T) {
	story := Story{Steps: []Request{
		{Request: "POST /api/v1/namespaces/{namespace}/services", Type: jsonType, Body: `{"metadata":{"name":"a"},"spec":{"ports":[{"port":80}]}}`},
		{Request: "DELETE /api/v1/namespaces/{namespace}/services/a"},
		{Request: "GET /api/v1/namespaces/{namespace}/services?resourceVersion={since b}&timeoutSeconds=1&watch=true", Accept: jsonType},
		{Request: "GET /api/v1/namespaces/{namespace}/services", Accept: protobufType},
	}}
	for _, c := range []struct{ fault, want string }{{"", ""}, {"watch-all-added", "events"}} {
		var faults []string
		if c.fault != "" {
			faults = []string{c.fault}
		}
		pair := Pair{Reference: storyServer(t), Real: storyServer(t, faults...)}
		told, err := pair.Compare(t.Context(), 0, story)
		if err != nil {
			t.Fatal(err)
		}
		said := ""
		for _, d := range told {
			said += d.What + " "
		}
		if c.want == "" && said != "" || !strings.Contains(said, c.want) {
			t.Errorf("with fault %q: %q differs, want %q", c.fault, said, c.want)
		}
	}
}

func TestARunEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	test := random.Test[Story, Told]{Make: RandomStory, Compare: func(ctx context.Context, _ int, _ Story) ([]Told, error) { return nil, ctx.Err() }, Slots: 1}
	tally, err := test.Run(ctx, random.Options[Story, Told]{Until: time.Now().Add(time.Hour)})
	if err != nil || tally.Inputs != 0 {
		t.Error(tally, err)
	}
}

func TestABadStoryIsNamed(t *testing.T) {
	for text, want := range map[string]string{
		`{"steps":[]}`:                       "at least one request",
		`{"steps":[{"request":"GET"}]}`:      "request 1 is no method with a path",
		`{"steps":[{"ask":"GET /"}]}`:        "unknown field",
		`{`:                                  "unexpected EOF",
		`{"steps":[{"request":"GET /api"}]}`: "",
	} {
		if _, err := ParseStory([]byte(text)); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}
