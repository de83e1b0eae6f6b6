package spec

import (
	"fmt"
	"slices"
	"strings"
	"sync"

	"go.yaml.in/yaml/v3"

	"github.com/service-conformance/conformance/fixtures"
)

// RealBug is a bug that users met in a real implementation.
type RealBug struct {
	// Issue is where it was reported, as "kubernetes/kubernetes#109927".
	Issue string `yaml:"issue"`
	About string `yaml:"about"`
	// Requirements are those that it breaks.
	Requirements []ID `yaml:"requirements"`
	// Fault is the name of the fault of the reference that is this bug.
	Fault string `yaml:"fault"`
}

// URL is the address of the report.
func (b *RealBug) URL() string {
	repository, number, _ := strings.Cut(b.Issue, "#")
	return "https://github.com/" + repository + "/issues/" + number
}

// RealBugs are the bugs that break a requirement. Safe for concurrent use.
func RealBugs(id ID) (found []RealBug) {
	for _, b := range AllRealBugs() {
		if slices.Contains(b.Requirements, id) {
			found = append(found, b)
		}
	}
	return found
}

// AllRealBugs are the bugs that the catalogue knows, in the order of their file. They are shared: do not change them. Safe for concurrent use.
func AllRealBugs() []RealBug { return realBugs() }

var realBugs = sync.OnceValue(func() (all []RealBug) {
	if err := yaml.Unmarshal(fixtures.RealBugs, &all); err != nil {
		panic(fmt.Sprintf("embedded bugs: %v", err))
	}
	return all
})
