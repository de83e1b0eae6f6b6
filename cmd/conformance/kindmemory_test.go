package main

import (
	"strings"
	"testing"
)

func TestMemoryBoundsKindClusters(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		asked, workers int
		available      uint64
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

func TestAvailableMemoryIsRead(t *testing.T) {
	for text, want := range map[string]uint64{
		"MemTotal:       24689764 kB\nMemFree:         1234 kB\nMemAvailable:   18123456 kB\nBuffers: 1 kB\n": 18123456 << 10,
		"MemTotal: 1 kB\n": 0, "": 0,
	} {
		if got := memAvailable(text); got != want {
			t.Errorf("%q: %d, want %d", text, got, want)
		}
	}
}
