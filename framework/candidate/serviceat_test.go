package candidate

import (
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func TestServiceAt(t *testing.T) {
	named := func(name string, spec corev1.ServiceSpec) corev1.Service {
		return corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}
	}
	balanced := named("balanced", corev1.ServiceSpec{HealthCheckNodePort: 30002})
	balanced.Status.LoadBalancer.Ingress = []corev1.LoadBalancerIngress{{IP: "203.0.113.9"}}
	services := []corev1.Service{
		named("ported", corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.1"}, Ports: []corev1.ServicePort{{}, {NodePort: 30001}}}),
		named("external", corev1.ServiceSpec{ClusterIPs: []string{"10.96.0.2", "fd00::2"}, ExternalIPs: []string{"203.0.113.1"}}),
		balanced,
	}
	for to, want := range map[string]string{
		"10.96.0.1:80":          "ported",
		"[fd00::2]:80":          "external",
		"203.0.113.1:30001":     "external", // that has the address
		"[::ffff:10.96.0.2]:80": "external",
		"203.0.113.9:80":        "balanced",
		"172.30.1.1:30001":      "ported",
		"172.30.1.1:30002":      "balanced",
		"172.30.1.1:80":         "",
	} {
		got := ""
		if s := ServiceAt(services, netip.MustParseAddrPort(to)); s != nil {
			got = s.Name
		}
		if got != want {
			t.Errorf("%s is of Service %q, want %q", to, got, want)
		}
	}
}
