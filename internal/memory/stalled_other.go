//go:build !linux

package memory

import "time"

// Stalled is not known on this system.
func Stalled() (total time.Duration, ok bool) { return 0, false }
