package scratch

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// A Lock is a lock file that this process holds. The system gives it back when the process ends, however it does.
type Lock struct{ file *os.File }

// LockFile waits until this process is the only one that holds the lock file, which it creates, with its folder. waiting, if not
// nil, is called once when another process holds it. The error is that of ctx if it ends before.
func LockFile(ctx context.Context, path string, waiting func()) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	for {
		l, err := attemptLock(path)
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

// attemptLock returns nil without an error if another process holds the lock.
func attemptLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ok, err := TryLock(f)
	if err != nil {
		f.Close()
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
	f.Close()
	return nil, nil
}

// Unlock gives the lock back and leaves the file.
func (l *Lock) Unlock() { l.file.Close() }

// Remove gives the lock back and removes the file where the system can remove open files.
func (l *Lock) Remove() {
	os.Remove(l.file.Name())
	l.file.Close()
}
