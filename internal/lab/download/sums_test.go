package download

import (
	"fmt"
	"maps"
	"strings"
	"testing"
)

func TestParseSums(t *testing.T) {
	a, b := strings.Repeat("a", 64), strings.Repeat("b", 64)
	for text, want := range map[string]Sums{
		a:                                      {"alone": a},
		a + "\n":                               {"alone": a},
		strings.ToUpper(a) + "  x\n":           {"x": a},
		a + " *./dir/x\r\n\n" + b + "  y":      {"dir/x": a, "y": b},
		a + "  x\n" + a + "  x\n" + b + "  y ": {"x": a, "y": b},
	} {
		if got, err := ParseSums(text, "alone"); err != nil || !maps.Equal(got, want) {
			t.Errorf("%q: %v, error %v", text, got, err)
		}
	}
	for text, want := range map[string]string{
		"": "no checksum", "\n\n": "no checksum", "<html>": "line 1", a[1:] + "  x": "line 1", a + "  x y": "line 1", a + "  x\n\n" + b + "  x": "line 3: a second checksum of x",
	} {
		if _, err := ParseSums(text, "alone"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", text, err, want)
		}
	}
	if _, err := ParseSums(a, ""); err == nil {
		t.Error("a checksum of no file was taken")
	}
}

func TestSumsAreFoundByPathBeforeName(t *testing.T) {
	s := Sums{"arm64/x": "1", "x": "2"}
	if got := fmt.Sprintf("%s %s %q", s.Of("arm64/x"), s.Of("amd64/x"), s.Of("y")); got != `1 2 ""` {
		t.Error(got)
	}
}

func FuzzParseSums(f *testing.F) {
	f.Add(strings.Repeat("a", 64)+"  x\n", "")
	f.Add("<html>", "x")
	f.Fuzz(func(t *testing.T, text, alone string) {
		sums, err := ParseSums(text, alone)
		if (err == nil) != (len(sums) > 0) {
			t.Errorf("%v, error %v", sums, err)
		}
		for name, sum := range sums {
			if !sumPattern.MatchString(sum) || name == "" {
				t.Errorf("%q: %q", name, sum)
			}
		}
	})
}
