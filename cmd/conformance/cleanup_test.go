package main

import (
	"net/http"
	"net/http/httptest"
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
	t.Setenv("TMPDIR", t.TempDir()) // what killed runs of this machine have left is not for a test to remove
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
	t.Setenv("TMPDIR", t.TempDir()) // what killed runs of this machine have left is not for a test to remove
	stdout, stderr, code := conformance(t, t.TempDir(), "cleanup", "--kubeconfig", kubeconfig)
	if code != report.ExitHarness || stdout != "" || !strings.Contains(stderr, "list the namespaces of runs") {
		t.Errorf("exit code %d, %q %q", code, stdout, stderr)
	}
}
