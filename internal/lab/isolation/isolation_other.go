//go:build !linux

package isolation

import (
	"errors"
	"os"
	"runtime"
)

// Isolated reports whether this process runs in network namespaces of its own.
func Isolated() bool { return false }

// Works fails: the nodes of a lab are network namespaces.
func Works() error {
	return errors.New(runtime.GOOS + " has no network namespaces; the data plane of the lab needs Linux")
}

// Isolate fails: there are no network namespaces on this system.
func Isolate(<-chan os.Signal) (code int, err error) {
	return 0, errors.New(runtime.GOOS + " has no network namespaces; the data plane of the lab needs Linux")
}

func abandonIsolated() {}

// Prepare does nothing.
func Prepare(func(prepared error) (code int)) error { return nil }

// Entered returns false: nobody can enter a lab here.
func Entered() bool { return false }

func SCTPWorks() bool     { return false }
func KernelHasIPVS() bool { return false }
func InGuest() bool       { return false }

// NeedsGuest reports whether a run needs another kernel than this machine's: there is no lab with nodes here.
func NeedsGuest(bool) bool { return false }

// RunInGuest fails: user-mode-linux needs Linux.
func RunInGuest(<-chan os.Signal) (code int, err error) {
	return 0, errors.New("user-mode-linux needs Linux")
}

// GuestMain does nothing.
func GuestMain() {}
