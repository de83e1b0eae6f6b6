package scratch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/gofrs/flock"
)

// A Lock is a lock file that this process holds. The system gives it back when the process ends, however it does.
type Lock struct{ file *flock.Flock }

// LockFile waits until this process is the only one that holds the lock file, which it creates, with its folder. waiting, if not
// nil, is called once when another process holds it. The error is that of ctx if it ends before.
func LockFile(ctx context.Context, path string, waiting func()) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	for {
		l, err := AttemptLock(path)
		if l != nil || err != nil {
			return l, err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for the lock %s, which another process holds: %w", path, context.Cause(ctx))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// AttemptLock takes the lock file at once, which it creates. It returns nil without an error if another process holds it.
func AttemptLock(path string) (*Lock, error) {
	f := flock.New(path, flock.SetPermissions(0o644))
	ok, err := f.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if ok {
		// The last holder may have removed the file between the two calls: the lock would be on a file that no one else sees.
		mine, err := f.Stat()
		now, errNow := os.Stat(path)
		if err == nil && errNow == nil && os.SameFile(mine, now) {
			return &Lock{f}, nil
		}
	}
	_ = f.Close() // it is given back in any case
	return nil, nil
}

// Unlock gives the lock back and leaves the file.
func (l *Lock) Unlock() { _ = l.file.Close() }

// Remove gives the lock back and removes the file where the system can remove open files.
func (l *Lock) Remove() {
	os.Remove(l.file.Path())
	l.Unlock()
}
