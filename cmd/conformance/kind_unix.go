//go:build unix

package main

import (
	"os"
	"os/exec"
	"syscall"
)

// ownGroup puts cmd, when it is started, into a process group of its own, which no Ctrl-C at the terminal reaches.
func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// interrupt asks a process to end, as Ctrl-C does.
func interrupt(p *os.Process) error { return p.Signal(os.Interrupt) }
