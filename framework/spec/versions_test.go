package spec

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

func TestParseVersions(t *testing.T) {
	for _, test := range []struct {
		constraint string
		admitted   []string
		refused    []string
	}{
		{"", []string{"v1.0.0", "v1.37.1", "", "no version"}, nil},
		{">=1.33", []string{"v1.33.0", "1.33.0", "v1.33.13", "v1.37.1", "v2.0.0"}, []string{"v1.32.9", "v1.3.0"}},
		{"<1.36", []string{"v1.35.4", "v1.9.0"}, []string{"v1.36.0", "v1.36.3", "v1.37.1"}},
		{">=1.31 <1.36", []string{"v1.31.0", "v1.35.99"}, []string{"v1.30.9", "v1.36.0"}},
		{"<1.31 || >=1.36", []string{"v1.30.0", "v1.36.0"}, []string{"v1.31.0", "v1.35.4"}},
		{">=1.36.2", []string{"v1.36.2", "v1.37.0"}, []string{"v1.36.1"}},
		// A pre-release and a vendor's build belong to the version that they are of.
		{">=1.34", []string{"v1.34.0-alpha.1", "v1.34.0-rc.0.12+0123456789abcd", "v1.34.4-gke.100", "v1.34.4+k3s1"}, []string{"v1.33.9+k3s1"}},
		{"<1.34", nil, []string{"v1.34.0-alpha.1"}},
		// What cannot be read is judged rather than skipped.
		{">=1.34", []string{"", "latest", "v1.x"}, nil},
	} {
		admits, err := ParseVersions(test.constraint)
		if err != nil {
			t.Errorf("%q: %v", test.constraint, err)
			continue
		}
		for _, v := range test.admitted {
			if !admits(v) {
				t.Errorf("%q does not admit %q", test.constraint, v)
			}
		}
		for _, v := range test.refused {
			if admits(v) {
				t.Errorf("%q admits %q", test.constraint, v)
			}
		}
	}
}

func TestParseVersionsRefuses(t *testing.T) {
	for _, constraint := range []string{" ", "new", ">=", "1.33 or so", ">>1.33", ">=1.x.y.z", ">=1.33 &&", "|| >=1.33", "=>1.33", "<1.31||>=1.36"} {
		if admits, err := ParseVersions(constraint); err == nil || admits != nil {
			t.Errorf("%q is accepted", constraint)
		}
	}
}

// A half-open range of minor versions admits exactly the versions of these minors, whatever their patch level.
func TestParseVersionsRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := rapid.IntRange(0, 99).Draw(t, "low")
		high := rapid.IntRange(low, 99).Draw(t, "high")
		minor := rapid.IntRange(0, 99).Draw(t, "minor")
		patch := rapid.IntRange(0, 999).Draw(t, "patch")
		suffix := rapid.SampledFrom([]string{"", "-alpha.0", "-rc.1.7+deadbeef", "+vendor.1"}).Draw(t, "suffix")
		version := fmt.Sprintf("v1.%d.%d%s", minor, patch, suffix)

		inside, err := ParseVersions(fmt.Sprintf(">=1.%d <1.%d", low, high))
		if err != nil {
			t.Fatal(err)
		}
		if got, want := inside(version), low <= minor && minor < high; got != want {
			t.Fatalf("admits %s = %v, want %v", version, got, want)
		}
		outside, err := ParseVersions(fmt.Sprintf("<1.%d || >=1.%d", low, high))
		if err != nil {
			t.Fatal(err)
		}
		if outside(version) == inside(version) {
			t.Fatalf("%s is inside and outside alike", version)
		}
	})
}

// FuzzParseVersions looks for panics, and for constraints that are neither refused nor usable.
func FuzzParseVersions(f *testing.F) {
	for _, constraint := range []string{"", ">=1.33", ">=1.31 <1.36", "<1.31||>=1.36", "!=1.33", ">=1.x", "||", ">=99999999999999999999.1"} {
		f.Add(constraint, "v1.37.1")
	}
	f.Add(">=1.33", "v1.34.0-alpha.1+meta")
	f.Fuzz(func(t *testing.T, constraint, version string) {
		admits, err := ParseVersions(constraint)
		if (err == nil) == (admits == nil) {
			t.Fatalf("%q: predicate %v, error %v", constraint, admits != nil, err)
		}
		if err == nil && !admits("no version") {
			t.Fatalf("%q refuses what is no version", constraint)
		}
		if err == nil {
			admits(version) // must not panic
		}
	})
}
