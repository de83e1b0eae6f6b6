//go:build unix

package kindcluster

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts cmd, when it is started, into a process group of its own.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup asks a process that leads a group, and the group, to end.
func endGroup(p *os.Process) error { return syscall.Kill(-p.Pid, syscall.SIGTERM) }

// killGroup ends what is left of the group that a process leads, or has led.
func killGroup(p *os.Process) { _ = syscall.Kill(-p.Pid, syscall.SIGKILL) }
