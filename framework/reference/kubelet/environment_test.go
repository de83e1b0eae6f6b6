package kubelet

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/reference/fault"
)

func service(namespace, name, ip string, ports ...corev1.ServicePort) *corev1.Service {
	return &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Spec: corev1.ServiceSpec{ClusterIP: ip, Ports: ports}}
}

func port(name string, protocol corev1.Protocol, number int32) corev1.ServicePort {
	return corev1.ServicePort{Name: name, Protocol: protocol, Port: number}
}

func TestEnvironmentOfServices(t *testing.T) {
	https := port("https", corev1.ProtocolTCP, 443)
	services := []*corev1.Service{
		service("ns", "my-app", "10.96.0.7", port("web-ui", corev1.ProtocolTCP, 80), port("dns", corev1.ProtocolUDP, 53)),
		service("ns", "six", "fd00::7", port("", corev1.ProtocolTCP, 8080)),
		service("ns", "headless", corev1.ClusterIPNone, https),
		service("ns", "alias", ""),
		service("other", "foreign", "10.96.0.8", https),
		service("default", "foreign", "10.96.0.9", https),
		service("default", "kubernetes", "10.96.0.1", https),
	}
	const server = `KUBERNETES_PORT=tcp://10.96.0.1:443
KUBERNETES_PORT_443_TCP=tcp://10.96.0.1:443
KUBERNETES_PORT_443_TCP_ADDR=10.96.0.1
KUBERNETES_PORT_443_TCP_PORT=443
KUBERNETES_PORT_443_TCP_PROTO=tcp
KUBERNETES_SERVICE_HOST=10.96.0.1
KUBERNETES_SERVICE_PORT=443
KUBERNETES_SERVICE_PORT_HTTPS=443
`
	const app = `MY_APP_PORT=tcp://10.96.0.7:80
MY_APP_PORT_53_UDP=udp://10.96.0.7:53
MY_APP_PORT_53_UDP_ADDR=10.96.0.7
MY_APP_PORT_53_UDP_PORT=53
MY_APP_PORT_53_UDP_PROTO=udp
MY_APP_PORT_80_TCP=tcp://10.96.0.7:80
MY_APP_PORT_80_TCP_ADDR=10.96.0.7
MY_APP_PORT_80_TCP_PORT=80
MY_APP_PORT_80_TCP_PROTO=tcp
MY_APP_SERVICE_HOST=10.96.0.7
MY_APP_SERVICE_PORT=80
MY_APP_SERVICE_PORT_DNS=53
MY_APP_SERVICE_PORT_WEB_UI=80
SIX_PORT=tcp://[fd00::7]:8080
SIX_PORT_8080_TCP=tcp://[fd00::7]:8080
SIX_PORT_8080_TCP_ADDR=fd00::7
SIX_PORT_8080_TCP_PORT=8080
SIX_PORT_8080_TCP_PROTO=tcp
SIX_SERVICE_HOST=fd00::7
SIX_SERVICE_PORT=8080
`
	for _, c := range []struct {
		pod  candidate.Pod
		want string
	}{
		{candidate.Pod{PodName: candidate.PodName{Namespace: "ns", Name: "p"}}, server + app},
		{candidate.Pod{PodName: candidate.PodName{Namespace: "ns", Name: "p"}, WithoutServiceLinks: true}, server},
		{candidate.Pod{PodName: candidate.PodName{Namespace: "empty", Name: "p"}}, server},
	} {
		got := strings.Join(New(fault.Set{}).Environment(&c.pod, services), "\n") + "\n"
		if got != c.want {
			t.Errorf("%+v:\n%s\nwant:\n%s", c.pod, got, c.want)
		}
	}
}

func TestVariablesOfThePodItself(t *testing.T) {
	services := []*corev1.Service{service("ns", "app", "10.96.0.7", port("", corev1.ProtocolTCP, 80))}
	for value, want := range map[string]string{
		"http://$(APP_SERVICE_HOST):$(APP_SERVICE_PORT)/": "http://10.96.0.7:80/",
		"$(APP_SERVICE_HOST)$(APP_SERVICE_HOST)":          "10.96.0.710.96.0.7",
		"$$(APP_SERVICE_HOST)":                            "$(APP_SERVICE_HOST)",
		"$$$(APP_SERVICE_HOST)":                           "$10.96.0.7",
		"$(NOBODY) $(APP_SERVICE_HOST":                    "$(NOBODY) $(APP_SERVICE_HOST",
		"$APP_SERVICE_HOST $":                             "$APP_SERVICE_HOST $",
		"$(APP_PORT)":                                     "$(APP_PORT)", // the pod's own hides it
		"":                                                "",
	} {
		pod := candidate.Pod{PodName: candidate.PodName{Namespace: "ns", Name: "p"}, Variables: map[string]string{"VALUE": value, "APP_PORT": "own"}}
		got := New(fault.Set{}).Environment(&pod, services)
		if !slices.Contains(got, "VALUE="+want) || !slices.Contains(got, "APP_PORT=own") {
			t.Errorf("%q becomes %q, want %q, beside APP_PORT=own", value, got, want)
		}
	}
}

func TestServiceOfThePodsNamespaceHidesThatOfTheAPIServer(t *testing.T) {
	https := port("", corev1.ProtocolTCP, 443)
	own, server := service("ns", "kubernetes", "10.96.0.9", https), service("default", "kubernetes", "10.96.0.1", https)
	pod := candidate.Pod{PodName: candidate.PodName{Namespace: "ns", Name: "p"}}
	for _, services := range [][]*corev1.Service{{own, server}, {server, own}} {
		if got := New(fault.Set{}).Environment(&pod, services); !slices.Contains(got, "KUBERNETES_SERVICE_HOST=10.96.0.9") {
			t.Errorf("got %v", got)
		}
	}
}
