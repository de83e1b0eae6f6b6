//go:build linux

// Command interruptions ends `conformance run` with a signal at random moments, and lists what each time remained.
//
//	go run ./hack/interruptions -moments 10 -signal SIGTERM bin/conformance run --tier lab --suite proxy
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/service-conformance/conformance/framework/report"
)

// within is how long a run may take to end after a signal.
const within = 10 * time.Second

// patience is how long a run that goes on is watched before it is killed.
const patience = 3 * within

// marker is a variable in the environment of a run, by which its processes are found.
const marker = "CONFORMANCE_INTERRUPTION"

var signals = map[string]syscall.Signal{"SIGINT": syscall.SIGINT, "SIGTERM": syscall.SIGTERM, "SIGKILL": syscall.SIGKILL}

type options struct {
	moments int
	seed    uint64
	signal  string
	group   bool
	longest time.Duration
	also    string
	cleanup string
	command []string
}

func main() {
	o := options{}
	flag.IntVar(&o.moments, "moments", 10, "number of runs")
	flag.Uint64Var(&o.seed, "seed", 1, "seed of the moments")
	flag.StringVar(&o.signal, "signal", "SIGINT", "SIGINT, SIGTERM or SIGKILL")
	flag.BoolVar(&o.group, "group", false, "send the signal to the process group, as a terminal does")
	flag.DurationVar(&o.longest, "longest", 0, "the moments are between 0 and this (default: as long as a run takes that nobody ends)")
	flag.StringVar(&o.also, "also", "", "shell line that lists what is left elsewhere, one thing a line: containers, namespaces of a cluster")
	flag.StringVar(&o.cleanup, "cleanup", "", "further flags of conformance cleanup, which is called after SIGKILL: --kubeconfig F")
	flag.Parse()
	o.command = flag.Args()
	if len(o.command) == 0 || signals[o.signal] == 0 {
		fmt.Fprintln(os.Stderr, "usage: interruptions [-moments N] [-seed N] [-signal SIGINT|SIGTERM|SIGKILL] [-group] COMMAND ARG…")
		os.Exit(report.ExitUsage)
	}
	bad, err := o.run()
	if err != nil {
		fmt.Fprintln(os.Stderr, "interruptions:", err)
		os.Exit(report.ExitHarness)
	}
	if bad > 0 {
		os.Exit(report.ExitNonConformant)
	}
}

// run returns the number of moments after which something was wrong.
func (o *options) run() (bad int, err error) {
	if o.longest == 0 {
		whole, err := start(o.command)
		if err != nil {
			return 0, err
		}
		<-whole.done
		o.longest = time.Since(whole.began)
		fmt.Printf("a run that nobody ends takes %.1f s\n", o.longest.Seconds())
		whole.remove()
	}
	random := rand.New(rand.NewPCG(o.seed, 0))
	fmt.Println("moment    ended after  exit  says  report                                        processes  namespaces  files  in between it said")
	for range o.moments {
		moment := time.Duration(random.Int64N(int64(o.longest)))
		line, fine, err := o.once(moment)
		if err != nil {
			return bad, err
		}
		if !fine {
			bad++
			line = "✗ " + line
		} else {
			line = "✓ " + line
		}
		fmt.Println(line)
	}
	fmt.Printf("%s: %d of %d moments left something, or were not told\n", o.signal, bad, o.moments)
	return bad, nil
}

// once sends the signal at a moment, and describes what came of it.
func (o *options) once(moment time.Duration) (line string, fine bool, err error) {
	r, err := start(o.command)
	if err != nil {
		return "", false, err
	}
	defer r.remove()
	select {
	case <-r.done:
		return fmt.Sprintf("%6.2f s  ended before the signal", moment.Seconds()), true, nil
	case <-time.After(moment):
	}
	said := lastLine(r.out.Bytes())
	pid := r.cmd.Process.Pid
	if o.group {
		pid = -pid
	}
	told := time.Now()
	if err := syscall.Kill(pid, signals[o.signal]); err != nil && !errors.Is(err, syscall.ESRCH) {
		return "", false, err
	}
	took := r.wait(told)
	kill := o.signal == "SIGKILL"
	left, namespaces := r.processes()
	files := r.files()
	verdict, interrupted := r.verdict()
	says := strings.Contains(r.out.String(), "interrupted")
	code := r.code()
	fine = took <= within && len(left) == 0
	words := "no"
	if says {
		words = "yes"
	}
	if kill {
		words = "-"
		said += r.cleanup(o.command[0], strings.Fields(o.cleanup)...)
		files = r.files()
		fine = fine && len(files) == 0 // a report, if there is one, was complete before: it is written as a whole
	} else {
		// A run that was over when the signal came has reported as ever.
		finished := !interrupted && verdict != "no report"
		fine = fine && len(files) == 0 && (finished || says && code != 0)
	}
	elsewhere, err := o.elsewhere()
	if err != nil {
		return "", false, err
	}
	fine = fine && len(elsewhere) == 0
	if interrupted {
		verdict += ", interrupted"
	}
	line = fmt.Sprintf("%6.2f s  %6.2f s    %4d  %-4s  %-44s  %9d  %10d  %5d  %s", moment.Seconds(), took.Seconds(), code, words, verdict, len(left), namespaces, len(files), said)
	for _, what := range slices.Concat(left, files, elsewhere) {
		line += "\n      left: " + what
	}
	return line, fine, nil
}

// elsewhere lists what is left where only the user can look.
func (o *options) elsewhere() (left []string, err error) {
	if o.also == "" {
		return nil, nil
	}
	out, err := exec.Command("/bin/sh", "-c", o.also).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", o.also, err)
	}
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" {
			left = append(left, line)
		}
	}
	return left, nil
}

// started is a run with a folder of its own for what is temporary.
type started struct {
	cmd       *exec.Cmd
	dir, mark string
	out       lockedBuffer
	began     time.Time
	done      chan struct{}
}

func start(command []string) (*started, error) {
	dir, err := os.MkdirTemp("", "interruption-")
	if err != nil {
		return nil, err
	}
	r := &started{dir: dir, mark: marker + "=" + filepath.Base(dir), done: make(chan struct{})}
	if err := os.Mkdir(r.temp(), 0o700); err != nil {
		return nil, err
	}
	r.cmd = exec.Command(command[0], append(slices.Clone(command[1:]), "--report-dir", r.reports())...)
	r.cmd.Env = append(os.Environ(), r.mark, "TMPDIR="+r.temp())
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	r.cmd.WaitDelay = time.Second // what a killed run leaves holds its output
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.began = time.Now()
	if err := r.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		_ = r.cmd.Wait()
		close(r.done)
	}()
	return r, nil
}

func (r *started) temp() string    { return filepath.Join(r.dir, "tmp") }
func (r *started) reports() string { return filepath.Join(r.dir, "report") }

// wait returns how long the run and all that it started took to end. What goes on is killed in the end.
func (r *started) wait(told time.Time) time.Duration {
	for {
		ended := false
		select {
		case <-r.done:
			ended = true
		default:
		}
		left, _ := r.processes()
		if took := time.Since(told); ended && len(left) == 0 || took > patience {
			if !ended {
				_ = syscall.Kill(r.cmd.Process.Pid, syscall.SIGKILL)
				<-r.done
			}
			return took
		}
		time.Sleep(50 * time.Millisecond) // to look at every process is work, too
	}
}

// processes are those of the run, and namespaces how many networks they hold.
func (r *started) processes() (left []string, namespaces int) {
	nets := map[string]bool{}
	own, _ := os.Readlink("/proc/self/ns/net")
	paths, _ := filepath.Glob("/proc/[0-9]*")
	for _, path := range paths {
		env, err := os.ReadFile(filepath.Join(path, "environ"))
		if err != nil || !slices.ContainsFunc(bytes.Split(env, []byte{0}), func(v []byte) bool { return string(v) == r.mark }) {
			continue
		}
		name, _ := os.ReadFile(filepath.Join(path, "cmdline"))
		left = append(left, filepath.Base(path)+" "+strings.TrimSpace(strings.ReplaceAll(string(name[:min(len(name), 100)]), "\x00", " ")))
		if net, err := os.Readlink(filepath.Join(path, "ns/net")); err == nil && net != own {
			nets[net] = true
		}
	}
	return left, len(nets)
}

// files are the temporary ones of the run.
func (r *started) files() (left []string) {
	_ = filepath.WalkDir(r.temp(), func(path string, d fs.DirEntry, err error) error {
		if err == nil && path != r.temp() {
			left = append(left, strings.TrimPrefix(path, r.temp()+"/"))
			if d.IsDir() {
				return fs.SkipDir
			}
		}
		return nil
	})
	parts, _ := filepath.Glob(filepath.Join(r.reports(), ".*"))
	return append(left, parts...)
}

// verdict is that of the report.
func (r *started) verdict() (verdict string, interrupted bool) {
	data, err := os.ReadFile(filepath.Join(r.reports(), report.JSONFile))
	if err != nil {
		return "no report", false
	}
	var found report.Report
	if err := json.Unmarshal(data, &found); err != nil {
		return "a broken report", false
	}
	n := found.Summary.Checks
	return fmt.Sprintf("%s, %d decided, %d not run", found.Verdict, n.Conformant+n.NonConformant, found.NotRun), found.Interrupted
}

// cleanup has the program remove what a killed run left, and says what it removed.
func (r *started) cleanup(program string, flags ...string) string {
	before := len(r.files())
	cmd := exec.Command(program, append([]string{"cleanup"}, flags...)...)
	cmd.Env = append(os.Environ(), "TMPDIR="+r.temp())
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Sprintf("; cleanup: %v: %s", err, lastLine(out))
	}
	return fmt.Sprintf("; cleanup removed %d", before-len(r.files()))
}

func (r *started) code() int {
	if r.cmd.ProcessState == nil {
		return -1
	}
	return r.cmd.ProcessState.ExitCode()
}

func (r *started) remove() { _ = os.RemoveAll(r.dir) }

func lastLine(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	line := []rune(lines[len(lines)-1])
	return string(line[:min(len(line), 60)])
}
