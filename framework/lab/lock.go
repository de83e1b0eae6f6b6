package lab

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// lock is a lock file that this process holds.
type lock struct{ file *os.File }

// lockFile waits until this process is the only one that holds the lock file, which it creates. waiting, if not
// nil, is called once when another process holds it.
func lockFile(ctx context.Context, path string, waiting func()) (*lock, error) {
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
func attemptLock(path string) (*lock, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	ok, err := tryLock(f)
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	if ok {
		// The last holder may have removed the file between the two calls: the lock would be on a file that no one else sees.
		mine, err := f.Stat()
		now, errNow := os.Stat(path)
		if err == nil && errNow == nil && os.SameFile(mine, now) {
			return &lock{f}, nil
		}
	}
	f.Close()
	return nil, nil
}

// unlock gives the lock back and leaves the file.
func (l *lock) unlock() { l.file.Close() }

// remove gives the lock back and removes the file where the system can remove open files.
func (l *lock) remove() {
	os.Remove(l.file.Name())
	l.file.Close()
}
