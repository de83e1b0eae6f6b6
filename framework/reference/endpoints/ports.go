package endpoints

import (
	"cmp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// ports are the ports of the Service as the pod has them.
func (t *task) ports(pod *corev1.Pod) (ports []discoveryv1.EndpointPort) {
	for i := range t.Service.Spec.Ports {
		p := t.Service.Spec.Ports[i]
		number := t.targetPort(&p, pod)
		if number == 0 {
			continue
		}
		port := discoveryv1.EndpointPort{Protocol: &p.Protocol, Port: &number}
		for j := range t.portFields {
			t.portFields[j].Do(t.Service, &p, &port)
		}
		ports = append(ports, port)
	}
	return ports
}

// targetPort is the number of a Service port at a pod; 0 if the pod does not have the port.
func (t *task) targetPort(p *corev1.ServicePort, pod *corev1.Pod) int32 {
	if p.TargetPort.Type == intstr.Int {
		return t.numberedTarget.Do(t, p, pod)
	}
	return t.namedTarget.Do(t, p, pod)
}

// Rules for the ports of an endpoint.
var (
	portNamed = rule.New("endpoints-port-named-as-in-service", func(_ *corev1.Service, p *corev1.ServicePort, port *discoveryv1.EndpointPort) {
		port.Name = &p.Name
	}, spec.ProxySlicePortNames)

	appProtocolCopied = rule.New("endpoints-app-protocol-copied", func(_ *corev1.Service, p *corev1.ServicePort, port *discoveryv1.EndpointPort) {
		port.AppProtocol = p.AppProtocol
	}, spec.ProxySliceAppProtocol)

	// A targetPort that is no name is a number, and 0 stands for the Service port.
	numberedTarget = rule.New("endpoints-target-port-number", func(_ *task, p *corev1.ServicePort, _ *corev1.Pod) int32 {
		return cmp.Or(p.TargetPort.IntVal, p.Port)
	}, spec.ProxyTargetPortNumber)

	// A targetPort that is a name has the number that each pod gives the name.
	namedTarget = rule.New("endpoints-target-port-name", func(_ *task, p *corev1.ServicePort, pod *corev1.Pod) int32 {
		return containerPort(pod, p.TargetPort.StrVal, p.Protocol)
	}, spec.ProxyTargetPortName, spec.ProxyTargetPortNameLacking)
)

// containerPort is the number of the port that a container of the pod, or a sidecar, gives the name; 0 if none does.
func containerPort(pod *corev1.Pod, name string, protocol corev1.Protocol) int32 {
	containers := slices.Clone(pod.Spec.Containers)
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			containers = append(containers, c)
		}
	}
	for _, c := range containers {
		for _, p := range c.Ports {
			if p.Name == name && cmp.Or(p.Protocol, corev1.ProtocolTCP) == cmp.Or(protocol, corev1.ProtocolTCP) {
				return p.ContainerPort
			}
		}
	}
	return 0
}

// samePorts reports whether two lists hold the same ports in any order.
func samePorts(a, b []discoveryv1.EndpointPort) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !slices.ContainsFunc(b, func(p discoveryv1.EndpointPort) bool { return samePort(&a[i], &p) }) {
			return false
		}
	}
	return true
}

func samePort(a, b *discoveryv1.EndpointPort) bool {
	return same(a.Name, b.Name) && same(a.Protocol, b.Protocol) && same(a.Port, b.Port) && same(a.AppProtocol, b.AppProtocol)
}

func same[T comparable](a, b *T) bool {
	return a == nil && b == nil || a != nil && b != nil && *a == *b
}
