package spec

import (
	"os"
	"testing"

	"go.yaml.in/yaml/v3"
)

// TestOpenBugsAreNoneThatAreReproduced keeps the list of what may not be caught apart from the list of what is.
func TestOpenBugsAreNoneThatAreReproduced(t *testing.T) {
	data, err := os.ReadFile("../../fixtures/realbugs-open.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var open []struct {
		RealBug `yaml:",inline"`
		Wanted  string `yaml:"wanted"`
	}
	if err := yaml.Unmarshal(data, &open); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, b := range AllRealBugs() {
		seen[b.Issue] = true
	}
	for _, b := range open {
		if seen[b.Issue] || b.About == "" || b.Wanted == "" {
			t.Errorf("%q is reproduced, stands there twice, or does not say what is wanted", b.Issue)
		}
		seen[b.Issue] = true
		for _, id := range b.Requirements {
			if Default().Get(id) == nil {
				t.Errorf("%s: there is no requirement %s", b.Issue, id)
			}
		}
	}
}
