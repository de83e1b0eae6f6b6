package process

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"
)

// environmentOf is the environment that a process was started with. In the midst of execve it reads as empty for a
// moment. It is always empty for what has none, and for what has no program: zombies and threads of the kernel.
func environmentOf(pid int) ([]byte, error) {
	const looks = 50
	dir := fmt.Sprintf("/proc/%d", pid)
	for look := 1; ; look++ {
		env, err := os.ReadFile(filepath.Join(dir, "environ"))
		if err != nil || len(env) > 0 || look == looks {
			return env, err
		}
		if _, err := os.Readlink(filepath.Join(dir, "exe")); err != nil {
			return nil, err
		}
		time.Sleep(time.Millisecond)
	}
}

// EndMarked ends what still runs in the shells of a lab, and what the commands of users have left, whose namespaces it would keep.
func EndMarked(runDir string) error {
	marked, err := Marked(runDir)
	errs := []error{err}
	for _, i := range marked {
		errs = append(errs, i.End((*os.Process).Kill))
	}
	return errors.Join(errs...)
}

// Marked are the processes of this machine that run in the shells of a lab, or that the commands of users have started.
func Marked(runDir string) (marked []Identity, err error) {
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	mark := []byte("\x00" + LabVariable + "=" + runDir + "\x00")
	for _, path := range processes {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		i := Identity{PID: pid}
		if i.Started, err = StartTime(pid); err != nil {
			continue // it has ended
		}
		env, err := environmentOf(pid)
		if err != nil || !bytes.Contains(append([]byte{0}, env...), mark) {
			continue // it is somebody else's, or runs elsewhere
		}
		marked = append(marked, i)
	}
	return marked, nil
}
