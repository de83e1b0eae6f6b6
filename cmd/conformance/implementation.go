package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/spec"
)

// implementation is what a vendor says of an implementation, in a file such as fixtures/implementation.example.yaml.
type implementation struct {
	// Name replaces the name of the candidate in reports.
	Name string `json:"name"`
	// Features are the features that it claims; empty claims all.
	Features []string `json:"features"`
	// Profiles are the profiles that it claims; empty claims all.
	Profiles []spec.Profile `json:"profiles"`
	// Declarations say what it does where the specification leaves room. They replace those of the candidate.
	Declarations map[spec.Declarable]string `json:"declarations"`
}

func readImplementation(path string) (*implementation, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the implementation file: %w", err)
	}
	var i implementation
	if err := yaml.UnmarshalStrict(data, &i); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	var problems []error
	for _, name := range slices.Sorted(maps.Keys(i.Declarations)) {
		values, known := spec.Declarables[name]
		switch {
		case !known:
			problems = append(problems, fmt.Errorf("%s: there is no declaration %q; there are %v", path, name, slices.Sorted(maps.Keys(spec.Declarables))))
		case !slices.Contains(values, i.Declarations[name]):
			problems = append(problems, fmt.Errorf("%s: %s is %s, not %q", path, name, strings.Join(values, " or "), i.Declarations[name]))
		}
	}
	return &i, errors.Join(problems...)
}

// declared is a candidate with what its vendor says of it.
type declared struct {
	candidate.Candidate
	implementation *implementation
}

// Describe implements candidate.Candidate.
func (d declared) Describe() candidate.Description {
	what := d.Candidate.Describe()
	if d.implementation.Name != "" {
		what.Implementation = d.implementation.Name
	}
	if d.implementation.Declarations != nil {
		what.Declarations = d.implementation.Declarations
	}
	return what
}
