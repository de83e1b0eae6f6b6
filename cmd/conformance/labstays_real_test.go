//go:build lab && linux

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/cluster"
	"github.com/service-conformance/conformance/framework/report"
	"github.com/service-conformance/conformance/internal/lab/standing"
)

// stayingLab is a lab that is up for the time of a test. The program has the user's own cache, where what the lab runs is built once.
type stayingLab struct{ name, dir string }

func startLab(t *testing.T, name string, flags ...string) *stayingLab {
	l := &stayingLab{name, t.TempDir()}
	t.Cleanup(func() { l.expect(t, 0, "is down", "lab", "down", "--name", name) })
	l.expect(t, 0, "is up at", append([]string{"lab", "up", "--name", name, "--kubeconfig", "kc"}, flags...)...)
	return l
}

func (l *stayingLab) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Dir, cmd.Env = l.dir, append(os.Environ(), asProgram+"=1")
	return cmd
}

// expect runs the program and demands an exit code and a text.
func (l *stayingLab) expect(t *testing.T, code int, text string, args ...string) {
	t.Helper()
	cmd := l.command(args...)
	out, _ := cmd.CombinedOutput() // the exit code is judged
	if got := cmd.ProcessState.ExitCode(); got != code || !strings.Contains(string(out), text) {
		t.Errorf("%s: exit code %d, want %d and %q\n%s", strings.Join(args, " "), got, code, text, out)
	}
}

func (l *stayingLab) attach(flags ...string) []string {
	return append([]string{"run", "--tier", "lab", "--attach=" + l.name, "--report-dir", "r"}, flags...)
}

// holds waits until something is so; the test's own time limit ends the wait.
func holds(t *testing.T, what string, so func() bool) {
	t.Helper()
	for !so() {
		select {
		case <-t.Context().Done():
			t.Fatalf("%s: the time is over", what)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestStayingLabServesTheAuthorOfAProxy is what --attach and restart-proxy are for, with kube-proxy as the proxy.
func TestStayingLabServesTheAuthorOfAProxy(t *testing.T) {
	l := startLab(t, "test-author")
	judge := l.attach("--focus", "proxy-tcp-forwarded")
	l.expect(t, report.ExitConformant, "conformant", judge...)

	up, err := standing.Status("", l.name)
	if err != nil || up == nil {
		t.Fatalf("%+v, %v", up, err)
	}
	if err := exec.Command("pkill", "-KILL", "-f", filepath.Join(up.Dir, "proxy-node-2.yaml")).Run(); err != nil {
		t.Fatal(err)
	}
	holds(t, "the end of the proxy is noticed", func() bool { return strings.Contains(up.Died(), "proxy-node-2") })
	l.expect(t, 0, "proxy-node-2.log: kube-proxy ended", "lab", "list")
	l.expect(t, report.ExitUsage, "restart-proxy", judge...)
	l.expect(t, 0, "the proxy of node-2 serves", "lab", "restart-proxy", "--name", l.name, "node-2")
	if died := up.Died(); died != "" {
		t.Errorf("after the new start: %s", died)
	}
	l.expect(t, report.ExitConformant, "conformant", judge...)
	l.expect(t, report.ExitUsage, `has no node "node-9"; there are node-1`, "lab", "restart-proxy", "--name", l.name, "node-9")
}

// TestStayingLabsOfTwoNamesAreJudgedApart shows that what is judged is the lab that is up, and that two can be.
func TestStayingLabsOfTwoNamesAreJudgedApart(t *testing.T) {
	working := startLab(t, "test-working")
	idle := startLab(t, "test-idle", "--proxy-command", "GREETING=none sh -c 'sleep 100000'; echo over")
	idle.expect(t, report.ExitNonConformant, "again: conformance run --attach=test-idle", idle.attach("--focus", "proxy-tcp-forwarded", "--max-wait", "2s")...)
	working.expect(t, report.ExitConformant, "conformant", working.attach("--focus", "proxy-tcp-forwarded")...)
}

// TestStayingLabForgetsAKilledRun looks at what a lab that goes on has of a run that had no time to clean up.
func TestStayingLabForgetsAKilledRun(t *testing.T) {
	l := startLab(t, "test-killed")
	api, err := cluster.Connect(filepath.Join(l.dir, "kc"))
	if err != nil {
		t.Fatal(err)
	}
	ofRuns := func() int {
		list, err := api.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{LabelSelector: candidate.RunLabel})
		if err != nil {
			t.Fatal(err)
		}
		return len(list.Items)
	}
	run := l.command(l.attach("--suite", "proxy")...)
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	holds(t, "the run has begun", func() bool { return ofRuns() > 5 })
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // it was killed
	holds(t, "nothing is left", func() bool { return ofRuns() == 0 })
	pods, err := api.CoreV1().Pods(metav1.NamespaceAll).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range pods.Items {
		if p.Namespace != "conformance-clients" {
			t.Errorf("left: pod %s/%s", p.Namespace, p.Name)
		}
	}
	l.expect(t, report.ExitConformant, "conformant", l.attach("--focus", "proxy-tcp-forwarded")...)
}

// TestStayingLabHasDNS asks by a short name, from a pod and from a node.
func TestStayingLabHasDNS(t *testing.T) {
	l := startLab(t, "test-dns")
	api, err := cluster.Connect(filepath.Join(l.dir, "kc"))
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "a"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "any"}}}}
	if _, err := api.CoreV1().Pods("default").Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, place := range []string{"a", "node-2"} {
		holds(t, place+" resolves a name", func() bool {
			out, _ := l.command("lab", "shell", "--name", l.name, place, "--", "getent", "ahosts", "kubernetes").Output() // until it can
			return strings.HasPrefix(string(out), "10.96.0.1 ")
		})
	}
	out, err := api.CoreV1().RESTClient().Get().Namespace("default").Resource("pods").Name("a").SubResource("log").DoRaw(t.Context())
	if err == nil || !strings.Contains(string(out), "without containers") {
		t.Errorf("logs: %s, %v", out, err)
	}
}
