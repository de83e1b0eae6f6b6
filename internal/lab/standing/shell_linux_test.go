package standing

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/service-conformance/conformance/internal/lab/dataplane"
	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/process"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/network"
)

func init() {
	fakes.Programs["holder"] = holder
	fakes.Programs["lab-shell"] = func(args []string) {
		code, err := Shell(ShellOptions{Place: args[0], Command: args[1:], StateDir: os.Getenv("LAB_STATE")})
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 64
		}
		os.Exit(code)
	}
	// ask sends a line to a backend and prints the answer.
	fakes.Programs["ask"] = func(args []string) {
		c, err := net.Dial("tcp", args[0])
		fakes.Check(err)
		fmt.Fprintln(c, "who")
		line, err := bufio.NewReader(c).ReadString('\n')
		fakes.Check(err)
		fmt.Print(line)
	}
}

// holder is the process of a lab as shells see it: it holds a node and a pod, and writes down where.
func holder(args []string) {
	fakes.Check(isolation.Prepare(Stay))
	f, err := network.NewFabric()
	fakes.Check(err)
	n, err := f.AddNode()
	fakes.Check(err)
	p, err := n.AddPod()
	fakes.Check(err)
	var places []dataplane.Place
	for name, ns := range map[string]*network.Namespace{"node-1": n.Namespace, "default/p": p.Namespace} {
		inode, err := dataplane.NamespaceInode(ns.Descriptor())
		fakes.Check(err)
		places = append(places, dataplane.Place{Name: name, Descriptor: ns.Descriptor(), Inode: inode})
	}
	places = append(places, dataplane.Place{Name: "default/gone", Descriptor: n.Descriptor(), Inode: 1})
	fakes.Check(dataplane.WritePlaces(&process.RunDir{Path: args[0]}, places))
	fmt.Println("holds")
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// hold starts a holder, and the state of a lab that has it as its process.
func hold(t *testing.T) (dir string, r *Running) {
	t.Helper()
	if err := isolation.Works(); err != nil {
		t.Fatalf("the test needs a machine that lets this user make network namespaces: %v", err)
	}
	dir = t.TempDir()
	d, err := process.NewRunDir(t.TempDir())
	fakes.Must(t, err)
	cmd := isolation.Command([]string{d.Path}, "1")
	cmd.Args[0], cmd.Stderr, cmd.SysProcAttr.Setpgid = "holder", os.Stderr, true
	_, err = cmd.StdinPipe()
	fakes.Must(t, err)
	out, err := cmd.StdoutPipe()
	fakes.Must(t, err)
	fakes.Must(t, process.OnSpawner(cmd.Start))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait() // it was killed
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "holds\n" {
		t.Fatalf("%q, %v", line, err)
	}
	started, err := process.StartTime(cmd.Process.Pid)
	fakes.Must(t, err)
	r = &Running{
		URL: "https://127.0.0.1:1", Dir: d.Path, Kubeconfig: d.File("kubeconfig"), Path: process.SystemPath, NodesKubeconfig: "/nodes",
		Servers: []process.Identity{{PID: cmd.Process.Pid, Started: started}}, Nodes: []candidate.Node{{Name: "node-1"}},
	}
	fakes.Must(t, state{dir, DefaultName}.write(r))
	return dir, r
}

// shell runs a command by the program that opens shells.
func shell(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := shellCommand(t, dir, args...)
	var errs strings.Builder
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return string(out), errs.String(), cmd.ProcessState.ExitCode()
}

func shellCommand(t *testing.T, dir string, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), filepath.Join(fakes.Install(t, "lab-shell"), "lab-shell"), args...)
	cmd.Env = append(os.Environ(), "LAB_STATE="+dir, "SHELL=/bin/sh", "ISOLATED=")
	return cmd
}

func TestAShellRunsInItsPlace(t *testing.T) {
	dir, r := hold(t)
	places, err := dataplane.ReadPlaces(r.Dir)
	fakes.Must(t, err)
	cwd, err := os.Getwd()
	fakes.Must(t, err)
	for _, p := range places[:2] {
		out, errs, code := shell(t, dir, strings.TrimPrefix(p.Name, "default/"), "sh", "-c", "readlink /proc/self/ns/net; id -u; pwd; echo $CONFORMANCE_LAB_PLACE $KUBECONFIG; exit 7")
		want := fmt.Sprintf("net:[%d]\n0\n%s\n%s /nodes\n", p.Inode, cwd, p.Name)
		if out != want || code != 7 {
			t.Errorf("%s: %q, exit code %d, %s; want %q", p.Name, out, code, errs, want)
		}
	}
	holderMounts, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", r.Servers[0].PID))
	fakes.Must(t, err)
	if out, errs, code := shell(t, dir, "node-1", "readlink", "/proc/self/ns/mnt"); out != holderMounts+"\n" || code != 0 {
		t.Errorf("mounts %q, exit code %d, %s; want %s", out, code, errs, holderMounts)
	}
	if _, _, code := shell(t, dir, "node-1", "sh", "-c", "kill -TERM $$"); code != 128+int(syscall.SIGTERM) {
		t.Errorf("exit code %d of a command that SIGTERM ended", code)
	}
	cmd := shellCommand(t, dir, "node-1") // $SHELL
	cmd.Stdin = strings.NewReader("exit 9\n")
	if err := cmd.Run(); cmd.ProcessState.ExitCode() != 9 {
		t.Errorf("the user's shell: %v", err)
	}
}

func TestAShellThatCannotBeOpenedSaysWhy(t *testing.T) {
	dir, r := hold(t)
	if err := os.WriteFile(filepath.Join(r.Dir, "no-program"), []byte("\x00"), 0o700); err != nil {
		t.Fatal(err)
	}
	for want, args := range map[string][]string{
		`there is no node or pod "nope"; there are`: {"nope"},
		"has just gone":           {"gone"},
		"no program no-such":      {"p", "no-such"},
		"run the program: exec f": {"p", filepath.Join(r.Dir, "no-program")},
	} {
		if out, errs, code := shell(t, dir, args...); code != 64 || out != "" || !strings.Contains(errs, want) || strings.Count(errs, "\n") != 1 {
			t.Errorf("%v: %q, exit code %d; want a line with %q", args, errs, code, want)
		}
	}
	r.Nodes, r.WithoutNodes = nil, "none were asked for"
	fakes.Must(t, state{dir, DefaultName}.write(r))
	if _, errs, code := shell(t, dir, "node-1"); code != 64 || !strings.Contains(errs, "none were asked for") {
		t.Errorf("exit code %d, %s", code, errs)
	}
	if _, errs, code := shell(t, t.TempDir(), "node-1"); code != 64 || !strings.Contains(errs, "no lab is up") {
		t.Errorf("exit code %d, %s", code, errs)
	}
}

func TestDownEndsWhatRunsInShells(t *testing.T) {
	dir, r := hold(t)
	// The command leaves a process behind, in a session of its own.
	out, errs, code := shell(t, dir, "p", "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo $!; readlink /proc/self/ns/net")
	var pid int
	var namespace string
	if _, err := fmt.Sscan(out, &pid, &namespace); err != nil || code != 0 {
		t.Fatalf("%q, exit code %d, %s", out, code, errs)
	}
	if _, err := process.StartTime(pid); err != nil {
		t.Fatalf("what was left in the shell does not run: %v", err)
	}
	_, err := Down(t.Context(), dir, "")
	fakes.Must(t, err)
	if _, err := process.StartTime(pid); err == nil {
		t.Error("it still runs")
	}
	if fakes.Exists(t, r.Dir) {
		t.Error("the folder is still there")
	}
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	fakes.Must(t, err)
	for _, link := range links {
		if now, _ := os.Readlink(link); now == namespace {
			t.Errorf("%s is still in the pod", link)
		}
	}
}
