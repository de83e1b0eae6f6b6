package runner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/service-conformance/conformance/framework/spec"
)

// meant is a question that names the requirements with the most similar IDs; empty if none is similar.
func meant(id string) string {
	if strings.ContainsAny(id, "*?") {
		return ""
	}
	id, _, _ = strings.Cut(id, ":")
	type near struct {
		id       string
		distance int
	}
	var found []near
	for _, r := range spec.Default().Requirements {
		if d := distance(id, string(r.ID)); d <= max(2, len(id)/5) {
			found = append(found, near{string(r.ID), d})
		}
	}
	slices.SortStableFunc(found, func(a, b near) int { return cmp.Compare(a.distance, b.distance) })
	var names []string
	for _, n := range found[:min(len(found), 3)] {
		names = append(names, n.id)
	}
	if len(names) == 0 {
		return ""
	}
	return fmt.Sprintf(" (did you mean %s?)", strings.Join(names, ", "))
}

// distance is how many characters have to be added, removed or replaced to make one text of another (Levenshtein).
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			replaced := before
			if a[i] != b[j] {
				replaced++
			}
			before = row[j+1]
			row[j+1] = min(replaced, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
