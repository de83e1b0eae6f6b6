package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/report"
)

// TestARangeThatOthersFillMakesNothingRed demands that what a nearly full range cannot give is not held against the cluster, and that nobody is left without.
func TestARangeThatOthersFillMakesNothingRed(t *testing.T) {
	for _, c := range []struct {
		name, cidr, focus string
		services, ports   int // of others; ports a Service
		want              string
	}{
		{"few addresses", "10.96.0.0/24", "alloc-concurrent-dynamic", 100, 0, "free addresses, and this check takes 64 at a time"},
		{"few node ports", "10.96.0.0/24", "alloc-node-port-concurrent-dynamic", 20, 135, "free node ports, and this check takes 32 at a time"},
		{"no address", "10.96.0.0/27", "alloc-static-exact", 28, 0, "the range has no room for this check"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := startStandIn(t, standInOptions{cidrs: c.cidr})
			for i := range c.services {
				svc := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("s%d", i)}, Spec: corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}}}
				if c.ports > 0 {
					svc.Spec.Type, svc.Spec.Ports = corev1.ServiceTypeNodePort, nil
				}
				for p := range c.ports {
					svc.Spec.Ports = append(svc.Spec.Ports, corev1.ServicePort{Name: fmt.Sprintf("p%d", p), Port: int32(1 + p)})
				}
				if _, err := s.admin.CoreV1().Services(metav1.NamespaceDefault).Create(t.Context(), svc, metav1.CreateOptions{}); err != nil {
					t.Fatal(err)
				}
			}
			dir := t.TempDir()
			stdout, stderr, code := conformance(t, dir, "run", "--tier", "cluster", "--kubeconfig", s.kubeconfig, "--focus", c.focus, "--expectations", "none", "--parallel", "1", "--report-dir", "out")
			data, err := os.ReadFile(filepath.Join(dir, "out", report.JSONFile))
			if err != nil || code != report.ExitUnknown || !strings.Contains(string(data), c.want) {
				t.Errorf("exit code %d, error %v, want %q\n%s%s%s", code, err, c.want, stdout, stderr, data)
			}
		})
	}
}
