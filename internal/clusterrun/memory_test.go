package clusterrun

import (
	"strings"
	"testing"
)

func TestMemoryBoundsKindClusters(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		asked, workers int
		available      int64
		want           int
	}{
		{2, 2, 24 * gib, 2},
		{2, 2, 4 * gib, 1}, // one takes 2.3 GiB
		{4, 2, 8 * gib, 3},
		{4, 4, 8 * gib, 2}, // 3.5 GiB
		{2, 2, 1 * gib, 1}, // not even one fits, and the engine may know better
		{1, 2, 1 * gib, 1},
		{3, 2, 0, 3}, // not known
	} {
		got, why := fitting(c.asked, c.workers, c.available)
		if got != c.want || (why != "") != (got != c.asked) {
			t.Errorf("%d clusters of %d workers with %d MiB: %d (%q), want %d", c.asked, c.workers, c.available>>20, got, why, c.want)
		}
		if why != "" && !strings.Contains(why, "rough bound") {
			t.Errorf("it is not said what it follows from: %q", why)
		}
	}
}
