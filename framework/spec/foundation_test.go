package spec

import (
	"slices"
	"strings"
	"testing"
)

// three has the requirements alloc-a, alloc-b and alloc-c, a SHOULD alloc-s and an unchecked alloc-u, with buildsOn as written.
func three(t *testing.T, buildsOn string) (*Catalogue, error) {
	t.Helper()
	text := "area: allocation\nrequirements:\n"
	for _, id := range []string{"alloc-a", "alloc-b", "alloc-c"} {
		text += "- {id: " + id + ", statement: It holds., level: MUST, sources: [page#part], feature: F}\n"
	}
	text += "- {id: alloc-s, statement: It holds., level: SHOULD, sources: [page#part], feature: G}\n"
	text += "- {id: alloc-u, statement: It holds., level: MUST, sources: [page#part], feature: F, unchecked: cannot be seen}\n"
	return load(map[string]string{"documents.yaml": documentsFile, "a.yaml": text, "builds-on.yaml": "buildsOn:\n" + buildsOn})
}

func TestRequirementsBuildOnOthersThroughThem(t *testing.T) {
	c, err := three(t, "- {because: x, requirements: [alloc-c], upon: [alloc-b]}\n- {because: y, requirements: [alloc-b], upon: [alloc-a]}\n")
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Foundations("alloc-c"); !slices.Equal(got, []ID{"alloc-a", "alloc-b"}) {
		t.Errorf("alloc-c builds on %v", got)
	}
	if got := c.Foundations("alloc-a"); len(got) > 0 {
		t.Errorf("alloc-a builds on %v", got)
	}
}

func TestAGlobLeavesOutWhatWouldBeACircle(t *testing.T) {
	c, err := three(t, "- {because: all, requirements: ['*'], upon: [alloc-b]}\n- {because: y, requirements: [alloc-b], upon: [alloc-a]}\n")
	if err != nil {
		t.Fatal(err)
	}
	for id, want := range map[ID][]ID{"alloc-a": nil, "alloc-b": {"alloc-a"}, "alloc-c": {"alloc-a", "alloc-b"}, "alloc-u": nil} {
		if got := c.Foundations(id); !slices.Equal(got, want) {
			t.Errorf("%s builds on %v, want %v", id, got, want)
		}
	}
}

func TestWrongFoundationsAreRefused(t *testing.T) {
	for want, buildsOn := range map[string]string{
		"which builds on it":                       "- {because: x, requirements: [alloc-b], upon: [alloc-a]}\n- {because: y, requirements: [alloc-a], upon: [alloc-b]}\n",
		"alloc-a builds on alloc-a":                "- {because: x, requirements: [alloc-a], upon: [alloc-a]}\n",
		`alloc-b builds on alloc-a, which`:         "- {because: x, requirements: [alloc-a], upon: [alloc-b]}\n- {because: y, requirements: [alloc-b], upon: [alloc-a]}\n",
		`unknown requirement "alloc-x"`:            "- {because: x, requirements: [alloc-a], upon: [alloc-x]}\n",
		`unknown requirement "alloc-y"`:            "- {because: x, requirements: [alloc-y], upon: [alloc-a]}\n",
		`no requirement with a check matches "q*"`: "- {because: x, requirements: ['q*'], upon: [alloc-a]}\n",
		"no check decides alloc-u":                 "- {because: x, requirements: [alloc-a], upon: [alloc-u]}\n",
		"because, requirements and upon":           "- {requirements: [alloc-a], upon: [alloc-b]}\n",
	} {
		if _, err := three(t, buildsOn); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", buildsOn, err, want)
		}
	}
}

func TestNothingInTheCatalogueBuildsOnItself(t *testing.T) {
	c := Default()
	for _, r := range c.Requirements {
		if slices.Contains(c.foundationsOf(r.ID), r.ID) {
			t.Errorf("%s builds on itself", r.ID)
		}
	}
}
