//go:build unix

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// judge runs the script of the GitHub action with this program in place of the built one.
func judge(t *testing.T, dir string, inputs map[string]string) (summary, output string, code int) {
	t.Helper()
	script, err := filepath.Abs("../../hack/action.sh")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "bash", script)
	cmd.Dir = dir
	files := map[string]string{"GITHUB_STEP_SUMMARY": filepath.Join(dir, "summary"), "GITHUB_OUTPUT": filepath.Join(dir, "output")}
	cmd.Env = append(os.Environ(), asProgram+"=1", "CONFORMANCE="+os.Args[0])
	for _, set := range []map[string]string{
		{"TIER": "reference", "SUITES": "", "SERVICE_CIDRS": "", "KUBERNETES_VERSION": "", "ARGUMENTS": "", "REPORT_DIR": "reports"}, files, inputs,
	} {
		for name, value := range set {
			cmd.Env = append(cmd.Env, name+"="+value)
		}
	}
	said, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%v: %s", err, said)
	}
	read := func(name string) string {
		text, _ := os.ReadFile(files[name]) // it may be missing: nothing was said
		return string(text)
	}
	return read("GITHUB_STEP_SUMMARY"), read("GITHUB_OUTPUT"), cmd.ProcessState.ExitCode()
}

func TestActionJudgesAndShowsTheReport(t *testing.T) {
	dir := t.TempDir()
	summary, output, code := judge(t, dir, map[string]string{"SUITES": "allocation", "ARGUMENTS": "--focus alloc-upper-*", "SERVICE_CIDRS": "10.96.0.0/24"})
	if code != 0 || !strings.Contains(output, "exit-code=0") || !strings.HasPrefix(summary, "# reference") {
		t.Errorf("exit code %d, output %q, summary %q", code, output, summary)
	}
	if _, err := os.Stat(filepath.Join(dir, "reports", "junit_01.xml")); err != nil {
		t.Error(err)
	}
}

func TestActionEndsAsTheRunDoes(t *testing.T) {
	dir := t.TempDir()
	summary, output, code := judge(t, dir, map[string]string{"SUITES": "allocation", "ARGUMENTS": "--focus alloc-upper-band-first --fault lower-band-first"})
	if code != 1 || !strings.Contains(output, "exit-code=1") || summary == "" {
		t.Errorf("exit code %d, output %q, summary %q", code, output, summary)
	}
	if _, output, code := judge(t, t.TempDir(), map[string]string{"TIER": "moon"}); code != 64 || !strings.Contains(output, "exit-code=64") {
		t.Errorf("exit code %d, output %q", code, output)
	}
}

func TestActionUsesEveryInput(t *testing.T) {
	text, err := os.ReadFile("../../action.yml")
	if err != nil {
		t.Fatal(err)
	}
	var action struct {
		Inputs map[string]struct{ Description string }
		Runs   struct {
			Steps []struct{ Env map[string]string }
		}
	}
	if err := yaml.Unmarshal(text, &action); err != nil {
		t.Fatal(err)
	}
	for name, input := range action.Inputs {
		if input.Description == "" || !regexp.MustCompile(`inputs\.`+regexp.QuoteMeta(name)+`\b`).Match(text) {
			t.Errorf("input %s has no description, or no step uses it", name)
		}
	}
	script, err := os.ReadFile("../../hack/action.sh")
	if err != nil {
		t.Fatal(err)
	}
	var variables []string
	for _, step := range action.Runs.Steps {
		for variable := range step.Env {
			variables = append(variables, variable)
			if !strings.Contains(string(script), "$"+variable) {
				t.Errorf("action.yml sets %s, and hack/action.sh does not read it", variable)
			}
		}
	}
	for _, read := range []string{"TIER", "SUITES", "SERVICE_CIDRS", "KUBERNETES_VERSION", "ARGUMENTS", "REPORT_DIR"} {
		if !slices.Contains(variables, read) {
			t.Errorf("hack/action.sh reads %s, and action.yml does not set it", read)
		}
	}
}
