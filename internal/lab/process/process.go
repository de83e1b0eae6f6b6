// Package process starts the programs of a lab and ends them. It keeps their logs and the folder of a run, and finds what killed runs left.
package process

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-conformance/conformance/internal/processgroup"
)

// Command is a server to run.
type Command struct {
	Name, Path string
	Args       []string
	// Environment is what the program has beside that of all servers.
	Environment []string
	// Log is the file that takes both outputs; an existing one is appended to.
	Log string
	// Detached processes survive this one.
	Detached bool
	// Foreign programs are none of the lab's own: their logs are kept.
	Foreign bool
	// Ends says that the program may end by itself, but not crash.
	Ends bool
	// Spawn, if set, starts the process elsewhere than where this one runs.
	Spawn func(*exec.Cmd) error
}

// Process is a running server. All methods are safe for concurrent use.
type Process struct {
	Command
	// PID is its number, which another process may have later.
	PID int
	// Started tells this process from a later one with the same pid.
	Started string
	// Done is closed once it has ended.
	Done chan struct{}
	exit error // valid once Done is closed
	// processor is what it took with the children that it waited for, valid once Done is closed.
	processor time.Duration

	mu     sync.Mutex
	killed bool
	// OS is what the system knows of it.
	OS *os.Process
}

// Start runs a server in a process group of its own. Unless it is detached it dies with this process,
// where the system can do that.
func Start(c Command) (*Process, error) {
	log, err := os.OpenFile(c.Log, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	cmd := exec.Command(c.Path, c.Args...)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.Env = append(ServerEnvironment(), c.Environment...)
	start := c.Spawn
	if start == nil {
		start = func(cmd *exec.Cmd) error { return spawn(cmd, c.Detached) }
	}
	if err := start(cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Name, err)
	}
	p := &Process{Command: c, PID: cmd.Process.Pid, Done: make(chan struct{}), OS: cmd.Process}
	p.Started, _ = StartTime(p.PID) // an unknown start time only keeps others from killing it
	go func() {
		p.exit = cmd.Wait()
		if s := cmd.ProcessState; s != nil {
			p.processor = s.UserTime() + s.SystemTime()
		}
		close(p.Done)
	}()
	return p, nil
}

// ServerEnvironment is the user's environment without two things. The options that etcd reads from it are about another
// etcd. The password of the key that signs a bundle is for no program that is judged. Unless the user says otherwise,
// memory is spent to save time: collecting garbage is a quarter of what the start of an API server costs.
func ServerEnvironment() []string {
	env := slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "ETCD_") || strings.HasPrefix(s, "CONFORMANCE_SIGN_") })
	if os.Getenv("GOGC") == "" {
		env = append(env, "GOGC=300")
	}
	return env
}

// Identity names the process for good.
func (p *Process) Identity() Identity { return Identity{p.PID, p.Started} }

// Alive reports whether the server still runs.
func (p *Process) Alive() bool {
	select {
	case <-p.Done:
		return false
	default:
		return true
	}
}

// Processor is the processor time that it took up to now. Of one that runs it is known on Linux alone.
func (p *Process) Processor() time.Duration {
	if p.Alive() {
		return processorTime(p.PID)
	}
	return p.processor
}

// Kill ends the server and its group at once and waits for its end.
func (p *Process) Kill() {
	p.mu.Lock()
	if p.Alive() && !p.killed {
		p.killed = true
		_ = processgroup.Kill(p.OS)
	}
	p.mu.Unlock()
	<-p.Done
}

// Died reports whether the server ended by itself, and should not have.
func (p *Process) Died() bool {
	if p.Alive() || p.Ends && !p.crashed() {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return !p.killed
}

// panicked is the code with which programs in Go end that panic.
const panicked = 2

// crashed reports whether a program that has ended did so by a panic or a signal.
func (p *Process) crashed() bool {
	exit := (*exec.ExitError)(nil)
	return errors.As(p.exit, &exit) && (!exit.Exited() || exit.ExitCode() == panicked)
}

// DiedError says how a server that should run came to an end, with the last words of its log.
func (p *Process) DiedError() error {
	if !p.Alive() && p.exit != nil {
		return fmt.Errorf("%s ended: %w; its log ends with: %s", p.Name, p.exit, LogTail(p.Log, 3))
	}
	return fmt.Errorf("%s ended; its log ends with: %s", p.Name, LogTail(p.Log, 3))
}

// StartError is DiedError for a server that never got ready: ErrPortTaken or ErrGate if that is why.
func (p *Process) StartError() error {
	err := p.DiedError()
	for text, reason := range map[string]error{
		"address already in use":                ErrPortTaken,
		"Only one usage of each socket address": ErrPortTaken,
		"feature gate":                          ErrGate, // locked or unrecognized
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

// LogTail returns the last lines of a log that matter, joined: errors if there are any, else whatever came last.
func LogTail(path string, lines int) string {
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

// ErrPortTaken says that a server could not listen on the port that was chosen for it.
var ErrPortTaken = errors.New("the port was taken by another program")

// ErrGate says that a server does not have a feature gate that it was started with, or does not let it be set.
var ErrGate = errors.New("a feature gate cannot be set")
