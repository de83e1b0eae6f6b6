//go:build unix

package scratch

import (
	"os"
	"syscall"
)

// OwnedByUser reports whether a file belongs to the user that runs this process.
func OwnedByUser(info os.FileInfo) bool {
	s, ok := info.Sys().(*syscall.Stat_t)
	return ok && int(s.Uid) == os.Geteuid()
}
