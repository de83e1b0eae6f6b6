package proxy

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/spec"
)

// begins demands something of the environment variables of a pod that is started now. A process keeps the ones that it
// has begun with, and a node may be a moment behind the API. Another pod is started until one is as demanded.
func begins(ctx context.Context, net *check.Network, what string, pod candidate.Pod, demand func(g Gomega, variables map[string]string)) {
	ginkgo.GinkgoHelper()
	if pod.Node == "" {
		pod.Node = net.Node(0)
	}
	converge(ctx, net, what+", then a pod", func(g Gomega) {
		started := net.Start(ctx, pod)
		variables := net.Environment(ctx, started)
		net.Remove(ctx, started)
		demand(g, variables)
	})
}

// about are the variables whose names have the prefix; case and the kind of dash do not matter.
func about(variables map[string]string, prefix string) map[string]string {
	found := maps.Clone(variables)
	maps.DeleteFunc(found, func(name, _ string) bool {
		return !strings.HasPrefix(strings.ToUpper(strings.ReplaceAll(name, "-", "_")), prefix+"_")
	})
	return found
}

// serving demands the variables that tell of a Service and its ports; of a port that has a name, that as well.
func serving(g Gomega, variables map[string]string, prefix string, svc *corev1.Service) {
	ginkgo.GinkgoHelper()
	told := about(variables, prefix)
	g.Expect(told).To(HaveKeyWithValue(prefix+"_SERVICE_HOST", svc.Spec.ClusterIP), "address of Service %s", svc.Name)
	g.Expect(told).To(HaveKeyWithValue(prefix+"_SERVICE_PORT", fmt.Sprint(svc.Spec.Ports[0].Port)), "first port of Service %s", svc.Name)
	for _, p := range svc.Spec.Ports {
		if p.Name != "" {
			name := prefix + "_SERVICE_PORT_" + strings.ToUpper(strings.ReplaceAll(p.Name, "-", "_"))
			g.Expect(told).To(HaveKeyWithValue(name, fmt.Sprint(p.Port)), "port %s of Service %s", p.Name, svc.Name)
		}
	}
}

// linking demands the variables that Docker would give for a link to a container at the address of the Service.
func linking(g Gomega, variables map[string]string, prefix string, svc *corev1.Service) {
	ginkgo.GinkgoHelper()
	told := about(variables, prefix)
	for i, p := range svc.Spec.Ports {
		number, protocol := fmt.Sprint(p.Port), strings.ToLower(string(p.Protocol))
		url := fmt.Sprintf("%s://%s", protocol, check.ServiceAddress(svc, p.Port))
		name := fmt.Sprintf("%s_PORT_%s_%s", prefix, number, p.Protocol)
		want := map[string]string{name: url, name + "_PROTO": protocol, name + "_PORT": number, name + "_ADDR": svc.Spec.ClusterIP}
		if i == 0 {
			want[prefix+"_PORT"] = url
		}
		for name, value := range want {
			g.Expect(told).To(HaveKeyWithValue(name, value), "link to port %s/%s of Service %s", number, protocol, svc.Name)
		}
	}
}

var _ = ginkgo.Describe("the environment variables of a container", func() {
	check.It(spec.ProxyEnvironmentClusterIP, "hold the virtual address of a Service and its ports", func(ctx context.Context, net *check.Network) {
		single := net.Expose(ctx, check.Service("single", check.WithPorts(check.Port("", corev1.ProtocolTCP, 8000, check.BackendPort))))
		several := net.Expose(ctx, check.Service("several", onNodePorts(), check.WithPorts(
			check.Port("web", corev1.ProtocolTCP, 80, check.BackendPort), check.Port("log", corev1.ProtocolUDP, 514, check.BackendPort))))
		begins(ctx, net, "Services are created", candidate.Pod{}, func(g Gomega, variables map[string]string) {
			serving(g, variables, "SINGLE", single)
			serving(g, variables, "SEVERAL", several)
		})
	})

	check.It(spec.ProxyEnvironmentClusterIP, "hold the first virtual address of a Service, whatever family that is of", check.DualStack(),
		check.Also(spec.ProxyEnvironmentContainerLinks),
		func(ctx context.Context, net *check.Network) {
			first, second := net.PrimaryFamily(), net.OtherFamily()
			services := map[string]*corev1.Service{
				"DUAL":    net.Expose(ctx, exposed("dual", inBothFamilies())),
				"SECOND":  net.Expose(ctx, exposed("second", check.WithFamilies(second))),
				"REVERSE": net.Expose(ctx, exposed("reverse", inBothFamilies(), check.WithFamilies(second, first))),
			}
			each := func(demand func(Gomega, map[string]string, string, *corev1.Service)) func(Gomega, map[string]string) {
				return func(g Gomega, variables map[string]string) {
					for prefix, svc := range services {
						demand(g, variables, prefix, svc)
					}
				}
			}
			check.Deciding(func() {
				begins(ctx, net, "Services of both families are created", candidate.Pod{}, each(serving))
			}, spec.ProxyEnvironmentClusterIP)
			check.Deciding(func() {
				begins(ctx, net, "Services of both families are created, links", candidate.Pod{}, each(linking))
			}, spec.ProxyEnvironmentContainerLinks)
		})

	check.It(spec.ProxyEnvironmentContainerLinks, "give each port of a Service in the form of container links", func(ctx context.Context, net *check.Network) {
		single := net.Expose(ctx, check.Service("single", check.WithPorts(check.Port("", corev1.ProtocolTCP, 8000, check.BackendPort))))
		both := net.Expose(ctx, exposed("both")) // TCP and UDP on one number
		begins(ctx, net, "Services are created", candidate.Pod{}, func(g Gomega, variables map[string]string) {
			linking(g, variables, "SINGLE", single)
			linking(g, variables, "BOTH", both)
		})
	})

	check.It(spec.ProxyEnvironmentNames, "have names in upper case, with underscores for dashes", func(ctx context.Context, net *check.Network) {
		svc := net.Expose(ctx, check.Service("my-own-app", check.WithPorts(
			check.Port("web-ui", corev1.ProtocolTCP, 80, check.BackendPort), check.Port("x-2", corev1.ProtocolTCP, 81, check.BackendPort))))
		begins(ctx, net, "a Service is created", candidate.Pod{}, func(g Gomega, variables map[string]string) {
			serving(g, variables, "MY_OWN_APP", svc)
			for name := range about(variables, "MY_OWN_APP") {
				g.Expect(name).To(MatchRegexp("^[A-Z0-9_]+$"), "name of a variable of Service %s", svc.Name)
			}
		})
	})

	check.It(spec.ProxyEnvironmentNameLeadingDigit, "begin with a digit where the name of the Service does", func(ctx context.Context, net *check.Network) {
		digit, word := net.Expose(ctx, exposed("1")), net.Expose(ctx, exposed("9app"))
		begins(ctx, net, "Services are created", candidate.Pod{}, func(g Gomega, variables map[string]string) {
			serving(g, variables, "1", digit)
			serving(g, variables, "9APP", word)
		})
	})

	check.It(spec.ProxyEnvironmentNamespace, "tell of the Services of the pod's namespace and of the API server", func(ctx context.Context, net *check.Network) {
		elsewhere := net.NewNamespace(ctx)
		foreign := net.Expose(ctx, exposed("foreign", check.InNamespace(elsewhere)))
		own := net.Expose(ctx, exposed("own"))
		server := serviceOfAPIServer(ctx, net)
		begins(ctx, net, "Services are created in two namespaces", candidate.Pod{}, func(g Gomega, variables map[string]string) {
			serving(g, variables, "OWN", own)
			serving(g, variables, "KUBERNETES", server)
			g.Expect(about(variables, "FOREIGN")).To(BeEmpty(), "variables of a Service of another namespace")
		})
		there := candidate.Pod{PodName: candidate.PodName{Namespace: elsewhere}}
		begins(ctx, net, "Services are created in two namespaces", there, func(g Gomega, variables map[string]string) {
			serving(g, variables, "FOREIGN", foreign)
			serving(g, variables, "KUBERNETES", server)
			g.Expect(about(variables, "OWN")).To(BeEmpty(), "variables of a Service of another namespace")
		})
	})

	check.It(spec.ProxyEnvironmentHeadless, "tell nothing of Services without a virtual address", func(ctx context.Context, net *check.Network) {
		net.Expose(ctx, exposed("headless", check.Headless()))
		net.Expose(ctx, exposed("alias", check.ExternalName(externalHost), check.WithPorts(check.Port("tcp", corev1.ProtocolTCP, exposedPort, 0))))
		// A pod that knows the last one knows those before it.
		last := net.Expose(ctx, exposed("last"))
		begins(ctx, net, "a headless Service and an alias are created, and an ordinary one", candidate.Pod{}, func(g Gomega, variables map[string]string) {
			serving(g, variables, "LAST", last)
			g.Expect(about(variables, "HEADLESS")).To(BeEmpty(), "variables of the headless Service")
			g.Expect(about(variables, "ALIAS")).To(BeEmpty(), "variables of the Service of type ExternalName")
		})
	})

	check.It(spec.ProxyEnvironmentDisabled, "tell of the API server only where enableServiceLinks is false", func(ctx context.Context, net *check.Network) {
		app, server := net.Expose(ctx, exposed("app")), serviceOfAPIServer(ctx, net)
		begins(ctx, net, "a Service is created", candidate.Pod{}, func(g Gomega, variables map[string]string) { serving(g, variables, "APP", app) })
		// The node knows the Service now.
		begins(ctx, net, "a Service is created, without service links", candidate.Pod{WithoutServiceLinks: true}, func(g Gomega, variables map[string]string) {
			serving(g, variables, "KUBERNETES", server)
			hosts := []string{}
			for name := range variables {
				if strings.HasSuffix(strings.ToUpper(name), "_SERVICE_HOST") {
					hosts = append(hosts, name)
				}
			}
			g.Expect(hosts).To(ConsistOf("KUBERNETES_SERVICE_HOST"), "variables for addresses of Services")
			g.Expect(about(variables, "APP")).To(BeEmpty(), "variables of Service %s", app.Name)
		})
	})

	check.It(spec.ProxyEnvironmentCurrent, "tell of the Services that there are when the container starts", func(ctx context.Context, net *check.Network) {
		app := net.Expose(ctx, exposed("app"))
		tells := func(what string) {
			ginkgo.GinkgoHelper()
			begins(ctx, net, what, candidate.Pod{}, func(g Gomega, variables map[string]string) { serving(g, variables, "APP", app) })
		}
		tells("a Service is created")
		former := app.Spec.ClusterIP
		net.Unexpose(ctx, app.Name)
		other := net.Expose(ctx, exposed("other", check.WithClusterIP(former))) // so that the next one has another address
		begins(ctx, net, "it is deleted, and another one created", candidate.Pod{}, func(g Gomega, variables map[string]string) {
			serving(g, variables, "OTHER", other)
			g.Expect(about(variables, "APP")).To(BeEmpty(), "variables of a Service that was deleted")
		})
		app = net.Expose(ctx, exposed("app"))
		tells("one of its name is created")
		app = net.Change(ctx, app.Name, `{"spec":{"ports":[{"name":"tcp","port":81,"targetPort":8080},{"name":"new","port":82,"targetPort":8080}]}}`)
		tells("its ports are changed")
	})

	check.It(spec.ProxyEnvironmentOwnFirst, "do not replace those that the container sets itself", func(ctx context.Context, net *check.Network) {
		app := net.Expose(ctx, exposed("app"))
		own := candidate.Pod{Variables: map[string]string{"APP_SERVICE_HOST": "own.example.com", "APP_PORT": "", "OWN": "mine"}}
		begins(ctx, net, "a Service is created", own, func(g Gomega, variables map[string]string) {
			port := fmt.Sprint(app.Spec.Ports[0].Port)
			g.Expect(variables).To(HaveKeyWithValue("APP_SERVICE_PORT", port), "a variable of the Service that the container does not set")
			for name, value := range own.Variables {
				g.Expect(variables).To(HaveKeyWithValue(name, value), "a variable that the container sets")
			}
		})
	})

	check.It(spec.ProxyEnvironmentReferences, "can be referred to in those that the container sets itself", func(ctx context.Context, net *check.Network) {
		app := net.Expose(ctx, exposed("app"))
		referring := candidate.Pod{Variables: map[string]string{
			"ADDRESS": "$(APP_SERVICE_HOST)", "URL": "http://$(APP_SERVICE_HOST):$(APP_SERVICE_PORT_TCP)/path", "ESCAPED": "$$(APP_SERVICE_HOST)",
		}}
		begins(ctx, net, "a Service is created", referring, func(g Gomega, variables map[string]string) {
			ip := app.Spec.ClusterIP
			g.Expect(variables).To(HaveKeyWithValue("ADDRESS", ip), "a variable that refers to one of the Service")
			g.Expect(variables).To(HaveKeyWithValue("URL", fmt.Sprintf("http://%s:%d/path", ip, exposedPort)), "a variable that refers to two of the Service")
			g.Expect(variables).To(HaveKeyWithValue("ESCAPED", "$(APP_SERVICE_HOST)"), "a variable with a reference that is escaped")
		})
	})
})

// serviceOfAPIServer is the Service that leads to the API server.
func serviceOfAPIServer(ctx context.Context, net *check.Network) *corev1.Service {
	ginkgo.GinkgoHelper()
	svc, err := net.Client().CoreV1().Services(metav1.NamespaceDefault).Get(ctx, "kubernetes", metav1.GetOptions{})
	check.Must(err)
	return svc
}
