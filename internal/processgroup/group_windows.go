// Package processgroup starts commands in process groups of their own, and ends them. Windows ends the command alone.
package processgroup

import (
	"os"
	"os/exec"
	"syscall"

	"golang.org/x/sys/windows"
)

// Own puts cmd, when it is started, into a process group of its own. No Ctrl-C at the console reaches it there.
func Own(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
}

// End kills the process: there is no signal that asks it to end.
func End(leader *os.Process) error { return leader.Kill() }

// Kill kills the process.
func Kill(leader *os.Process) error { return leader.Kill() }
