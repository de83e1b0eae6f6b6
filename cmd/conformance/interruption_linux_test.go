package main

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/service-conformance/conformance/framework/report"
)

// endsIn is how long a run may take to end after a signal, with slack for a machine that is busy with other tests.
const endsIn = 10*time.Second + 5*time.Second

// signalled is a run that a test ends.
type signalled struct {
	t         *testing.T
	cmd       *exec.Cmd
	dir, mark string
	lines     chan string
	said      bytes.Buffer // valid once the run has ended
}

// startSignalled starts a run with temporary files and reports in a folder of its own.
func startSignalled(t *testing.T, args ...string) *signalled {
	t.Helper()
	r := &signalled{t: t, dir: t.TempDir(), lines: make(chan string, 1)}
	r.mark = "CONFORMANCE_TEST_RUN=" + r.dir
	if err := os.Mkdir(r.temp(), 0o700); err != nil {
		t.Fatal(err)
	}
	r.cmd = exec.CommandContext(t.Context(), os.Args[0], append(args, "--report-dir", r.reports())...)
	r.cmd.Env = append(os.Environ(), asProgram+"=1", r.mark, "TMPDIR="+r.temp(), "HOME="+r.dir)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	r.cmd.Stdout, r.cmd.Stderr = in, in
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	in.Close()
	go func() {
		defer close(r.lines)
		scanner := bufio.NewScanner(out)
		for scanner.Scan() {
			r.lines <- scanner.Text()
		}
	}()
	return r
}

func (r *signalled) temp() string    { return filepath.Join(r.dir, "tmp") }
func (r *signalled) reports() string { return filepath.Join(r.dir, "report") }

// awaitLine waits until the run has said something.
func (r *signalled) awaitLine(text string) {
	r.t.Helper()
	for line := range r.lines {
		fmt.Fprintln(&r.said, line)
		if strings.Contains(line, text) {
			return
		}
	}
	r.t.Fatalf("it did not say %q but\n%s", text, r.said.String())
}

// signal sends a signal to the process alone, and waits until it has ended.
func (r *signalled) signal(s syscall.Signal) (code int) {
	r.t.Helper()
	if err := r.cmd.Process.Signal(s); err != nil {
		r.t.Fatal(err)
	}
	told := time.Now()
	for line := range r.lines { // until the last process that could write has ended
		fmt.Fprintln(&r.said, line)
	}
	_ = r.cmd.Wait()
	if took := time.Since(told); took > endsIn {
		r.t.Errorf("it ended after %s", took)
	}
	return r.cmd.ProcessState.ExitCode()
}

// processes are those that the run has started, and itself.
func (r *signalled) processes() (left []string) {
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		env, err := os.ReadFile(filepath.Join(path, "environ"))
		if err == nil && slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return string(v) == r.mark }) {
			left = append(left, path)
		}
	}
	return left
}

// awaitProcesses waits until there are so many, the run among them.
func (r *signalled) awaitProcesses(n int) {
	r.t.Helper()
	for there := 1; there < n; there = len(r.processes()) {
		if there == 0 {
			r.t.Fatal("the run has ended")
		}
	}
}

// leavesNothing demands that no process and no temporary file is left.
func (r *signalled) leavesNothing() {
	r.t.Helper()
	files, err := os.ReadDir(r.temp())
	if err != nil || len(files) > 0 {
		r.t.Errorf("files are left: %v %v", files, err)
	}
	for told := time.Now(); ; {
		left := r.processes()
		if len(left) == 0 {
			return
		}
		if time.Since(told) > endsIn {
			r.t.Fatalf("processes are left: %v", left)
		}
	}
}

// saysInterrupted demands that the interruption is told in text, report.json and JUnit, and that the run is no pass.
func (r *signalled) saysInterrupted(code int) {
	r.t.Helper()
	said := r.said.String()
	if code != report.ExitUnknown || !strings.Contains(said, "conformance: interrupted by") || !strings.Contains(said, "verdict: unknown; interrupted, ") {
		r.t.Errorf("exit code %d\n%s", code, said)
	}
	found, err := report.Open(r.reports())
	if err != nil || !found.Interrupted || found.Verdict != "unknown" || found.CutOff() == 0 {
		r.t.Errorf("report.json: %v, %+v", err, found)
	}
	var junit struct {
		Errors int `xml:"errors,attr"`
		Suites []struct {
			Cases []struct {
				Error struct {
					Message string `xml:"message,attr"`
				} `xml:"error"`
			} `xml:"testcase"`
		} `xml:"testsuite"`
	}
	text, err := os.ReadFile(filepath.Join(r.reports(), report.JUnitFile))
	if err == nil {
		err = xml.Unmarshal(text, &junit)
	}
	if err != nil || junit.Errors == 0 || !strings.Contains(string(text), `message="interrupted: `) {
		r.t.Errorf("JUnit: %v\n%s", err, text)
	}
}

// TestASignalBeforeTheWorkersListenIsNotLost sends one as soon as the run says that it begins.
func TestASignalBeforeTheWorkersListenIsNotLost(t *testing.T) {
	for _, parallel := range []string{"1", "4"} {
		t.Run(parallel, func(t *testing.T) {
			r := startSignalled(t, "run", "--parallel", parallel)
			r.awaitLine(" checks, suite ")
			r.saysInterrupted(r.signal(syscall.SIGTERM))
			r.leavesNothing()
		})
	}
}

// TestARunThatServersHoldUpEnds holds back what a check does not give up: a request for its namespace.
func TestARunThatServersHoldUpEnds(t *testing.T) {
	for _, parallel := range []string{"1", "2"} {
		t.Run(parallel, func(t *testing.T) {
			held := make(chan struct{})
			var once sync.Once
			s := startStandIn(t, standInOptions{cidrs: "10.96.0.0/16", before: func(r *http.Request) {
				if r.Method != http.MethodPost || !strings.HasSuffix(r.URL.Path, "/namespaces") {
					return
				}
				body, _ := io.ReadAll(r.Body)
				if strings.Contains(string(body), "conformance-admission-") {
					r.Body = io.NopCloser(bytes.NewReader(body))
					return
				}
				once.Do(func() { close(held) })
				<-r.Context().Done()
				panic(http.ErrAbortHandler)
			}})
			r := startSignalled(t, "run", "--tier", "cluster", "--kubeconfig", s.kubeconfig, "--suite", "apischema", "--expectations", "none", "--parallel", parallel)
			<-held
			r.saysInterrupted(r.signal(syscall.SIGINT))
			r.leavesNothing()
		})
	}
}

// TestASignalToTheOuterProcessOfALabEndsIt sends one to the process that waits for the one in namespaces of its own, while the latter waits for etcd.
func TestASignalToTheOuterProcessOfALabEndsIt(t *testing.T) {
	for _, told := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		t.Run(told.String(), func(t *testing.T) {
			began := makeFIFO(t)
			programs := labPrograms(t, "echo > "+began+"; exec sleep 1000")
			r := startSignalled(t, "run", "--tier", "lab", "--kubernetes-bin-dir", programs, "--suite", "proxy", "--parallel", "2", withoutKubeProxy)
			r.awaitLine(" checks, suite ")
			if _, err := os.ReadFile(began); err != nil { // until etcd has begun
				t.Fatal(err)
			}
			r.saysInterrupted(r.signal(told))
			r.leavesNothing()
		})
	}
}

// TestASelftestThatIsInterruptedSaysSo demands that it does not take the end of a process that it has ended for a failure.
func TestASelftestThatIsInterruptedSaysSo(t *testing.T) {
	r := startSignalled(t, "selftest", "--fault", "lower-band-first")
	r.awaitProcesses(2) // the reference without a fault
	if code := r.signal(syscall.SIGINT); code != report.ExitUnknown || !strings.HasSuffix(r.said.String(), "\nconformance: interrupted\n") {
		t.Errorf("exit code %d\n%s", code, r.said.String())
	}
	r.leavesNothing()
}

// TestASignalBeforeTheRunBeginsIsReported sends one while the lab asks a program for its version, and demands a report, or that of the run before would stand there.
func TestASignalBeforeTheRunBeginsIsReported(t *testing.T) {
	for _, focus := range []string{"alloc-dynamic-assigned", "proxy-clusterip-reachable"} {
		t.Run(focus, func(t *testing.T) {
			began := makeFIFO(t)
			programs := labPrograms(t, "exit 1")
			if err := os.WriteFile(filepath.Join(programs, "kube-apiserver"), []byte("#!/bin/sh\necho > "+began+"; exec sleep 1000\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			r := startSignalled(t, "run", "--tier", "lab", "--kubernetes-bin-dir", programs, "--focus", focus, withoutKubeProxy)
			if _, err := os.ReadFile(began); err != nil {
				t.Fatal(err)
			}
			r.saysInterrupted(r.signal(syscall.SIGTERM))
			r.leavesNothing()
		})
	}
}

// withoutKubeProxy has a lab take another program for a proxy: one with kube-proxy needs iptables on the machine.
const withoutKubeProxy = "--proxy-command=exec sleep 1000"

// TestABrokenConnectionIsNoInterruption sends the signal that a write to a broken connection brings, again and again, to a run whose output is read.
func TestABrokenConnectionIsNoInterruption(t *testing.T) {
	r := startSignalled(t, "run", "--focus", "alloc-*")
	r.awaitLine("checks, suite")
	for range 5 {
		if err := r.cmd.Process.Signal(syscall.SIGPIPE); err != nil {
			t.Fatal(err)
		}
	}
	for line := range r.lines {
		fmt.Fprintln(&r.said, line)
	}
	if err := r.cmd.Wait(); err != nil || strings.Contains(r.said.String(), "interrupted") {
		t.Errorf("%v\n%s", err, r.said.String())
	}
}

// TestAPipeThatNobodyReadsIsToldFromOtherOutput looks at a pipe before and after its reader has gone, and at a file.
func TestAPipeThatNobodyReadsIsToldFromOtherOutput(t *testing.T) {
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	file, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if unread(int(in.Fd()), int(file.Fd())) {
		t.Error("a pipe that is read, and a file")
	}
	out.Close()
	if !unread(int(file.Fd()), int(in.Fd())) {
		t.Error("a pipe that nobody reads any more")
	}
}

// makeFIFO makes a file whose reader waits for its writer.
func makeFIFO(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "fifo")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// labPrograms is a folder of programs for a lab of which none serves. etcd is a shell command that runs in place of
// etcd when it is to serve.
func labPrograms(t *testing.T, etcd string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, does := range map[string]string{
		"kube-apiserver": `echo "Kubernetes v1.37.1"`,
		"etcd":           `case "$1" in --version) echo "etcd Version: 3.7.0";; *) ` + etcd + `;; esac`,
		"kube-proxy":     "exit 1", "kube-controller-manager": "exit 1",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("#!/bin/sh\n"+does+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// TestAKilledRunLeavesNoProcessAndCleanupTheRest kills the process that holds the candidate.
func TestAKilledRunLeavesNoProcessAndCleanupTheRest(t *testing.T) {
	r := startSignalled(t, "run", "--parallel", "4")
	r.awaitLine(" checks, suite ")
	r.awaitProcesses(5) // the workers
	r.signal(syscall.SIGKILL)
	stdout, stderr, code := conformanceWith(t, r.dir, []string{"TMPDIR=" + r.temp()}, "cleanup")
	if code != report.ExitConformant || !strings.Contains(stdout, "folder "+filepath.Join(r.temp(), "conformance-workers-")) {
		t.Errorf("exit code %d, %q %q", code, stdout, stderr)
	}
	r.leavesNothing()
}

// TestAProgramThatEndsIsInTheReport demands that each face of the report tells of it, and that its log is kept.
func TestAProgramThatEndsIsInTheReport(t *testing.T) {
	dir := t.TempDir()
	programs := labPrograms(t, "echo it breaks; exit 7")
	stdout, stderr, code := conformance(t, dir, "run", "--tier", "lab", "--kubernetes-bin-dir", programs, "--focus", "alloc-dynamic-assigned", "--report-dir", "report")
	found, err := report.Open(filepath.Join(dir, "report"))
	if err != nil || len(found.Ended) == 0 || code != report.ExitUnknown {
		t.Fatalf("%v, exit code %d, %+v\n%s%s", err, code, found, stdout, stderr)
	}
	ended := found.Ended[0]
	log, err := os.ReadFile(filepath.Join(dir, "report", ended.Log))
	junit, errJUnit := os.ReadFile(filepath.Join(dir, "report", report.JUnitFile))
	if err != nil || errJUnit != nil || string(log) != "it breaks\n" || !strings.Contains(ended.How, "exit status 7") ||
		!strings.Contains(string(junit), ended.Program+" runs until the end") || !strings.Contains(stdout, "ended by itself  "+ended.Program) {
		t.Errorf("%v %v, %+v, log %q\n%s\n%s", err, errJUnit, ended, log, stdout, junit)
	}
}
