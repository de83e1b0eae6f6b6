package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/service-conformance/conformance/framework/report"
)

func TestDifferentialReplaysAgainstTheReference(t *testing.T) {
	dir := t.TempDir()
	stdout, stderr, code := conformance(t, dir, "differential", "replay")
	if code != report.ExitConformant || !strings.Contains(stdout, "cases are answered as they say") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
	wrong := strings.Join([]string{
		"class: W1", "operation: o", "before: b", "kubernetes: k", "decided: reference-corrected", "why: w", "steps:",
		"- request: GET /api/v1/namespaces/{namespace}/services", "  kubernetes: {code: 404, reason: NotFound}", "",
	}, "\n")
	if err := os.WriteFile(filepath.Join(dir, "wrong.yaml"), []byte(wrong), 0o600); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code = conformance(t, dir, "differential", "replay", "wrong.yaml")
	if code != report.ExitNonConformant || !strings.Contains(stdout, "code is 200, want 404") || !strings.Contains(stdout, "0 of 1 cases") || stderr != "" {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}
