package lab

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"

	"github.com/service-conformance/conformance/framework/processgroup"
)

// command is a server to run.
type command struct {
	name, path string
	args       []string
	// environment is what the program has beside that of all servers.
	environment []string
	// log is the file that takes both outputs; an existing one is appended to.
	log string
	// detached processes survive this one.
	detached bool
	// foreign programs are none of the lab's own: their logs are kept.
	foreign bool
	// ends says that the program may end by itself, but not crash.
	ends bool
	// spawn, if set, starts the process elsewhere than where this one runs.
	spawn func(*exec.Cmd) error
}

// process is a running server. All methods are safe for concurrent use.
type process struct {
	command
	pid int
	// started tells this process from a later one with the same pid.
	started string
	done    chan struct{}
	exit    error // valid once done is closed

	mu      sync.Mutex
	killed  bool
	process *os.Process
}

// startProcess runs a server in a process group of its own. Unless it is detached it dies with this process,
// where the system can do that.
func startProcess(c command) (*process, error) {
	log, err := os.OpenFile(c.log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.path, c.args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(serverEnvironment(), c.environment...)
	start := c.spawn
	if start == nil {
		start = func(cmd *exec.Cmd) error { return spawn(cmd, c.detached) }
	}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.name, err)
	}
	p := &process{command: c, pid: cmd.Process.Pid, done: make(chan struct{}), process: cmd.Process}
	p.started, _ = processStart(p.pid) // an unknown start time only keeps others from killing it
	go func() {
		p.exit = cmd.Wait()
		close(p.done)
	}()
	return p, nil
}

// serverEnvironment is the user's without the options that etcd reads from it, which are about another etcd, and without the password of the key that signs a
// bundle, which is for no program that is judged. Unless the
// user says otherwise, memory is spent to save time: collecting garbage is a quarter of what the start of an API server costs.
func serverEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "ETCD_") || strings.HasPrefix(s, "CONFORMANCE_SIGN_") })
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=300")
	}
	return env
}

// alive reports whether the server still runs.
func (p *process) alive() bool {
	select {
	case <-p.done:
		return false
	default:
		return true
	}
}

// kill ends the server and its group at once and waits for its end.
func (p *process) kill() {
	p.mu.Lock()
	if p.alive() && !p.killed {
		p.killed = true
		_ = processgroup.Kill(p.process)
	}
	p.mu.Unlock()
	<-p.done
}

// died reports whether the server ended by itself, and should not have.
func (p *process) died() bool {
	if p.alive() || p.ends && !p.crashed() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.killed
}

// panicked is the code with which programs in Go end that panic.
const panicked = 2

// crashed reports whether a program that has ended did so by a panic or a signal.
func (p *process) crashed() bool {
	exit := (*exec.ExitError)(nil)
	return errors.As(p.exit, &exit) && (!exit.Exited() || exit.ExitCode() == panicked)
}

// diedError says how a server that should run came to an end, with the last words of its log.
func (p *process) diedError() error {
	if !p.alive() && p.exit != nil {
		return fmt.Errorf("%s ended: %w; its log ends with: %s", p.name, p.exit, logTail(p.log, 3))
	}
	return fmt.Errorf("%s ended; its log ends with: %s", p.name, logTail(p.log, 3))
}

// startError is diedError for a server that never got ready: errPortTaken or errGate if that is why.
func (p *process) startError() error {
	err := p.diedError()
	for text, reason := range map[string]error{
		"address already in use":                errPortTaken,
		"Only one usage of each socket address": errPortTaken,
		"feature gate":                          errGate, // locked or unrecognized
	} {
		if strings.Contains(err.Error(), text) {
			p.mu.Lock()
			p.killed = true // it is started again, or its check does not apply: nobody needs to know
			p.mu.Unlock()
			return fmt.Errorf("%w: %w", reason, err)
		}
	}
	return err
}

// logTail returns the last lines of a log that matter, joined: errors if there are any, else whatever came last.
func logTail(path string, lines int) string {
	const window = 16 << 10
	f, err := os.Open(path)
	if err != nil {
		return "(no log: " + err.Error() + ")"
	}
	defer f.Close()
	if size, err := f.Seek(0, io.SeekEnd); err == nil {
		_, _ = f.Seek(max(0, size-window), io.SeekStart)
	}
	b, err := io.ReadAll(f)
	if err != nil {
		return "(unreadable log: " + err.Error() + ")"
	}
	var all, severe []string
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		if line == "" {
			continue
		}
		line = strings.ReplaceAll(line[:min(len(line), 400)], "\t", " ")
		all = append(all, line)
		// klog marks the severity by the first letter, as in "E1121 02:15:22.638944 …".
		if (line[0] == 'E' || line[0] == 'F') && len(line) > 5 && line[1] >= '0' && line[1] <= '9' || strings.Contains(line, "panic") {
			severe = append(severe, line)
		}
	}
	if len(severe) > 0 {
		all = severe
	}
	if len(all) == 0 {
		return "(nothing)"
	}
	return strings.Join(all[max(0, len(all)-lines):], " | ")
}

// errPortTaken says that a server could not listen on the port that was chosen for it.
var errPortTaken = errors.New("the port was taken by another program")

// errGate says that a server does not have a feature gate that it was started with, or does not let it be set.
var errGate = errors.New("a feature gate cannot be set")
