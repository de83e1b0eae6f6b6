package main

import (
	"fmt"
	"os"
	"slices"

	"github.com/service-conformance/conformance/framework/lab"
	"github.com/service-conformance/conformance/framework/scratch"
)

// removeLeft removes the temporary files, and ends the processes, that killed runs of this user have left on this machine. It returns the paths of what it removed.
func removeLeft() []string {
	removed, err := lab.Sweep()
	if err != nil {
		fmt.Fprintln(os.Stderr, "conformance: remove what an earlier run left:", err)
	}
	return slices.Concat(removed, scratch.Sweep())
}
