//go:build unix

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/onsi/gomega"

	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/clusterrun"
)

// madeByCommands are clusters that commands make: reference API servers, whose files are in a folder.
type madeByCommands struct {
	t                *testing.T
	dir, temp        string
	create, teardown string
}

// newMadeByCommands returns the commands; the environment of the test tells them the program and the folder.
func newMadeByCommands(t *testing.T) *madeByCommands {
	t.Helper()
	m := &madeByCommands{t: t, dir: t.TempDir(), temp: temporaryFolder(t)}
	t.Setenv("PROGRAM", os.Args[0])
	t.Setenv("D", m.dir)
	m.create = `echo making {name} >&2; "$PROGRAM" serve --service-cidr {service-cidr} --kubeconfig "$D/{name}.kc" >/dev/null 2>&1 </dev/null & echo $! >"$D/{name}.pid"
until [ -s "$D/{name}.kc" ]; do sleep 0.02; done; cat "$D/{name}.kc"`
	m.teardown = `if [ -e "$D/{name}.pid" ]; then kill $(cat "$D/{name}.pid"); rm "$D/{name}.pid"; fi; echo {name} >>"$D/gone"`
	t.Cleanup(func() {
		for _, pid := range m.processes() {
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	})
	return m
}

// processes are those of clusters that nobody has removed.
func (m *madeByCommands) processes() (pids []int) {
	files, _ := filepath.Glob(filepath.Join(m.dir, "*.pid"))
	for _, f := range files {
		var pid int
		if text, err := os.ReadFile(f); err == nil {
			if _, err := fmt.Sscan(string(text), &pid); err == nil {
				pids = append(pids, pid)
			}
		}
	}
	return pids
}

// gone is how many teardowns were called.
func (m *madeByCommands) gone() int {
	text, _ := os.ReadFile(filepath.Join(m.dir, "gone"))
	return strings.Count(string(text), "conformance-")
}

func (m *madeByCommands) env() []string { return []string{"HOME=" + m.dir, "TMPDIR=" + m.temp} }

func (m *madeByCommands) reports() string { return filepath.Join(m.dir, "report") }

func (m *madeByCommands) arguments(more ...string) []string {
	return append([]string{
		"run", "--tier", "cluster", "--cluster-command", m.create, "--cluster-teardown-command", m.teardown, "--expectations", "none", "--report-dir", m.reports(),
	}, more...)
}

func (m *madeByCommands) run(more ...string) (stdout, stderr string, code int) {
	m.t.Helper()
	return conformanceWith(m.t, m.dir, m.env(), m.arguments(more...)...)
}

func (m *madeByCommands) report() *report.Report {
	m.t.Helper()
	data, err := os.ReadFile(filepath.Join(m.reports(), report.JSONFile))
	if err != nil {
		m.t.Fatal(err)
	}
	var r report.Report
	if err := json.Unmarshal(data, &r); err != nil {
		m.t.Fatal(err)
	}
	return &r
}

// leavesNothing demands that so many clusters were removed, and that there is no trace of any.
func (m *madeByCommands) leavesNothing(clusters int) {
	m.t.Helper()
	if left := m.processes(); len(left) > 0 || m.gone() != clusters {
		m.t.Errorf("clusters are left: %v; %d teardowns, want %d", left, m.gone(), clusters)
	}
	if files, err := os.ReadDir(m.temp); err != nil || len(files) > 0 {
		m.t.Errorf("files are left: %v, error %v", files, err)
	}
}

func TestACommandMakesAClusterForEachServiceRange(t *testing.T) {
	m := newMadeByCommands(t)
	stdout, stderr, code := m.run("--focus", "alloc-dynamic-assigned", "--focus", "api-loadbalancer-*", "--service-cidr", "10.96.0.0/24", "--service-cidr", "10.97.0.0/20,fd00::/112")
	if code != report.ExitConformant || stderr != "" {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	m.leavesNothing(2)
	r := m.report()
	var ranges []string
	for _, c := range r.Checks {
		if !slices.Contains(ranges, c.ServiceCIDR) {
			ranges = append(ranges, c.ServiceCIDR)
		}
	}
	if r.Candidate.Tier != "cluster" || !slices.Contains(ranges, "10.96.0.0/24") || !slices.Contains(ranges, "10.97.0.0/20,fd00::/112") {
		t.Errorf("tier %s, ranges %q", r.Candidate.Tier, ranges)
	}
	if !r.Candidate.Careful {
		t.Error("load balancers may be made, which a cloud bills")
	}
	if !strings.Contains(stdout, "all 2 clusters") || strings.Count(stdout, "reports: ") != 1 {
		t.Errorf("it said\n%s", stdout)
	}
}

func TestACommandMayChooseTheServiceRange(t *testing.T) {
	m := newMadeByCommands(t)
	m.create = strings.ReplaceAll(m.create, "{service-cidr}", "10.98.0.0/24")
	stdout, stderr, code := m.run("--focus", "alloc-dynamic-assigned", "--allow-disruptive")
	if code != report.ExitConformant || !strings.Contains(stdout, "with Service range 10.98.0.0/24") || strings.Contains(stdout, "10.96") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if m.report().Candidate.Careful {
		t.Error("--allow-disruptive is not heeded")
	}
	m.leavesNothing(1)
}

func TestAClusterThatACommandCouldNotMakeIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		create func(string) string
		want   string
	}{
		"it fails":      {func(string) string { return "echo no quota >&2; exit 3" }, "cluster command: exit status 3: no quota; its logs are in "},
		"another range": {func(s string) string { return strings.ReplaceAll(s, "{service-cidr}", "10.99.0.0/16") }, "the cluster's Service ranges are [10.99.0.0/16], not [10.96.0.0/24]"},
		"no kubeconfig": {func(string) string { return "echo done" }, `it printed something else, which begins with "done"`},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMadeByCommands(t)
			m.create = c.create(m.create)
			stdout, stderr, code := m.run("--focus", "alloc-dynamic-assigned", "--service-cidr", "10.96.0.0/24")
			if code != report.ExitUnknown || !strings.Contains(stdout, c.want) || stderr != "" {
				t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
			}
			for _, checked := range m.report().Checks {
				if !strings.HasPrefix(checked.Reason, "no cluster: ") || !strings.Contains(checked.Reason, c.want) || strings.Contains(checked.Reason, "\n") {
					t.Errorf("a check is %s: %q", checked.Verdict, checked.Reason)
				}
			}
			if logs, _ := filepath.Glob(filepath.Join(m.reports(), "logs", "*", "cluster-command.log")); len(logs) != 1 {
				t.Errorf("logs %v", logs)
			}
			m.leavesNothing(1)
		})
	}
}

func TestAClusterOfACommandIsKept(t *testing.T) {
	m := newMadeByCommands(t)
	stdout, stderr, code := m.run("--focus", "alloc-dynamic-assigned", "--service-cidr", "10.96.0.0/24", "--keep")
	if code != report.ExitConformant || !strings.Contains(stdout, "is kept: kubeconfig "+m.temp) || !strings.Contains(stdout, `rm "$D/conformance-`) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := conformanceWith(t, m.dir, m.env(), "cleanup"); code != 0 || m.gone() != 0 || len(m.processes()) != 1 {
		t.Errorf("cleanup: exit code %d, %s; %d teardowns, clusters %v", code, stderr, m.gone(), m.processes())
	}
}

// started is a run that a test ends while its only cluster is made or judged.
func (m *madeByCommands) started(until string, more ...string) (*exec.Cmd, *bytes.Buffer) {
	m.t.Helper()
	cmd := exec.CommandContext(m.t.Context(), os.Args[0], m.arguments(append(more, "--service-cidr", "10.96.0.0/24")...)...)
	cmd.Env = slices.Concat(os.Environ(), []string{asProgram + "=1"}, m.env())
	cmd.Dir = m.dir
	said := &bytes.Buffer{}
	cmd.Stdout, cmd.Stderr = said, said
	if err := cmd.Start(); err != nil {
		m.t.Fatal(err)
	}
	gomega.NewWithT(m.t).Eventually(func() ([]string, error) { return filepath.Glob(filepath.Join(m.dir, until)) }).WithTimeout(time.Minute).ShouldNot(gomega.BeEmpty(), "files %s", until)
	return cmd, said
}

func TestAnInterruptedRunTearsDownItsCluster(t *testing.T) {
	for name, c := range map[string]struct{ create, until string }{
		"while it is made":   {"; touch $D/half; sleep 1000", "half"},
		"while it is judged": {"", "report/conformance-*/results.partial.jsonl"},
	} {
		t.Run(name, func(t *testing.T) {
			m := newMadeByCommands(t)
			m.create += c.create
			cmd, said := m.started(c.until)
			if err := cmd.Process.Signal(os.Interrupt); err != nil {
				t.Fatal(err)
			}
			_ = cmd.Wait()
			if code := cmd.ProcessState.ExitCode(); code != report.ExitUnknown {
				t.Errorf("exit code %d\n%s", code, said)
			}
			m.leavesNothing(1)
		})
	}
}

func TestCleanupTearsDownTheClusterOfAKilledRun(t *testing.T) {
	m := newMadeByCommands(t)
	cmd, _ := m.started("report/conformance-*/results.partial.jsonl")
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if m.gone() != 0 || len(m.processes()) != 1 {
		t.Fatalf("%d teardowns, clusters %v", m.gone(), m.processes())
	}
	stdout, stderr, code := conformanceWith(t, t.TempDir(), m.env(), "cleanup")
	if code != 0 || !strings.Contains(stderr, "its teardown command is called") || !strings.Contains(stdout, "folder "+m.temp) {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	gomega.NewWithT(t).Eventually(func() ([]os.DirEntry, error) { // the process that judged ends when it notices
		_, _, _ = conformanceWith(t, t.TempDir(), m.env(), "cleanup")
		return os.ReadDir(m.temp)
	}).WithTimeout(time.Minute).Should(gomega.BeEmpty(), "what is left")
	m.leavesNothing(1)
}

func TestATeardownThatFailsIsCalledAgain(t *testing.T) {
	m := newMadeByCommands(t)
	m.teardown = `test -e "$D/free" || { echo the cloud is busy >&2; exit 1; }; ` + m.teardown
	stdout, stderr, code := m.run("--focus", "alloc-dynamic-assigned", "--service-cidr", "10.96.0.0/24")
	if code != report.ExitConformant || !strings.Contains(stderr, "the cloud is busy") || !strings.Contains(stderr, "`conformance cleanup` calls the teardown command again") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if _, stderr, code := conformanceWith(t, m.dir, m.env(), "cleanup"); code != report.ExitHarness || !strings.Contains(stderr, "the cloud is busy") {
		t.Errorf("cleanup: exit code %d, %s", code, stderr)
	}
	if err := os.WriteFile(filepath.Join(m.dir, "free"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := conformanceWith(t, m.dir, m.env(), "cleanup"); code != 0 {
		t.Errorf("cleanup: exit code %d, %s", code, stderr)
	}
	m.leavesNothing(1)
}

// TestArgumentsOfTheProcessThatJudgesAClusterOfACommand demands that what is billed is not made without --allow-disruptive, and that what was made is removed.
func TestArgumentsOfTheProcessThatJudgesAClusterOfACommand(t *testing.T) {
	for _, disruptive := range []bool{false, true} {
		f := &runFlags{}
		f.cluster.commands.create, f.cluster.disruptive = "x", disruptive
		cmd := newRun()
		if err := cmd.ParseFlags(f.arguments(&f.cluster, f.cluster.how(), clusterrun.Judged{Kubeconfig: "kc", ServiceCIDR: "10.96.0.0/24"})[1:]); err != nil {
			t.Fatal(err)
		}
		for name, want := range map[string]string{"tier-name": "cluster", "allow-disruptive": fmt.Sprint(disruptive), "disposable": "false", "cluster-command": ""} {
			if got := cmd.Flags().Lookup(name).Value.String(); got != want {
				t.Errorf("--%s is %s, want %s", name, got, want)
			}
		}
	}
}
