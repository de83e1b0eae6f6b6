package runner

import (
	"testing"

	"pgregory.net/rapid"
)

func TestDistanceIsAMetric(t *testing.T) {
	word := rapid.StringMatching(`[a-c-]{0,8}`)
	rapid.Check(t, func(t *rapid.T) {
		a, b, c := word.Draw(t, "a"), word.Draw(t, "b"), word.Draw(t, "c")
		if (distance(a, b) == 0) != (a == b) || distance(a, b) != distance(b, a) || distance(a, c) > distance(a, b)+distance(b, c) {
			t.Fatalf("%q %q %q", a, b, c)
		}
	})
	if d := distance("alloc-any-port", "alloc-any-prt"); d != 1 {
		t.Errorf("a character that is left out is a distance of %d", d)
	}
}
