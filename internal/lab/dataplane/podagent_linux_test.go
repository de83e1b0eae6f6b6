package dataplane

import (
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

func TestPodsAnswerOnTheirPorts(t *testing.T) {
	port := func(number int32, protocol corev1.Protocol) corev1.ContainerPort {
		return corev1.ContainerPort{ContainerPort: number, Protocol: protocol}
	}
	for _, c := range []struct {
		want       string
		host       bool
		containers [][]corev1.ContainerPort
	}{
		{"80/TCP 80/UDP 8080/TCP 8080/UDP", false, [][]corev1.ContainerPort{{}}},
		{"", true, [][]corev1.ContainerPort{{}}},
		{"9000/TCP", true, [][]corev1.ContainerPort{{port(9000, "TCP")}}},
		{"53/UDP 53/TCP 9000/TCP", false, [][]corev1.ContainerPort{{port(53, "UDP"), port(53, "TCP")}, {port(9000, "TCP"), port(53, "UDP")}}},
	} {
		spec := corev1.PodSpec{HostNetwork: c.host}
		for _, ports := range c.containers {
			spec.Containers = append(spec.Containers, corev1.Container{Ports: ports})
		}
		var got []string
		for _, p := range answeredPorts(&spec) {
			got = append(got, fmt.Sprintf("%d/%s", p.Number, p.Protocol))
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%v on the host network %t: %v, want %s", c.containers, c.host, got, c.want)
		}
	}
}
