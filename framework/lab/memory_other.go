//go:build !linux

package lab

// availableMemory is not known on this system.
func availableMemory() (bytes int64, ok bool) { return 0, false }
