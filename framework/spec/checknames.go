package spec

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/fixtures"
)

// CheckNames are the titles of the checks of each requirement. The place in a list makes the stable name of a check. To
// reword a title, correct its line. A new check goes to the end, and a check that goes leaves an empty line.
type CheckNames map[ID][]string

// DefaultCheckNames returns the embedded names. It panics if the file is broken, which `make verify` rules out for a released binary. Callers must not modify it.
var DefaultCheckNames = sync.OnceValue(func() CheckNames {
	var names CheckNames
	if err := yaml.UnmarshalStrict(fixtures.CheckNames, &names); err != nil {
		panic(fmt.Sprintf("embedded check names: %v", err))
	}
	return names
})

// Stable is the name of a check that stays the same when its title is reworded. It is the ID of its first requirement,
// with a number for all checks of it but the first. A check that the list does not hold keeps its own name.
func (n CheckNames) Stable(check string) string {
	id, title, _ := strings.Cut(check, ": ")
	switch i := slices.Index(n[ID(id)], title); {
	case i < 0 || title == "":
		return check
	case i == 0:
		return id
	default:
		return fmt.Sprintf("%s-%d", id, i+1)
	}
}

// Complete adds the checks that the list does not hold, in their order.
func (n CheckNames) Complete(checks []string) {
	for _, check := range checks {
		id, title, _ := strings.Cut(check, ": ")
		if !slices.Contains(n[ID(id)], title) {
			n[ID(id)] = append(n[ID(id)], title)
		}
	}
}

// Compare reports what the list lacks of the checks, and what it holds of others.
func (n CheckNames) Compare(checks []string) error {
	var problems []error
	for _, check := range checks {
		if id, title, _ := strings.Cut(check, ": "); !slices.Contains(n[ID(id)], title) {
			problems = append(problems, fmt.Errorf("fixtures/checknames.yaml lacks %q: correct its line if the check was reworded, or run make generate", check))
		}
	}
	for id, titles := range n {
		for i, title := range titles {
			switch {
			case title == "":
			case !slices.Contains(checks, string(id)+": "+title):
				problems = append(problems, fmt.Errorf("fixtures/checknames.yaml: no check %q: correct the line if the check was reworded, or leave the text empty", string(id)+": "+title))
			case slices.Contains(titles[:i], title):
				problems = append(problems, fmt.Errorf("fixtures/checknames.yaml: %q stands there twice", string(id)+": "+title))
			}
		}
	}
	return errors.Join(problems...)
}

// checkNamesHead is the comment that the file begins with.
const checkNamesHead = `# The titles of the checks of each requirement. Dashboards know a check by its place in the list: correct the line of a check that is
# reworded, add a new one at the end (make generate does), and leave an empty text ("") where a check goes.
`

// YAML is the text of the file.
func (n CheckNames) YAML() ([]byte, error) {
	data, err := yaml.Marshal(n)
	return append([]byte(checkNamesHead), data...), err
}
