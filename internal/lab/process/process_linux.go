package process

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"

	"github.com/service-conformance/conformance/internal/lab/network"
)

// spawner starts processes from one thread that never ends. The kernel sends the parent-death signal when the thread
// that started a process ends, not when the process does. Threads do end, for example those that entered a network
// namespace.
var spawner = sync.OnceValue(func() chan<- func() {
	jobs := make(chan func())
	go spawnForEver(jobs)
	return jobs
})

func spawnForEver(jobs <-chan func()) {
	runtime.LockOSThread()
	for job := range jobs {
		job()
	}
}

// spawn starts cmd in a process group of its own; unless detached, the kernel kills it when this process ends.
func spawn(cmd *exec.Cmd, detached bool) error {
	if detached {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		return cmd.Start()
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	return OnSpawner(cmd.Start)
}

// OnSpawner runs start on the thread that never ends.
func OnSpawner(start func() error) error {
	result := make(chan error)
	spawner() <- func() { result <- start() }
	return <-result
}

// SpawnIn starts processes like spawn, in a network namespace. They die with this process.
func SpawnIn(n *network.Namespace) func(*exec.Cmd) error {
	return func(cmd *exec.Cmd) error {
		cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
		return OnSpawner(func() error {
			leave, err := n.Enter()
			if err != nil {
				return err
			}
			err = cmd.Start()
			if back := leave(); back != nil {
				panic(fmt.Sprintf("the thread that starts processes cannot leave a network namespace: %v", back)) // it would start all others there
			}
			return err
		})
	}
}

// StartTime identifies a process for as long as the machine runs: its start time in clock ticks since boot
// (proc_pid_stat(5), field 22). It returns an os.ErrNotExist error for a process that does not exist or has ended.
func StartTime(pid int) (string, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return "", err
	}
	// The second field is a name in parentheses that may hold anything.
	i := bytes.LastIndexByte(b, ')')
	if i < 0 {
		return "", fmt.Errorf("process %d: no name in its stat file", pid)
	}
	fields := bytes.Fields(b[i+1:])
	if len(fields) < 20 {
		return "", fmt.Errorf("process %d: its stat file has %d fields", pid, len(fields)+2)
	}
	if state := fields[0][0]; state == 'Z' || state == 'X' {
		return "", fmt.Errorf("process %d has ended: %w", pid, os.ErrNotExist)
	}
	return string(fields[19]), nil
}
