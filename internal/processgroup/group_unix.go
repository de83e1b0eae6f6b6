//go:build unix

// Package processgroup starts commands in process groups of their own, and ends whole groups: a command and what it started.
package processgroup

import (
	"errors"
	"os"
	"os/exec"
	"syscall"
)

// Own puts cmd, when it is started, into a process group of its own. No Ctrl-C at the terminal reaches it there.
func Own(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// End asks the process that leads a group, and the group, to end (SIGTERM). The error is os.ErrProcessDone if no process is in it.
func End(leader *os.Process) error { return signal(leader, syscall.SIGTERM) }

// Kill ends what is left of the group that a process leads, or has led. The error is os.ErrProcessDone if no process is in it.
func Kill(leader *os.Process) error { return signal(leader, syscall.SIGKILL) }

func signal(leader *os.Process, s syscall.Signal) error {
	err := syscall.Kill(-leader.Pid, s)
	if errors.Is(err, syscall.ESRCH) {
		return os.ErrProcessDone
	}
	return err
}
