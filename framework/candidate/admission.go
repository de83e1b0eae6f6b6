package candidate

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Admission is what the admission of a candidate does to Services beyond what an API server does by itself. Its
// operators may have configured plugins, policies and webhooks.
type Admission struct {
	// Labels, Annotations and Finalizers are what it adds to every Service: keys, sorted.
	Labels      []string `json:"labels,omitempty"`
	Annotations []string `json:"annotations,omitempty"`
	Finalizers  []string `json:"finalizers,omitempty"`
	// Refused are the features whose Services it refuses, with what it says.
	Refused map[string]string `json:"refused,omitempty"`
}

// Nothing reports whether it does nothing of the kind.
func (a *Admission) Nothing() bool {
	return a == nil || len(a.Labels)+len(a.Annotations)+len(a.Finalizers)+len(a.Refused) == 0
}

// Lines tell a person what it does, one line for each kind.
func (a *Admission) Lines() (lines []string) {
	if a == nil {
		return nil
	}
	var added []string
	for _, kind := range []struct {
		name string
		keys []string
	}{{"label", a.Labels}, {"annotation", a.Annotations}, {"finalizer", a.Finalizers}} {
		for _, key := range kind.keys {
			added = append(added, kind.name+" "+key)
		}
	}
	if len(added) > 0 {
		lines = append(lines, fmt.Sprintf("admission adds to Services: %s; demands on what was sent allow for that", strings.Join(added, ", ")))
	}
	for _, feature := range slices.Sorted(maps.Keys(a.Refused)) {
		lines = append(lines, fmt.Sprintf("admission refuses %s, which is not judged: %s", feature, a.Refused[feature]))
	}
	return lines
}
