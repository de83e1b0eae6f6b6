package clusterrun

import (
	"os"
	"os/exec"
)

// ownGroup does nothing: a Ctrl-C reaches the processes of a console, and nothing else does.
func ownGroup(*exec.Cmd) {}

// interrupt leaves it to the console.
func interrupt(*os.Process) error { return os.ErrProcessDone }
