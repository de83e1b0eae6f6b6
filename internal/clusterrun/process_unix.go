//go:build unix

package clusterrun

import (
	"os"
	"os/exec"

	"github.com/service-conformance/conformance/internal/processgroup"
)

// ownGroup puts cmd, when it is started, into a process group of its own, which no Ctrl-C at the terminal reaches.
func ownGroup(cmd *exec.Cmd) { processgroup.Own(cmd) }

// interrupt asks a process to end, as Ctrl-C does.
func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }
