package leaktest

import (
	"testing"
	"time"
)

type tests func() int

func (t tests) Run() int { return t() }

func TestLeftGoroutinesFail(t *testing.T) {
	end := make(chan struct{})
	if code := run(tests(func() int { go func() { <-end }(); return 0 }), 100*time.Millisecond, nil); code != 1 {
		t.Errorf("a goroutine is left: exit code %d", code)
	}
	close(end)
	if code := Run(tests(func() int { go func() {}(); return 0 })); code != 0 {
		t.Errorf("a goroutine that ends: exit code %d", code)
	}
	if code := Run(tests(func() int { return 3 })); code != 3 {
		t.Errorf("tests that failed: exit code %d", code)
	}
}

func lasts(end <-chan struct{}) { <-end }

func TestLastingGoroutinesAreNamed(t *testing.T) {
	end := make(chan struct{})
	defer close(end)
	start := tests(func() int { go lasts(end); return 0 })
	if code := run(start, 100*time.Millisecond, []string{"github.com/service-conformance/conformance/internal/leaktest.lasts"}); code != 0 {
		t.Errorf("exit code %d", code)
	}
}
