//go:build unix && !linux

package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
)

// spawn starts cmd in a process group of its own. The system cannot tie its life to that of this process; what
// a killed run leaves is found by the next one.
func spawn(cmd *exec.Cmd, detached bool) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !detached, Setsid: detached}
	return cmd.Start()
}

// StartTime identifies a process by its start time. It returns an os.ErrNotExist error for a process that
// does not exist or has ended.
func StartTime(pid int) (string, error) {
	out, err := exec.Command("ps", "-o", "stat=", "-o", "lstart=", "-p", strconv.Itoa(pid)).Output()
	state, started, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	if err != nil || started == "" || strings.HasPrefix(state, "Z") {
		return "", fmt.Errorf("process %d: %w", pid, os.ErrNotExist)
	}
	return strings.TrimSpace(started), nil
}
