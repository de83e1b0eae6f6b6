package isolation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/service-conformance/conformance/internal/lab/network"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/scratch"
)

// Variable marks the environment of a process that Isolate has started.
const Variable = "CONFORMANCE_LAB_ISOLATED"

// StayMark is its value in the process that stays, when Up ends.
const StayMark = "stay"

// isolationTest is its value in a process that only tries whether isolation works.
const isolationTest = "test"

// Isolated reports whether this process runs in network and mount namespaces of its own, where a data plane can be built.
func Isolated() bool { return os.Getenv(Variable) != "" }

// Isolate runs this program anew, with the same arguments, in network and mount namespaces of its own. Unless it runs
// as root, it does so in a user namespace in which it is root. It returns the exit code of that process, which dies
// with this one; with it the kernel removes whatever was built in the namespaces. Signals that come are passed on to
// it; a terminal sends its own to both. The error says why that process could not start or which signal ended it; Works
// says before whether the machine has such namespaces.
func Isolate(signals <-chan os.Signal) (code int, err error) {
	cmd := Command(os.Args[1:], "1")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := process.OnSpawner(cmd.Start); err != nil {
		return 0, fmt.Errorf("start the lab in namespaces: %w", err)
	}
	Started.Store(cmd.Process)
	defer Started.Store(nil)
	ended := make(chan struct{})
	defer close(ended)
	go PassSignals(signals, cmd.Process, ended)
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), nil
	}
	if err != nil {
		err = errors.Join(fmt.Errorf("the process in namespaces of its own ended: %w", err), process.SweepIn(os.TempDir()))
		_, _ = scratch.Sweep()
	}
	return 0, err
}

// Started is what Isolate waits for, if it does.
var Started atomic.Pointer[os.Process]

// abandonIsolated kills the process that Isolate waits for, and removes what it leaves.
func abandonIsolated() {
	p := Started.Load()
	if p == nil {
		return
	}
	if started, err := process.StartTime(p.Pid); err == nil {
		_ = process.Identity{PID: p.Pid, Started: started}.End((*os.Process).Kill)
	}
	_ = process.SweepIn(os.TempDir())
	_, _ = scratch.Sweep()
}

// PassSignals passes signals on to a process until it has ended.
func PassSignals(signals <-chan os.Signal, to *os.Process, ended <-chan struct{}) {
	for {
		select {
		case s := <-signals:
			_ = to.Signal(s)
		case <-ended:
			return
		}
	}
}

// Command is this program in namespaces of its own.
func Command(args []string, mark string) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", args...)
	cmd.Args[0] = os.Args[0]
	cmd.Env = append(os.Environ(), Variable+"="+mark)
	attr := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWNET | unix.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	if os.Geteuid() != 0 {
		attr.Cloneflags |= unix.CLONE_NEWUSER
		attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
		attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}}
	}
	cmd.SysProcAttr = attr
	return cmd
}

// trialTimeout bounds the trial: a loaded machine, and more so a guest, starts programs slowly.
const trialTimeout = 5 * time.Minute

// Works tries it: some systems let an ordinary user make namespaces and then nothing in them.
func Works() error {
	ctx, cancel := context.WithTimeout(context.Background(), trialTimeout)
	defer cancel()
	cmd := Command(nil, isolationTest)
	var said strings.Builder
	cmd.Stderr = &said
	if err := process.OnSpawner(cmd.Start); err != nil {
		return fmt.Errorf("this machine does not let this user make network namespaces (%w): %s", err, allowNamespaces(os.Geteuid()))
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Kill() })
	defer stop()
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("the namespaces that this machine allows are of no use (%s): %s", strings.TrimSpace(said.String()), allowNamespaces(os.Geteuid()))
	}
	return nil
}

// allowNamespaces says what a user can do about it.
func allowNamespaces(euid int) string {
	if euid == 0 {
		return "in a container, give it the capabilities SYS_ADMIN and NET_ADMIN (docker run --privileged); elsewhere look at the sysctls user.max_net_namespaces and user.max_mnt_namespaces"
	}
	return "run as root, or allow user namespaces " +
		"(sysctls kernel.unprivileged_userns_clone, user.max_user_namespaces, kernel.apparmor_restrict_unprivileged_userns)"
}

// Prepare completes the isolation of this process, if it is isolated; main calls it before anything else. It does not
// return in a process that only tries, nor in one that keeps what Up has started. There it calls stay, and ends with
// its exit code.
func Prepare(stay func(prepared error) (code int)) error {
	if !Isolated() {
		return dieWithParent()
	}
	err := errors.Join(prepareMounts(), network.SetLoopbackUp())
	if os.Getenv(Variable) == isolationTest {
		if err == nil {
			err = tryNetwork()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if os.Getenv(Variable) == StayMark {
		os.Exit(stay(err))
	}
	return err
}

// prepareMounts gives the process a /run of its own: iptables has its lock there.
func prepareMounts() error {
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("make the mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", "/run", "tmpfs", 0, "mode=0755"); err != nil {
		return fmt.Errorf("mount a tmpfs on /run: %w", err)
	}
	return protectMachine()
}

// protectMachine keeps a proxy from writing sysctls that are not of a network namespace. On a machine of its own the
// proxy may write them; here they are those of everybody.
func protectMachine() error {
	for _, dir := range []string{"/proc/sys/kernel", "/proc/sys/vm", "/proc/sys/fs"} {
		if err := unix.Mount(dir, dir, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
			return fmt.Errorf("protect %s: %w", dir, err)
		}
		if err := unix.Mount("", dir, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
			return fmt.Errorf("protect %s: %w", dir, err)
		}
	}
	return nil
}

// tryNetwork builds a node with a pod and takes them away again.
func tryNetwork() error {
	f, err := network.NewFabric()
	if err != nil {
		return err
	}
	n, err := f.AddNode()
	if err != nil {
		return err
	}
	_, err = n.AddPod()
	return err
}
