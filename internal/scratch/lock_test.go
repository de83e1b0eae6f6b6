package scratch

import (
	"context"
	"errors"
	"path/filepath"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestLockIsExclusive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := LockFile(t.Context(), path, nil)
	must(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := LockFile(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("a second holder: %v", err)
	}
	first.Remove()
	second, err := LockFile(t.Context(), path, func() { t.Error("the lock that was given back is still held") })
	must(t, err)
	second.Unlock()
}
