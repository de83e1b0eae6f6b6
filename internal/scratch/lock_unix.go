//go:build unix

package scratch

import (
	"errors"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// TryLock takes the advisory lock of f, which the system drops when the process ends; false means that
// another process holds it.
func TryLock(f *os.File) (bool, error) {
	err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if errors.Is(err, unix.EWOULDBLOCK) {
		return false, nil
	}
	return err == nil, err
}

// OwnedByUser reports whether a file belongs to the user that runs this process.
func OwnedByUser(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
