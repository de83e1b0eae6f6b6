package process

import (
	"fmt"
	"os"
	"os/exec"
	"strconv"

	"golang.org/x/sys/windows"

	"github.com/service-conformance/conformance/internal/processgroup"
)

// spawn starts cmd. The system is not asked to tie its life to that of this process; what a killed run leaves
// is found by the next one.
func spawn(cmd *exec.Cmd, detached bool) error {
	processgroup.Own(cmd)
	if detached {
		cmd.SysProcAttr.CreationFlags |= windows.DETACHED_PROCESS
	}
	return cmd.Start()
}

// StartTime identifies a process by its creation time. It returns an os.ErrNotExist error for a process that
// does not exist or has ended.
func StartTime(pid int) (string, error) {
	h, err := windows.OpenProcess(windows.PROCESS_QUERY_LIMITED_INFORMATION, false, uint32(pid))
	if err != nil {
		return "", fmt.Errorf("process %d: %w", pid, os.ErrNotExist)
	}
	defer windows.CloseHandle(h)
	var creation, exit, kernel, user windows.Filetime
	if err := windows.GetProcessTimes(h, &creation, &exit, &kernel, &user); err != nil {
		return "", fmt.Errorf("process %d: %w", pid, err)
	}
	if exit.HighDateTime != 0 || exit.LowDateTime != 0 {
		return "", fmt.Errorf("process %d has ended: %w", pid, os.ErrNotExist)
	}
	return strconv.FormatInt(creation.Nanoseconds(), 10), nil
}
