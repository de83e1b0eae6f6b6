package main

import (
	"errors"
	"slices"

	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/scratch"
)

// removeLeft removes the temporary files, and ends the processes, that killed runs of this user have left on this
// machine. It returns the paths of what it removed. Clusters of tier kind stay while no Docker engine answers. The
// error tells of them. Only a command that needs an engine, or cleans up, shows it.
func removeLeft() ([]string, error) {
	removed, err := process.Sweep()
	more, left := scratch.Sweep()
	return slices.Concat(removed, more), errors.Join(err, left)
}
