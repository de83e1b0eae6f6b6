package isolation

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/scratch"
)

// A guest is this machine's file tree under another kernel: Debian's user-mode-linux, which runs as a process and has IPVS and SCTP. The lab boots itself
// in there where the machine's own kernel lacks what a run asks for. This program is the guest's first process (GuestMain), and runs itself there
// with the arguments that it was started with.

// guestKernel is the program, the first of that name in PATH. guestModules is where the modules of the Debian package
// user-mode-linux are, and modprobe loads them there.
const (
	guestKernel  = "linux.uml"
	guestModules = "/usr/lib/uml/modules"
	modprobe     = "/sbin/modprobe"
)

// guestCommand is the argument that makes this program the first process of a guest.
const guestCommand = "lab-guest-init"

// isolatedGuest is the value of isolatedVariable in a guest.
const isolatedGuest = "guest"

// InGuest reports whether this process runs in a guest.
func InGuest() bool { return os.Getenv(Variable) == isolatedGuest }

// guestMemory is what the guest may use, in MiB; it takes what it touches.
const guestMemory = 6144

// guestProcesses bounds the memory of Go programs in the guest, unless the user does. user-mode-linux maps each page of
// a process by itself, and kills one that reaches the machine's vm.max_map_count. That is 256 MiB of pages by default,
// which an API server reached after some 170 checks.
var guestProcesses = map[string]string{"GOGC": "50", "GOMEMLIMIT": "150MiB"}

// guestJob is what the guest does, as a file that both sides see.
type guestJob struct {
	Args []string `json:"args"`
	Env  []string `json:"env"`
	Dir  string   `json:"dir"`  // where to run
	Home string   `json:"home"` // the folder of the guest
}

// NeedsGuest reports whether proxies that may use IPVS cannot run on this machine's kernel.
func NeedsGuest(usesIPVS bool) bool { return usesIPVS && !KernelHasIPVS() }

// RunInGuest runs this program anew, with the same arguments, in a guest, and returns its exit code. Interrupts are passed on. The guest dies with
// this process.
func RunInGuest(signals <-chan os.Signal) (code int, err error) {
	kernel, err := exec.LookPath(guestKernel)
	if err != nil {
		return 0, fmt.Errorf("this machine's kernel has no IPVS, and there is no user-mode-linux to run one that has: install it (Debian: apt-get install user-mode-linux kmod ipvsadm ipset)")
	}
	if _, err := os.Stat(guestModules); err == nil && exec.Command(modprobe, "--version").Run() != nil { // a kernel of one's own may need no modules
		return 0, fmt.Errorf("user-mode-linux needs %s to load IPVS: install it (Debian: apt-get install kmod)", modprobe)
	}
	dir, err := scratch.New("guest")
	if err != nil {
		return 0, err
	}
	defer dir.Remove()
	home := dir.Path
	if err := prepareGuest(home); err != nil {
		return 0, err
	}
	self, err := os.Executable()
	if err != nil {
		return 0, err
	}
	// Since 6.16 seccomp can catch system calls of the guest, which is some two times as fast as ptrace. Older kernels
	// do not know the word.
	cmd := exec.Command(kernel, fmt.Sprintf("mem=%dM", guestMemory), "seccomp=auto", "root=/dev/root", "rootfstype=hostfs", "rootflags=/", "rw", "quiet", "loglevel=1",
		"hostname=guest", "con=null", "con0=fd:0,fd:1", "init="+self, "--", guestCommand, filepath.Join(home, "job.json"))
	cmd.Env = append(os.Environ(), "TMPDIR="+memoryFolder(home))
	// The console takes input as well as output: a line ends the run as Ctrl-C would.
	input, err := cmd.StdinPipe()
	if err != nil {
		return 0, err
	}
	cmd.Stdout = os.Stdout
	var said strings.Builder
	cmd.Stderr = &said
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := process.OnSpawner(func() error { return onOneProcessor(cmd.Start) }); err != nil {
		return 0, fmt.Errorf("start user-mode-linux: %w", err)
	}
	over := make(chan struct{})
	defer close(over)
	go func() {
		for {
			select {
			case <-signals:
				fmt.Fprintln(input, "interrupt")
			case <-over:
				return
			}
		}
	}()
	ended := cmd.Wait()
	b, err := os.ReadFile(filepath.Join(home, "exit"))
	if err != nil {
		return 0, fmt.Errorf("user-mode-linux ended before the run did (%w)%s: %s", ended, guestHint(), strings.TrimSpace(said.String()))
	}
	if _, err := fmt.Sscan(string(b), &code); err != nil {
		return 0, fmt.Errorf("the guest left no exit code but %q", b)
	}
	return code, nil
}

// onOneProcessor starts a process that stays, with all that it starts, on one of the machine's processors. With each
// system call of the guest one process of it waits for another, and never do two run. Across processors that takes some
// three times as long on an idle machine, and thirty times on a busy one.
func onOneProcessor(start func() error) error {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return start()
	}
	for cpu, left := 0, all.Count(); left > 0; cpu++ {
		if !all.IsSet(cpu) {
			continue
		}
		if left--; left == 0 { // the last one: the first serves interrupts on many machines
			one.Set(cpu)
		}
	}
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return start()
	}
	defer func() { _ = unix.SchedSetaffinity(0, &all) }() // of this thread
	return start()
}

// memoryFolder is where the guest's memory is, as a file without a name. It is in the machine's own memory where there
// is room, because writes to a disk now and then make the guest wait.
func memoryFolder(home string) string {
	const shared = "/dev/shm"
	var fs unix.Statfs_t
	if err := unix.Statfs(shared, &fs); err != nil || fs.Flags&unix.ST_NOEXEC != 0 || fs.Bavail*uint64(fs.Bsize) < guestMemory<<20 {
		return home
	}
	return shared
}

// prepareGuest writes the job, and lays out the modules as modprobe wants them.
func prepareGuest(home string) error {
	dir, err := os.Getwd()
	if err != nil {
		return err
	}
	env := append(os.Environ(), Variable+"="+isolatedGuest, "TMPDIR="+filepath.Join(home, "tmp"))
	for name, value := range guestProcesses {
		if os.Getenv(name) == "" {
			env = append(env, name+"="+value)
		}
	}
	if !isTerminal(os.Stdout) {
		env = append(env, "TERM=dumb") // the console of the guest is one
	}
	job, err := json.Marshal(guestJob{Args: os.Args[1:], Env: env, Dir: dir, Home: home})
	if err != nil {
		return err
	}
	script := fmt.Sprintf("#!/bin/sh\nexec %s -d %s \"$@\"\n", modprobe, home)
	return errors.Join(
		os.WriteFile(filepath.Join(home, "job.json"), job, 0o600),
		os.WriteFile(filepath.Join(home, "modprobe"), []byte(script), 0o700),
		os.Mkdir(filepath.Join(home, "tmp"), 0o700),
		os.MkdirAll(filepath.Join(home, "lib"), 0o700),
		os.Symlink(guestModules, filepath.Join(home, "lib", "modules")),
	)
}

func isTerminal(f *os.File) bool {
	_, err := unix.IoctlGetTermios(int(f.Fd()), unix.TCGETS)
	return err == nil
}

// GuestMain is the first process of a guest, if this is one. It prepares the system, runs the job, leaves its exit code
// and powers the guest off. Elsewhere it does nothing.
func GuestMain() {
	// The kernel hands over words of its command line that mean nothing to it too, before or after.
	i := slices.Index(os.Args, guestCommand)
	if os.Getpid() != 1 || i < 0 || i+1 >= len(os.Args) {
		return
	}
	job := os.Args[i+1]
	code, err := runGuest(job)
	if err != nil {
		fmt.Fprintln(os.Stderr, "guest:", err)
		code = 70
	}
	_ = os.WriteFile(filepath.Join(filepath.Dir(job), "exit"), fmt.Append(nil, code), 0o600)
	unix.Sync()
	_ = os.WriteFile("/proc/sys/kernel/printk", []byte("0"), 0) // its last words are nothing to the person who reads the report
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
}

// modules are loaded before anything asks for them: what is asked for from inside a namespace is not loaded on demand.
var modules = []string{
	"bridge", "veth", "dummy", "nf_conntrack", "nf_conntrack_netlink", "ip_tables", "ip6_tables", "iptable_nat", "iptable_filter", "iptable_mangle", "ip6table_nat", "ip6table_filter", "ip6table_mangle",
	"nf_tables", "nft_compat", "nft_chain_nat", "nft_ct", "nft_masq", "nft_nat", "nft_reject", "nft_reject_ipv4", "nft_reject_ipv6", "nft_fib", "nft_fib_ipv4", "nft_fib_ipv6", "nft_numgen", "nft_hash",
	"xt_addrtype", "xt_comment", "xt_conntrack", "xt_mark", "xt_MASQUERADE", "xt_nat", "xt_multiport", "xt_recent", "xt_set", "xt_statistic", "xt_tcpudp", "xt_ipvs", "xt_physdev", "xt_u32",
	"ipt_REJECT", "ip6t_REJECT", "ip_set", "ip_set_bitmap_port", "ip_set_hash_ip", "ip_set_hash_net", "ip_set_hash_ipport", "ip_set_hash_ipportip", "ip_set_hash_ipportnet",
	"ip_vs", "ip_vs_rr", "ip_vs_wrr", "ip_vs_lc", "ip_vs_dh", "ip_vs_sh", "ip_vs_sed", "ip_vs_nq", "crc-ccitt", "ipv6", "udp_tunnel", "ip6_udp_tunnel", "sctp", "nfnetlink_acct", "xt_nfacct",
}

func runGuest(path string) (int, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	var job guestJob
	if err := json.Unmarshal(content, &job); err != nil {
		return 0, err
	}
	for _, m := range []struct{ source, target, kind string }{
		{"proc", "/proc", "proc"}, {"sysfs", "/sys", "sysfs"}, {"tmpfs", filepath.Join(job.Home, "tmp"), "tmpfs"},
	} {
		if err := unix.Mount(m.source, m.target, m.kind, 0, ""); err != nil {
			return 0, fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	// A kernel that loads no modules has everything built in.
	if err := os.WriteFile("/proc/sys/kernel/modprobe", []byte(filepath.Join(job.Home, "modprobe")), 0); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, err
	}
	_ = unix.Sethostname([]byte("guest"))
	rawConsole()
	for _, m := range modules {
		_ = exec.Command(modprobe, "-q", "-d", job.Home, m).Run() // some are built in, and others this kernel has not
	}
	if !KernelHasIPVS() {
		return 0, fmt.Errorf("this kernel has no IPVS, nor modules of it in %s: take the Debian package user-mode-linux, or build one as fixtures/user-mode-linux.config says", guestModules)
	}
	cmd := exec.Command("/proc/self/exe", job.Args...)
	cmd.Env, cmd.Dir = job.Env, job.Dir
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stdout
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	go func() {
		for in := bufio.NewReader(os.Stdin); ; {
			if _, err := in.ReadString('\n'); err != nil {
				return
			}
			_ = cmd.Process.Signal(os.Interrupt)
		}
	}()
	err = cmd.Wait()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) {
		return exit.ExitCode(), nil
	}
	return 0, err
}

// rawConsole leaves lines as they are: the terminal outside does what is to be done with them.
func rawConsole() {
	t, err := unix.IoctlGetTermios(0, unix.TCGETS)
	if err != nil {
		return
	}
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ISIG
	_ = unix.IoctlSetTermios(0, unix.TCSETS, t)
}

// guestHint says what may be wrong with user-mode-linux on this processor: older kernels have no room for the registers of AMX.
func guestHint() string {
	if b, err := os.ReadFile("/proc/cpuinfo"); err == nil && strings.Contains(string(b), " amx_tile") {
		return "; this processor has AMX, on which user-mode-linux 6.1 of Debian 12 does not start: take a machine without it"
	}
	return ""
}
