//go:build lab && linux

package standing

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/service-conformance/conformance/internal/lab"
	"github.com/service-conformance/conformance/internal/lab/fakes"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// TestALabWithNodesStays is what a user does with `lab up`: pods, a Service, shells, a crash, and the end.
func TestALabWithNodesStays(t *testing.T) {
	o := UpOptions{Options: lab.Options{Version: os.Getenv("KUBERNETES_VERSION")}, StateDir: t.TempDir(), Nodes: 2}
	r, err := Up(t.Context(), o)
	fakes.Must(t, err)
	t.Cleanup(func() {
		_, err := Down(context.Background(), o.StateDir, "")
		fakes.Must(t, err)
	})
	if len(r.Nodes) != 2 || r.WithoutNodes != "" {
		t.Fatalf("%+v", r)
	}
	access := accessOf(t, r.Kubeconfig)
	api, err := kubernetes.NewForConfig(&rest.Config{Host: access.URL, BearerToken: access.Token, TLSClientConfig: rest.TLSClientConfig{CAData: access.CA}})
	fakes.Must(t, err)

	pods := api.CoreV1().Pods("default")
	for _, name := range []string{"a", "b"} {
		_, err := pods.Create(t.Context(), &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": "web"}},
			Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "none", Ports: []corev1.ContainerPort{{ContainerPort: 9000}}}}},
		}, metav1.CreateOptions{})
		fakes.Must(t, err)
	}
	nodes := map[string]string{} // by pod
	fakes.Until(t, "both pods run", func() bool {
		list, err := pods.List(t.Context(), metav1.ListOptions{})
		fakes.Must(t, err)
		for _, p := range list.Items {
			if p.Status.Phase == corev1.PodRunning && p.Status.PodIP != "" {
				nodes[p.Name] = p.Spec.NodeName
			}
		}
		return len(nodes) == 2
	})
	if nodes["a"] == nodes["b"] {
		t.Errorf("both pods are on %s", nodes["a"])
	}
	svc, err := api.CoreV1().Services("default").Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Selector: map[string]string{"app": "web"}, Ports: []corev1.ServicePort{{Port: 80, TargetPort: intstr.FromInt32(9000)}}},
	}, metav1.CreateOptions{})
	fakes.Must(t, err)

	ask := filepath.Join(fakes.Install(t, "ask"), "ask")
	answers := map[string]bool{}
	for _, from := range []string{"node-1", "node-2", "default/a"} {
		fakes.Until(t, "both pods answer "+from, func() bool {
			out, _, code := shell(t, o.StateDir, from, ask, net.JoinHostPort(svc.Spec.ClusterIP, "80"))
			var answer struct{ Pod string }
			if code == 0 && json.Unmarshal([]byte(out), &answer) == nil {
				answers[from+" "+answer.Pod] = true
			}
			return answers[from+" a"] && answers[from+" b"]
		})
	}

	grace := int64(1)
	fakes.Must(t, pods.Delete(t.Context(), "b", metav1.DeleteOptions{GracePeriodSeconds: &grace}))
	fakes.Until(t, "the deleted pod is gone", func() bool {
		_, _, code := shell(t, o.StateDir, "b", "true")
		return code == 64
	})

	// A crash takes everything with it but files, and those go with the next start.
	fakes.Must(t, syscall.Kill(r.Servers[0].PID, syscall.SIGKILL))
	fakes.Until(t, "all servers have ended", func() bool {
		out, _ := exec.Command("pgrep", "-f", r.Dir).Output() // that none is found is an error
		return strings.TrimSpace(string(out)) == ""
	})
	if running, err := Status(o.StateDir, ""); running != nil || err != nil {
		t.Errorf("status after a crash: %+v, %v", running, err)
	}
	second, err := Up(t.Context(), o)
	fakes.Must(t, err)
	if fakes.Exists(t, r.Dir) {
		t.Error("the folder of the lab that crashed is still there")
	}
	if out, errs, code := shell(t, o.StateDir, "node-2", "true"); code != 0 {
		t.Errorf("a shell in the second lab: %s%s, exit code %d", out, errs, code)
	}
	_, err = Down(t.Context(), o.StateDir, "")
	fakes.Must(t, err)
	for _, p := range second.Servers {
		if p.Alive() {
			t.Errorf("process %d still runs", p.PID)
		}
	}
	if fakes.Exists(t, second.Dir) {
		t.Errorf("left behind: %s", second.Dir)
	}
}
