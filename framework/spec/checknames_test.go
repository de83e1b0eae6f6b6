package spec

import (
	"strings"
	"testing"
)

func TestStableNames(t *testing.T) {
	n := CheckNames{"alloc-a": {"is so", "", "is otherwise: in part"}}
	for check, want := range map[string]string{
		"alloc-a: is so":                 "alloc-a",
		"alloc-a: is otherwise: in part": "alloc-a-3",
		"alloc-a: is new":                "alloc-a: is new",
		"alloc-a: ":                      "alloc-a: ",
		"a check of somebody else":       "a check of somebody else",
	} {
		if got := n.Stable(check); got != want {
			t.Errorf("%q has the name %q instead of %q", check, got, want)
		}
	}
}

func TestNewChecksGoToTheEnd(t *testing.T) {
	n := CheckNames{"alloc-a": {"one", ""}}
	checks := []string{"alloc-a: two", "alloc-a: one", "alloc-b: three"}
	n.Complete(checks)
	for check, want := range map[string]string{"alloc-a: one": "alloc-a", "alloc-a: two": "alloc-a-3", "alloc-b: three": "alloc-b"} {
		if got := n.Stable(check); got != want {
			t.Errorf("%q has the name %q instead of %q", check, got, want)
		}
	}
	if err := n.Compare(checks); err != nil {
		t.Error(err)
	}
}

func TestAListThatDiffersFromTheChecksIsFound(t *testing.T) {
	n := CheckNames{"alloc-a": {"one", "gone", "one"}}
	err := n.Compare([]string{"alloc-a: one", "alloc-a: new"})
	if err == nil {
		t.Fatal("nothing was found")
	}
	for _, want := range []string{`lacks "alloc-a: new"`, `no check "alloc-a: gone"`, `"alloc-a: one" stands there twice`} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not in: %v", want, err)
		}
	}
}
