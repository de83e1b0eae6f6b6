package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheListingIsCurrent shows each change of what the library exports.
func TestTheListingIsCurrent(t *testing.T) {
	root := filepath.Join("..", "..")
	want, err := list(root)
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(root, "docs", "api.txt"))
	if err != nil {
		t.Fatal(err)
	}
	had, has := lines(string(kept)), lines(want)
	for line := range has {
		if !had[line] {
			t.Errorf("new: %s", line)
		}
	}
	for line := range had {
		if !has[line] {
			t.Errorf("gone: %s", line)
		}
	}
	if string(kept) != want {
		t.Error("docs/api.txt is not what the packages export: read the changes, tell users in CHANGELOG.md, and run `make api`")
	}
}

// lines are those of a listing, each with its package.
func lines(listing string) map[string]bool {
	all := map[string]bool{}
	in := ""
	for line := range strings.Lines(listing) {
		line = strings.TrimSpace(line)
		if p, ok := strings.CutPrefix(line, "# "); ok {
			in = p
		}
		if line != "" {
			all[in+": "+line] = true
		}
	}
	return all
}
