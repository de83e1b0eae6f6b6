package standing

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/process"
)

// Shell runs a command in a place of the lab that Up has started, with the streams of this process. It returns the exit
// code, which is 128 and the number of the signal that ended it. The command sees that place's network, and the mounts
// and the users of the lab: an ordinary user is root there.
func Shell(o ShellOptions) (code int, err error) {
	r, err := Status(o.StateDir, o.Name)
	switch {
	case err != nil:
		return 0, err
	case r == nil:
		return 0, NotUp(o.StateDir, o.Name)
	case len(r.Nodes) == 0:
		return 0, fmt.Errorf("the lab that is up has no nodes: %s", r.WithoutNodes)
	}
	places, err := dataplane.ReadPlaces(r.Dir)
	if err != nil {
		return 0, err
	}
	p, err := dataplane.FindPlace(places, o.Place)
	if err != nil {
		return 0, err
	}
	namespaces, err := p.Namespaces(r.Servers[0].PID)
	if err != nil {
		return 0, err
	}
	defer func() {
		for _, f := range namespaces {
			f.Close()
		}
	}()
	argv := o.Command
	if len(argv) == 0 {
		argv = []string{os.Getenv("SHELL")}
		if argv[0] == "" {
			argv[0] = "/bin/sh"
		}
	}
	program, err := lookPath(argv[0], process.BeforeOwnPath(r.Path))
	if err != nil {
		return 0, err
	}
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	child, err := startInside(namespaces, program, argv, shellEnvironment(r, p.Name))
	if err != nil {
		return 0, fmt.Errorf("open a shell in %s: %w", p.Name, err)
	}
	go func() {
		for s := range signals {
			if s != syscall.SIGINT { // Ctrl-C reaches it without us
				_ = child.Signal(s)
			}
		}
	}()
	state, err := child.Wait()
	if err != nil {
		return 0, err
	}
	if status := state.Sys().(syscall.WaitStatus); status.Signaled() {
		return 128 + int(status.Signal()), nil
	}
	return state.ExitCode(), nil
}

// lookPath finds a program on a PATH.
func lookPath(name, path string) (string, error) {
	if strings.Contains(name, "/") {
		return exec.LookPath(name)
	}
	for _, dir := range filepath.SplitList(path) {
		if found, err := exec.LookPath(filepath.Join(dir, name)); err == nil && filepath.IsAbs(found) {
			return found, nil
		}
	}
	return "", fmt.Errorf("there is no program %s on the PATH of the lab, %s", name, path)
}

// startInside starts a program in namespaces. A process with several threads, as those of Go are, may not enter a user
// namespace. Its child can between fork and exec, where it has one thread.
func startInside(namespaces []*os.File, program string, argv, env []string) (*os.Process, error) {
	f := insider{flags: uintptr(unix.SIGCHLD)}
	for i, ns := range namespaces {
		f.namespaces[i] = ns.Fd()
	}
	f.count = len(namespaces)
	dir, err := os.Getwd()
	if err != nil {
		dir = "/"
	}
	var errs [4]error
	f.program, errs[0] = syscall.BytePtrFromString(program)
	f.dir, errs[1] = syscall.BytePtrFromString(dir)
	f.argv, errs[2] = syscall.SlicePtrFromStrings(argv)
	f.env, errs[3] = syscall.SlicePtrFromStrings(env)
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	var report [2]int // what went wrong before the program ran; that it runs closes it
	if err := unix.Pipe2(report[:], unix.O_CLOEXEC); err != nil {
		return nil, err
	}
	f.report = uintptr(report[1])
	defer unix.Close(report[0])

	syscall.ForkLock.Lock()
	pid, errno := f.fork()
	syscall.ForkLock.Unlock()
	unix.Close(report[1])
	if errno != 0 {
		return nil, fmt.Errorf("fork: %w", errno)
	}
	child, err := os.FindProcess(pid)
	if err != nil {
		return nil, err
	}
	var failed [2]byte
	if n, _ := unix.Read(report[0], failed[:]); n == len(failed) {
		_, _ = child.Wait()
		return nil, fmt.Errorf("%s: %w", insiderSteps[failed[0]], syscall.Errno(failed[1]))
	}
	return child, nil
}

// insider is what a child needs between fork and exec, where it may neither allocate nor wait.
type insider struct {
	flags        uintptr
	namespaces   [3]uintptr
	count        int
	report       uintptr
	program, dir *byte
	argv, env    []*byte
	all, before  [1]uint64 // signal sets
	failed       [2]byte
}

// The steps of a child that can fail.
const (
	entering = iota
	running
)

var insiderSteps = [...]string{entering: "enter the namespaces of the lab", running: "run the program"}

// fork starts the child. All signals are blocked meanwhile: their handlers are not made for the child.
//
//go:norace
func (f *insider) fork() (pid int, errno syscall.Errno) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	f.all[0] = ^uint64(0)
	const size = unsafe.Sizeof(f.all)
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&f.all)), uintptr(unsafe.Pointer(&f.before)), size, 0, 0)
	child, _, errno := syscall.RawSyscall6(unix.SYS_CLONE, f.flags, 0, 0, 0, 0, 0)
	if errno == 0 && child == 0 {
		f.enter()
	}
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&f.before)), 0, size, 0, 0)
	return int(child), errno
}

// enter is the child. It does not return.
//
//go:norace
//go:nosplit
func (f *insider) enter() {
	var errno syscall.Errno
	for i := 0; i < f.count; i++ {
		if _, _, errno = syscall.RawSyscall(unix.SYS_SETNS, f.namespaces[i], 0, 0); errno != 0 {
			f.fail(entering, errno)
		}
	}
	_, _, _ = syscall.RawSyscall(unix.SYS_CHDIR, uintptr(unsafe.Pointer(f.dir)), 0, 0) // new mounts begin at the root; what is not there stays away
	_, _, _ = syscall.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK, uintptr(unsafe.Pointer(&f.before)), 0, unsafe.Sizeof(f.before), 0, 0)
	_, _, errno = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(f.program)), uintptr(unsafe.Pointer(&f.argv[0])), uintptr(unsafe.Pointer(&f.env[0])))
	f.fail(running, errno)
}

//go:norace
//go:nosplit
func (f *insider) fail(step byte, errno syscall.Errno) {
	f.failed[0], f.failed[1] = step, byte(errno)
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, f.report, uintptr(unsafe.Pointer(&f.failed)), unsafe.Sizeof(f.failed))
	for {
		_, _, _ = syscall.RawSyscall(unix.SYS_EXIT_GROUP, 1, 0, 0)
	}
}
