package memory

import "testing"

func TestParse(t *testing.T) {
	n, ok := parse([]byte("MemTotal:       24684156 kB\nMemFree:  1 kB\nMemAvailable:   2048 kB\n"))
	if !ok || n != 2<<20 {
		t.Errorf("%d, %t", n, ok)
	}
	for _, s := range []string{"", "MemTotal: 1 kB\n", "MemAvailable: many kB\n"} {
		if _, ok := parse([]byte(s)); ok {
			t.Errorf("%q was understood", s)
		}
	}
}
