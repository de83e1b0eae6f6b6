package kubelet

import (
	"fmt"
	"net"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// Rules for the variables of a Service.
var (
	hostWritten = rule.New("environment-service-host", func(r *Rules, v variables, svc *corev1.Service, _ []corev1.ServicePort) {
		v[r.variableName.Do(svc.Name)+"_SERVICE_HOST"] = svc.Spec.ClusterIP
	}, spec.ProxyEnvironmentClusterIP)

	portWritten = rule.New("environment-service-port", func(r *Rules, v variables, svc *corev1.Service, ports []corev1.ServicePort) {
		v[r.variableName.Do(svc.Name)+"_SERVICE_PORT"] = number(r.portOfService.Do(ports))
	}, spec.ProxyEnvironmentClusterIP)

	namedPortsWritten = rule.New("environment-named-ports", func(r *Rules, v variables, svc *corev1.Service, ports []corev1.ServicePort) {
		for _, p := range ports {
			if p.Name != "" {
				v[r.variableName.Do(svc.Name)+"_SERVICE_PORT_"+r.variableName.Do(p.Name)] = number(p)
			}
		}
	}, spec.ProxyEnvironmentClusterIP)

	// Docker gave such variables to a container for another one that it was linked with.
	containerLinksWritten = rule.New("environment-container-links", func(r *Rules, v variables, svc *corev1.Service, ports []corev1.ServicePort) {
		prefix, ip := r.variableName.Do(svc.Name), svc.Spec.ClusterIP
		for i, p := range ports {
			protocol := strings.ToLower(string(p.Protocol))
			url := protocol + "://" + r.hostAndPort.Do(ip, number(p))
			if i == 0 {
				v[prefix+"_PORT"] = url
			}
			port := fmt.Sprintf("%s_PORT_%s_%s", prefix, number(p), p.Protocol)
			v[port], v[port+"_PROTO"], v[port+"_PORT"], v[port+"_ADDR"] = url, protocol, number(p), ip
		}
	}, spec.ProxyEnvironmentContainerLinks)

	// The variables hold the ports of the Service itself, not those of its endpoints.
	portsTold = rule.New("environment-ports-of-service", func(svc *corev1.Service) []corev1.ServicePort {
		return svc.Spec.Ports
	}, spec.ProxyEnvironmentClusterIP, spec.ProxyEnvironmentContainerLinks)

	portOfService = rule.New("environment-first-port", func(ports []corev1.ServicePort) corev1.ServicePort {
		return ports[0]
	}, spec.ProxyEnvironmentClusterIP)

	// An IPv6 address stands in brackets before a port.
	hostAndPort = rule.New("environment-host-and-port", net.JoinHostPort, spec.ProxyEnvironmentContainerLinks)

	variableName = rule.New("environment-variable-name", func(name string) string {
		return strings.ToUpper(strings.ReplaceAll(name, "-", "_"))
	}, spec.ProxyEnvironmentNames)
)

func number(p corev1.ServicePort) string { return strconv.Itoa(int(p.Port)) }
