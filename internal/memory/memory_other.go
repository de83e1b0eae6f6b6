//go:build !linux

// Package memory tells how much memory new processes can use, and for how long processes have waited for memory.
package memory

// Available is not known on this system.
func Available() (bytes int64, ok bool) { return 0, false }
