package scratch

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// TryLock takes the lock of f, which the system drops when the process ends; false means that another
// process holds it.
func TryLock(f *os.File) (bool, error) {
	err := windows.LockFileEx(windows.Handle(f.Fd()), windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0, &windows.Overlapped{})
	if errors.Is(err, windows.ERROR_LOCK_VIOLATION) {
		return false, nil
	}
	return err == nil, err
}

// OwnedByUser reports whether a file belongs to the user that runs this process: the folder for temporary files is
// this user's own there.
func OwnedByUser(os.FileInfo) bool { return true }
