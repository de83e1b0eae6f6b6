//go:build !linux

package lab

// endMarked does nothing: without nodes there are no shells, and what others leave is not looked for here.
func endMarked(string) error { return nil }
