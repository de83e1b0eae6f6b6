package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/report"
)

func TestCleanupRemovesWhatARunLeft(t *testing.T) {
	s := startStandIn(t, standInOptions{cidrs: "10.96.0.0/16"})
	left := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "conformance-left", Labels: map[string]string{candidate.RunLabel: "run"}}}
	if _, err := s.admin.CoreV1().Namespaces().Create(t.Context(), left, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	stdout, stderr, code := conformance(t, t.TempDir(), "cleanup", "--kubeconfig", s.kubeconfig)
	if code != 0 || stdout != "namespace conformance-left\n1 namespaces removed\n" {
		t.Errorf("exit code %d, %q %q", code, stdout, stderr)
	}
}

// TestCleanupOfABrokenServerIsNoWrongUsage demands that scripts can tell the one from the other.
func TestCleanupOfABrokenServerIsNoWrongUsage(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	writeKubeconfig(t, kubeconfig, server.URL)
	stdout, stderr, code := conformance(t, t.TempDir(), "cleanup", "--kubeconfig", kubeconfig)
	if code != report.ExitHarness || stdout != "" || !strings.Contains(stderr, "list the namespaces of runs") {
		t.Errorf("exit code %d, %q %q", code, stdout, stderr)
	}
}

// TestClustersThatNoEngineCanDeleteAreToldByCleanupAlone demands that runs which need no engine do not speak of what a killed run of tier kind has left.
func TestClustersThatNoEngineCanDeleteAreToldByCleanupAlone(t *testing.T) {
	temp := t.TempDir()
	folder := filepath.Join(temp, "conformance-kind-1")
	if err := os.Mkdir(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{".owner", "conformance-left-1.yaml"} {
		if err := os.WriteFile(filepath.Join(folder, file), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	env := []string{"TMPDIR=" + temp, "PATH=" + t.TempDir(), "HOME=" + t.TempDir()}
	stdout, stderr, code := conformanceWith(t, temp, env, "run", "--focus", "alloc-dynamic-assigned", "--report-dir", t.TempDir())
	if code != report.ExitConformant || stderr != "" {
		t.Errorf("run: exit code %d, %q %q", code, stdout, stderr)
	}
	stdout, stderr, code = conformanceWith(t, temp, env, "cleanup")
	if code != report.ExitHarness || !strings.Contains(stderr, "conformance-left-1") {
		t.Errorf("cleanup: exit code %d, %q %q", code, stdout, stderr)
	}
	if _, err := os.Stat(folder); err != nil {
		t.Error(err)
	}
}
