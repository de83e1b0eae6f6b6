//go:build !linux

package network

// Cgroups are none: nothing makes them here.
func Cgroups() []string { return nil }
