//go:build unix

package main

import (
	"crypto/rand"
	"net/netip"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/apiserver"
	"github.com/service-conformance/conformance/framework/report"
)

// TestSignalToAllProcessesLeavesNothing ends a run with all of its workers at once, as a terminal or a program such as
// timeout does. The run must remove its namespaces from the cluster. So must a run without workers.
func TestSignalToAllProcessesLeavesNothing(t *testing.T) {
	for _, told := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		if signal.Ignored(told) { // this test runs under nohup
			continue
		}
		for _, parallel := range []string{"1", "4"} {
			t.Run(told.String()+" to "+parallel, func(t *testing.T) {
				run := startInterruptible(t, false, "--parallel", parallel)
				for range 20 { // every worker is at work
					<-run.created.ResultChan()
				}
				code, out := run.end(told)
				if code != report.ExitUnknown || !strings.Contains(out, "did not run") {
					t.Errorf("exit code %d, not %d of an interrupted run:\n%s", code, report.ExitUnknown, out)
				}
			})
		}
	}
}

// TestRunUnderNohupOutlivesTheTerminal demands that the program ignores SIGHUP if its parent process did.
func TestRunUnderNohupOutlivesTheTerminal(t *testing.T) {
	run := startInterruptible(t, true, "--parallel", "1", "--focus", "alloc-dynamic-assigned")
	<-run.created.ResultChan()
	if code, out := run.end(syscall.SIGHUP); code != report.ExitConformant {
		t.Errorf("exit code %d:\n%s", code, out)
	}
}

// interruptible is a run on tier cluster in a process group of its own.
type interruptible struct {
	t          *testing.T
	cmd        *exec.Cmd
	out        strings.Builder
	namespaces typedcorev1.NamespaceInterface
	created    watch.Interface
}

func startInterruptible(t *testing.T, nohup bool, args ...string) *interruptible {
	t.Helper()
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kc")
	server, err := apiserver.New(apiserver.Options{ServiceCIDRs: []netip.Prefix{netip.MustParsePrefix("10.96.0.0/16")}, TLS: true, Token: rand.Text()})
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = server.Close() })
	if err := server.WriteKubeconfig(kubeconfig); err != nil {
		t.Fatal(err)
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	r := &interruptible{t: t, namespaces: kubernetes.NewForConfigOrDie(config).CoreV1().Namespaces()}
	args = append([]string{os.Args[0], "run", "--tier", "cluster", "--kubeconfig", kubeconfig, "--seed", "7", "--expectations", "none",
		"--report-dir", filepath.Join(dir, "report")}, args...)
	if nohup {
		args = append([]string{"/bin/sh", "-c", `trap "" HUP; exec "$0" "$@"`}, args...)
	}
	r.cmd = exec.CommandContext(t.Context(), args[0], args[1:]...)
	r.cmd.Env = append(os.Environ(), asProgram+"=1", "HOME="+dir)
	r.cmd.Stdout, r.cmd.Stderr = &r.out, &r.out
	r.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if r.created, err = r.namespaces.Watch(t.Context(), metav1.ListOptions{LabelSelector: candidate.RunLabel}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.created.Stop)
	if err := r.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return r
}

// end signals all processes of the run, waits for its end, and demands that it leaves nothing.
func (r *interruptible) end(told syscall.Signal) (code int, out string) {
	r.t.Helper()
	if err := syscall.Kill(-r.cmd.Process.Pid, told); err != nil {
		r.t.Fatal(err)
	}
	_ = r.cmd.Wait()
	left, err := r.namespaces.List(r.t.Context(), metav1.ListOptions{LabelSelector: candidate.RunLabel})
	if err != nil {
		r.t.Fatal(err)
	}
	for _, ns := range left.Items {
		r.t.Errorf("namespace %s was left", ns.Name)
	}
	return r.cmd.ProcessState.ExitCode(), r.out.String()
}
