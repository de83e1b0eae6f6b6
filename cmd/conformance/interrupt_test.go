//go:build unix

package main

import (
	"crypto/rand"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/report"
)

// TestSignalToAllProcessesLeavesNothing demands that a run that a terminal, or a program such as timeout, interrupts with all of its
// workers at once removes its namespaces from the cluster.
func TestSignalToAllProcessesLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kc")
	server, err := apiserver.New(apiserver.Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}, TLS: true, Token: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	if err := server.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	namespaces := kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces()

	var out strings.Builder
	run := exec.CommandContext(t.Context(), os.Args[0], "run", "--tier", "cluster", "--kubeconfig", kubeconfig, "--parallel", "4", "--seed", "7",
		"--expectations", "none", "--report-dir", filepath.Join(dir, "report"))
	run.Env = append(os.Environ(), asProgram+"=1", "HOME="+dir)
	run.Stdout, run.Stderr = &out, &out
	run.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	created, err := namespaces.Watch(t.Context(), metav1.ListOptions{LabelSelector: candidate.RunLabel})
	if err != nil {
		t.Fatal(err)
	}
	defer created.Stop()
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	for range 20 { // every worker is at work
		<-created.ResultChan()
	}
	if err := syscall.Kill(-run.Process.Pid, syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait()
	if code := run.ProcessState.ExitCode(); code != report.ExitUnknown || !strings.Contains(out.String(), "did not run") {
		t.Errorf("exit code %d, not %d of an interrupted run:\n%s", code, report.ExitUnknown, out.String())
	}
	left, err := namespaces.List(t.Context(), metav1.ListOptions{LabelSelector: candidate.RunLabel})
	if err != nil {
		t.Fatal(err)
	}
	for _, ns := range left.Items {
		t.Errorf("namespace %s was left", ns.Name)
	}
}
