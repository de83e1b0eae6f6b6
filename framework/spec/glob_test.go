package spec

import (
	"testing"
	"unicode/utf8"
)

func TestGlob(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		want          bool
	}{
		{"alloc-*", "alloc-upper-band-first", true},
		{"alloc-*", "an-alloc-upper-band-first", false},
		{"*", "", true},
		{"*/24", "fills 10.96.0.0/24", true}, // path.Match stops at slashes
		{"fills 10.96.?.0/24", "fills 10.96.0.0/24", true},
		{"10.96.0.0", "10x96x0x0", false},
		{"a?", "a", false},
		{"[a]", "[a]", true},
		{"[a]", "a", false},
		{"upper", "upper-band", false},
	} {
		if got := Glob(c.pattern)(c.name); got != c.want {
			t.Errorf("%q matches %q: %t, want %t", c.pattern, c.name, got, c.want)
		}
	}
}

func FuzzGlob(f *testing.F) {
	f.Add("alloc-*", "alloc-x")
	f.Add("*?[\xff", "\\\n")
	f.Fuzz(func(t *testing.T, pattern, name string) {
		Glob(pattern)(name) // never panics
		if utf8.ValidString(name) && !(Glob(name)(name) && Glob("*"+name)(name)) {
			t.Errorf("%q does not match itself", name)
		}
	})
}
