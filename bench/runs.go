package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	blang "github.com/blang/semver/v4"
)

// Case is a run that is measured.
type Case struct {
	Name string
	// What says it for people.
	What string
	Args []string
	// Judged says that it writes a report.
	Judged bool
	// Build says that it builds the program: Args are those of make. Nothing is compiled before, and the modules are there.
	Build bool
}

// cases are in the order of docs/performance.md. Those that need Docker fail without it; name the others.
var cases = []Case{
	{Name: "build", What: "build of the program, with nothing compiled before", Args: []string{"build"}, Build: true},
	{Name: "reference", What: "all suites on the reference", Args: []string{"run"}, Judged: true},
	{Name: "lab-control-plane", What: "allocation and apischema on kube-apiserver", Args: []string{"run", "--tier", "lab", "--suite", "allocation,apischema"}, Judged: true},
	{Name: "lab-iptables", What: "proxy on kube-proxy, iptables", Args: []string{"run", "--tier", "lab", "--suite", "proxy"}, Judged: true},
	{Name: "lab-nftables", What: "proxy on kube-proxy, nftables", Args: []string{"run", "--tier", "lab", "--suite", "proxy", "--proxy-mode", "nftables"}, Judged: true},
	{Name: "kind", What: "all suites on a new kind cluster (/24, iptables), with making and deleting it", Args: []string{"run", "--tier", "kind", "--service-cidr", "10.96.0.0/24"}, Judged: true},
	{Name: "selftest", What: "self-test: all suites for each fault, with ablations", Args: []string{"selftest"}},
}

// command is what people type.
func (c *Case) command() string {
	program := "conformance"
	if c.Build {
		program = "make"
	}
	return strings.Join(append([]string{program}, c.Args...), " ")
}

func find(name string) *Case {
	if i := place(name); i < len(cases) {
		return &cases[i]
	}
	return nil
}

// place is where a run stands among the cases; unknown ones are behind all of them.
func place(name string) int {
	if i := slices.IndexFunc(cases, func(c Case) bool { return c.Name == name }); i >= 0 {
		return i
	}
	return len(cases)
}

// measureRuns runs the named cases, or else those that need no Docker and take seconds to minutes, and writes what they took after each.
func measureRuns(bin string, count int, named []string, out io.Writer) error {
	if len(named) == 0 {
		named = []string{"build", "reference", "lab-control-plane", "lab-iptables", "lab-nftables"}
	}
	bin, commit, file, err := subject(bin)
	if err != nil {
		return err
	}
	for _, name := range named {
		m, err := find(name).measure(bin, count, out)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		m.Commit = commit
		file.put(*m)
		if err := file.save(); err != nil {
			return err
		}
	}
	fmt.Fprintln(out, "written:", file.path())
	return nil
}

// subject is the program that is measured: its path, its commit, and what was measured of its version.
func subject(bin string) (path, commit string, file *File, err error) {
	path, err = filepath.Abs(bin)
	if err != nil {
		return "", "", nil, err
	}
	version, commit, err := versionOf(path)
	if err != nil {
		return "", "", nil, fmt.Errorf("%w (run make build)", err)
	}
	file, err = open(version)
	return path, commit, file, err
}

// buildIn is a call of make with an empty build cache in a folder, where the program goes, too.
func buildIn(dir string, args []string) (*exec.Cmd, error) {
	cache, err := os.MkdirTemp(dir, "cache-")
	if err != nil {
		return nil, err
	}
	cmd := exec.Command("make", append(args, "BIN="+filepath.Join(cache, "conformance"))...)
	cmd.Dir, cmd.Env = "..", append(os.Environ(), "GOCACHE="+cache)
	return cmd, nil
}

// measure runs the case so often.
func (c *Case) measure(bin string, count int, out io.Writer) (*Measurement, error) {
	m := &Measurement{Name: c.Name, Command: c.command(), Date: time.Now().UTC().Truncate(time.Second), N: count, Busy: busy()}
	dir, err := os.MkdirTemp("", "bench-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	var wall, processor, memory []float64
	for i := range count {
		args := slices.Clone(c.Args)
		if c.Judged {
			args = append(args, "--report-dir", dir)
		}
		if !c.Build {
			args = append(args, strings.Fields(os.Getenv("BENCH_FLAGS"))...) // such as --node-image, which is a machine's
		}
		cmd := exec.Command(bin, args...)
		cmd.Dir = dir
		if c.Build {
			if cmd, err = buildIn(dir, args); err != nil {
				return nil, err
			}
		}
		log, err := os.Create(filepath.Join(dir, "said"))
		if err != nil {
			return nil, err
		}
		cmd.Stdout, cmd.Stderr = log, log
		begin, worked := time.Now(), processorTime()
		err = cmd.Run()
		log.Close()
		var exit *exec.ExitError
		if errors.As(err, &exit) && exit.ExitCode() > 2 || err != nil && exit == nil {
			said, _ := os.ReadFile(filepath.Join(dir, "said"))
			return nil, fmt.Errorf("%w\n%s", err, said)
		}
		wall, worked = append(wall, time.Since(begin).Seconds()), processorTime()-worked
		if c.Build { // it starts no containers
			worked = (cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()).Seconds()
		}
		processor = append(processor, worked)
		if usage, ok := cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
			memory = append(memory, float64(usage.Maxrss)/1024)
		}
		fmt.Fprintf(out, "%s %d/%d: %.1f s, processor %.1f s\n", c.Name, i+1, count, wall[i], processor[i])
		if c.Judged {
			if err := m.read(filepath.Join(dir, "report.json")); err != nil {
				return nil, err
			}
		}
	}
	m.Wall, m.Processor = spreadOf(wall), spreadOf(processor)
	if len(memory) > 0 {
		m.Memory = spreadOf(memory)
	}
	return m, nil
}

// read takes from a report what was judged.
func (m *Measurement) read(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var r struct {
		Verdict string `json:"verdict"`
		Summary struct {
			Checks map[string]int `json:"checks"`
		} `json:"summary"`
		TimeToConsistency struct {
			Changes int     `json:"changes"`
			P50     float64 `json:"p50Seconds"`
			P99     float64 `json:"p99Seconds"`
		} `json:"timeToConsistency"`
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return err
	}
	m.Verdict, m.Checks = r.Verdict, 0
	for verdict, n := range r.Summary.Checks {
		if verdict != "notApplicable" && verdict != "knownDeviations" { // these are among the non-conformant
			m.Checks += n
		}
	}
	m.Changes, m.P50, m.P99 = r.TimeToConsistency.Changes, r.TimeToConsistency.P50, r.TimeToConsistency.P99
	return nil
}

// versionOf asks the program for its version, and git for the commit that it stands at.
func versionOf(bin string) (version, commit string, err error) {
	said, err := exec.Command(bin, "version").Output()
	if err != nil {
		return "", "", fmt.Errorf("ask %s for its version: %w", bin, err)
	}
	version = "devel"
	if fields := strings.Fields(string(said)); len(fields) > 1 && strings.HasPrefix(fields[1], "v") {
		version = fields[1]
	}
	head, err := exec.Command("git", "rev-parse", "--short=10", "HEAD").Output()
	if err != nil {
		return version, "", nil // a source archive has no history
	}
	commit = strings.TrimSpace(string(head))
	if changed, err := exec.Command("git", "status", "--porcelain", "--untracked-files=no").Output(); err == nil && len(changed) > 0 {
		commit += "+"
	}
	return version, commit, nil
}

// semver reads a version; one that is none is the lowest.
func semver(text string) blang.Version {
	v, err := blang.ParseTolerant(text)
	if err != nil {
		return blang.Version{}
	}
	return v
}
