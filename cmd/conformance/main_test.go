package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/report"
)

// TestMain lets the test binary stand in for the program: with the variable set it is `conformance`.
func TestMain(m *testing.M) {
	if os.Getenv(asProgram) != "" || os.Getenv("CONFORMANCE_WORKER") != "" {
		main()
	}
	if os.Getenv(asRecorder) != "" {
		os.Exit(recordChecks())
	}
	os.Unsetenv("KUBERNETES_SERVICE_HOST") // or a test in a pod could judge the cluster that it runs in
	code := m.Run()
	os.RemoveAll(certifiedOnce())
	os.Exit(code)
}

const asProgram = "CONFORMANCE_TEST_AS_PROGRAM"

// conformance runs the program in a folder and returns what it printed and its exit code.
func conformance(t *testing.T, dir string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	env := []string{"HOME=" + dir, "XDG_CACHE_HOME=" + filepath.Join(dir, "cache"), "TMPDIR=" + temporaryFolder(t)}
	return conformanceWith(t, dir, env, args...)
}

// conformanceWith is conformance with an environment beside that of the test.
func conformanceWith(t *testing.T, dir string, env []string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Dir = dir
	cmd.Env = slices.Concat(os.Environ(), []string{asProgram + "=1"}, env)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

// temporaryFolder is one for the temporary files of a program: what killed runs have left on this machine is none of its business. Its path is short, as those of
// sockets must be.
func temporaryFolder(t *testing.T) string {
	t.Helper()
	path, err := os.MkdirTemp("", "t")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(path) })
	return path
}

func TestRunReportsAndExitsByVerdict(t *testing.T) {
	dir := t.TempDir()
	for _, c := range []struct {
		args string
		code int
		want check.Verdict
	}{
		{"run --focus alloc-upper-band-first --service-cidr 10.96.0.0/26 --seed 7", report.ExitConformant, report.InPart},
		{"run --focus alloc-upper-band-first --service-cidr 10.96.0.0/26 --seed 7 --parallel 2", report.ExitConformant, report.InPart},
		{"run --focus alloc-upper-band-first --service-cidr 10.96.0.0/26 --fault lower-band-first", report.ExitNonConformant, check.NonConformant},
		{"run --focus alloc-upper-band-first --feature KubeProxy", report.ExitUnknown, check.NotApplicable},
	} {
		t.Run(c.args, func(t *testing.T) {
			stdout, stderr, code := conformance(t, dir, append(strings.Fields(c.args), "--report-dir", "out")...)
			if code != c.code {
				t.Fatalf("exit code %d, want %d\n%s%s", code, c.code, stdout, stderr)
			}
			data, err := os.ReadFile(filepath.Join(dir, "out", report.JSONFile))
			if err != nil {
				t.Fatal(err)
			}
			var r report.Report
			if err := json.Unmarshal(data, &r); err != nil {
				t.Fatal(err)
			}
			if r.Verdict != c.want || len(r.Checks) == 0 {
				t.Errorf("verdict %s with %d checks, want %s", r.Verdict, len(r.Checks), c.want)
			}
			if strings.Contains(stdout, "\x1b[") {
				t.Errorf("colours in a pipe: %q", stdout)
			}
			if !strings.Contains(stdout, report.JUnitFile) {
				t.Errorf("the output does not say where the reports are:\n%s", stdout)
			}
		})
	}
}

// TestWorkersFindARelativeKubeconfig demands that the path is good for processes that run in other folders.
func TestWorkersFindARelativeKubeconfig(t *testing.T) {
	s := startStandIn(t, standInOptions{cidrs: "10.96.0.0/16"})
	dir, name := filepath.Split(s.kubeconfig)
	stdout, stderr, code := conformance(t, dir, "run", "--tier", "cluster", "--kubeconfig", name, "--focus", "alloc-dynamic-assigned", "--parallel", "2", "--expectations", "none")
	if code != report.ExitConformant {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	if plan := strings.Index(stdout, "Service ranges"); plan < 0 || plan > strings.Index(stdout, "checks, suite") {
		t.Errorf("it is not said beforehand what the run will do:\n%s", stdout)
	}
}

// TestChecksOfTheRangeDoNotApplyToAnExtendedCluster demands that addresses of another range make nothing red there, with workers and without.
func TestChecksOfTheRangeDoNotApplyToAnExtendedCluster(t *testing.T) {
	s := startStandIn(t, standInOptions{cidrs: "10.96.0.0/28"})
	more := &networkingv1.ServiceCIDR{ObjectMeta: metav1.ObjectMeta{Name: "more"}, Spec: networkingv1.ServiceCIDRSpec{CIDRs: []string{"10.97.0.0/16"}}}
	if _, err := s.admin.NetworkingV1().ServiceCIDRs().Create(t.Context(), more, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	for _, parallel := range []string{"1", "2"} {
		stdout, stderr, code := conformance(t, dir, "run", "--tier", "cluster", "--kubeconfig", s.kubeconfig, "--focus", "alloc-dynamic-in-range", "--parallel", parallel,
			"--expectations", "none", "--report-dir", "out")
		data, err := os.ReadFile(filepath.Join(dir, "out", report.JSONFile))
		if err != nil || code != report.ExitUnknown || !strings.Contains(string(data), "addresses come from 10.97.0.0/16 as well") {
			t.Errorf("exit code %d, error %v\n%s%s%s", code, err, stdout, stderr, data)
		}
	}
}

func TestCatalogueChecksAndFaultsAgree(t *testing.T) {
	if _, stderr, code := conformance(t, t.TempDir(), "verify"); code != 0 {
		t.Error(stderr)
	}
}

func TestExplainTellsEverythingAboutARequirement(t *testing.T) {
	stdout, stderr, code := conformance(t, t.TempDir(), "explain", "alloc-upper-band-first")
	if code != 0 {
		t.Fatal(stderr)
	}
	for _, want := range []string{"alloc-upper-band-first (MUST)", "source", "https://", "check", "suites/allocation/", "fault", "lower-band-first"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("no %q in:\n%s", want, stdout)
		}
	}
}

func TestFailFastEndsWithTheFirstFailure(t *testing.T) {
	stdout, stderr, code := conformance(t, t.TempDir(), "run", "--focus", "alloc-upper-band-*", "--fault", "lower-band-first", "--skip", "alloc-upper-band-again", "--fail-fast")
	if code != report.ExitNonConformant || !strings.Contains(stdout, "ended with the first failure (--fail-fast)") || !strings.Contains(stdout, "checks did not run") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestAnAddressTakenAgainLeavesTheOthersDecided has a demand unmet that is about none of what the check is for.
func TestAnAddressTakenAgainLeavesTheOthersDecided(t *testing.T) {
	stdout, stderr, code := conformance(t, t.TempDir(), "run", "--focus", "alloc-downgrade-releases-secondary", "--fault", "freed-address-taken-again")
	if code != report.ExitNonConformant || !strings.Contains(stdout, "1 conformant    1 non-conformant") || !strings.Contains(stdout, "1 requirement is red: alloc-freed-stays-free") {
		t.Errorf("exit code %d, want one requirement conformant and the other one red\n%s%s", code, stdout, stderr)
	}
}

func TestMaxWaitShortensTheWaitForADemand(t *testing.T) {
	args := []string{"run", "--focus", "proxy-service-added", "--fault", "cluster-ip-not-served"}
	for _, c := range []struct {
		flags []string
		want  string
	}{{nil, "not met within 30s"}, {[]string{"--max-wait", "3s"}, "not met within 3s"}} {
		stdout, stderr, code := conformance(t, t.TempDir(), append(args, c.flags...)...)
		if code != report.ExitNonConformant || !strings.Contains(stdout, c.want) {
			t.Errorf("%v: exit code %d, want 1 and %q\n%s%s", c.flags, code, c.want, stdout, stderr)
		}
	}
}

func TestColoursAreForATerminalThatWantsThem(t *testing.T) {
	t.Setenv("NO_COLOR", "")
	if paletteOf(false) != (report.Palette{}) || paletteOf(true) != report.Colours {
		t.Error("want colours on a terminal, and only there")
	}
	t.Setenv("NO_COLOR", "1")
	if paletteOf(true) != (report.Palette{}) {
		t.Error("NO_COLOR is not heeded")
	}
}

func TestWorkersAreNoMoreThanChecksNorThanTheMachineBears(t *testing.T) {
	var out strings.Builder
	f := &runFlags{parallel: 5000}
	if n := f.workers(&out, 1, 4); n != 1 {
		t.Errorf("%d workers for one check", n)
	}
	if n := f.workers(&out, 4000, 4); n >= 4000 || !strings.Contains(out.String(), "instead of 5000: this machine bears no more") {
		t.Errorf("%d workers, %q", n, out.String())
	}
}
