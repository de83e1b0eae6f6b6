//go:build linux

package network

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/gofrs/flock"
	"golang.org/x/sys/unix"
)

// A cgroup holds the threads and processes of one node and its pods. So programs that a proxy hangs on cgroups (load
// balancing of sockets in eBPF) serve the sockets of their own node only. It is a threaded one of version 2: threads of
// one process open the sockets of all pods.
type cgroup struct {
	path string
	held *flock.Flock // locked as long as this process lives
}

// cgroupPrefix begins the names of cgroups that labs make.
const cgroupPrefix = "conformance-lab-"

// newCgroup makes a cgroup below that of this process. It returns nil where this is impossible. There is no cgroup of
// version 2, it belongs to somebody else (as without root), or it distributes resources, which allows for no threads.
func newCgroup() *cgroup {
	own, err := ownCgroup()
	if err != nil {
		return nil
	}
	removeLeftCgroups(own)
	path, err := os.MkdirTemp(own, cgroupPrefix+"*")
	if err != nil {
		return nil
	}
	c := &cgroup{path: path}
	cgroups.Store(path, nil)
	if c.held, err = lockFolder(path); err == nil {
		err = os.WriteFile(filepath.Join(path, "cgroup.type"), []byte("threaded"), 0)
	}
	if err == nil {
		err = onThreadOf(c.enter, c.leave)
	}
	if err != nil {
		c.remove()
		return nil
	}
	return c
}

// lockFolder locks a folder that nobody else has locked.
func lockFolder(path string) (*flock.Flock, error) {
	f := flock.New(path, flock.SetFlag(os.O_RDONLY))
	ok, err := f.TryLock()
	if err == nil && !ok {
		err = fmt.Errorf("another process holds %s", path)
	}
	if err != nil {
		return nil, err
	}
	return f, nil
}

// enter moves the calling thread, and what it starts from now on, into the cgroup. A nil one is nowhere to go.
func (c *cgroup) enter() error {
	if c == nil {
		return nil
	}
	if err := moveThread(c.path); err != nil {
		return fmt.Errorf("enter the cgroup of a node: %w", err)
	}
	return nil
}

// leave moves the calling thread back into the cgroup of this process.
func (c *cgroup) leave() error {
	if c == nil {
		return nil
	}
	own, err := ownCgroup()
	if err != nil {
		return err
	}
	if err := moveThread(own); err != nil {
		return fmt.Errorf("leave the cgroup of a node: %w", err)
	}
	return nil
}

// remove removes the cgroup. One that somebody still is in is left to the next lab.
func (c *cgroup) remove() {
	if c == nil {
		return
	}
	if err := unix.Rmdir(c.path); err == nil {
		cgroups.Delete(c.path)
	}
	if c.held != nil {
		_ = c.held.Close() // the folder is gone
	}
}

// cgroups are those that this process has made and not removed, by path.
var cgroups sync.Map

// Cgroups are the paths of the cgroups that this process has made and not removed.
func Cgroups() (paths []string) {
	cgroups.Range(func(path, _ any) bool {
		paths = append(paths, path.(string))
		return true
	})
	slices.Sort(paths)
	return paths
}

func moveThread(path string) error {
	return os.WriteFile(filepath.Join(path, "cgroup.threads"), []byte("0"), 0)
}

// ownCgroup is the folder of the cgroup of version 2 that this process began in.
var ownCgroup = sync.OnceValues(func() (string, error) {
	mounted, err := cgroupMount("/proc/self/mountinfo")
	if err != nil {
		return "", err
	}
	b, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return "", err
	}
	for line := range strings.Lines(string(b)) {
		if path, found := strings.CutPrefix(line, "0::"); found {
			return filepath.Join(mounted, strings.TrimSpace(path)), nil
		}
	}
	return "", errors.New("this process is in no cgroup of version 2")
})

// cgroupMount is where a whole hierarchy of version 2 is mounted (proc_pid_mountinfo(5)).
func cgroupMount(mountinfo string) (string, error) {
	f, err := os.Open(mountinfo)
	if err != nil {
		return "", err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		mount, kind, found := strings.Cut(lines.Text(), " - ")
		fields := strings.Fields(mount)
		if found && strings.HasPrefix(kind, "cgroup2 ") && len(fields) > 4 && fields[3] == "/" {
			return fields[4], nil
		}
	}
	if err := lines.Err(); err != nil {
		return "", err
	}
	return "", errors.New("no cgroup of version 2 is mounted")
}

// removeLeftCgroups removes the cgroups of labs whose process was killed.
func removeLeftCgroups(own string) {
	left, err := filepath.Glob(filepath.Join(own, cgroupPrefix+"*"))
	if err != nil {
		return
	}
	for _, path := range left {
		if f, err := lockFolder(path); err == nil { // else somebody has it
			_ = unix.Rmdir(path)
			_ = f.Close()
		}
	}
}
