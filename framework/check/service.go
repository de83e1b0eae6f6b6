package check

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// ServiceOption shapes the Service that a check sends.
type ServiceOption func(*corev1.Service)

// Service returns a Service with one port, 80/TCP, and the selector app=<name>, shaped by the options. Nothing else is set:
// what the server fills in is the server's.
func Service(name string, options ...ServiceOption) *corev1.Service {
	svc := &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}, Selector: map[string]string{"app": name}},
	}
	for _, o := range options {
		o(svc)
	}
	return svc
}

// InNamespace puts the Service into a namespace other than the check's.
func InNamespace(namespace string) ServiceOption {
	return func(s *corev1.Service) { s.Namespace = namespace }
}

// LabelProxyName is the label of Services that another service proxy than the usual one serves (KEP-2447).
const LabelProxyName = "service.kubernetes.io/service-proxy-name"

// Unserved lets nobody do anything for the Service: it has no selector, and names a proxy that there is not. A check that makes thousands for their addresses keeps
// controllers and proxies of a cluster from following each of them.
func Unserved() ServiceOption {
	return func(s *corev1.Service) {
		s.Spec.Selector = nil
		if s.Labels == nil {
			s.Labels = map[string]string{}
		}
		s.Labels[LabelProxyName] = "service-conformance-none"
	}
}

// OfType sets spec.type.
func OfType(t corev1.ServiceType) ServiceOption { return func(s *corev1.Service) { s.Spec.Type = t } }

// WithClusterIP sets spec.clusterIP.
func WithClusterIP(ip string) ServiceOption { return func(s *corev1.Service) { s.Spec.ClusterIP = ip } }

// WithClusterIPs sets spec.clusterIPs and, from its first element, spec.clusterIP.
func WithClusterIPs(ips ...string) ServiceOption {
	return func(s *corev1.Service) { s.Spec.ClusterIP, s.Spec.ClusterIPs = ips[0], ips }
}

// Headless sets spec.clusterIP to None.
func Headless() ServiceOption { return WithClusterIP(corev1.ClusterIPNone) }

// ExternalName makes the Service an alias: type ExternalName, without ports.
func ExternalName(name string) ServiceOption {
	return func(s *corev1.Service) {
		s.Spec.Type, s.Spec.ExternalName, s.Spec.Ports, s.Spec.Selector = corev1.ServiceTypeExternalName, name, nil, nil
	}
}

// WithPolicy sets spec.ipFamilyPolicy.
func WithPolicy(p corev1.IPFamilyPolicy) ServiceOption {
	return func(s *corev1.Service) { s.Spec.IPFamilyPolicy = &p }
}

// WithFamilies sets spec.ipFamilies.
func WithFamilies(f ...corev1.IPFamily) ServiceOption {
	return func(s *corev1.Service) { s.Spec.IPFamilies = f }
}

// WithPorts replaces the ports.
func WithPorts(ports ...corev1.ServicePort) ServiceOption {
	return func(s *corev1.Service) { s.Spec.Ports = ports }
}

// Port returns a port of a Service; target is omitted if it is 0.
func Port(name string, protocol corev1.Protocol, port int32, target int) corev1.ServicePort {
	p := corev1.ServicePort{Name: name, Protocol: protocol, Port: port}
	if target != 0 {
		p.TargetPort = intstr.FromInt32(int32(target))
	}
	return p
}

// With applies any change.
func With(change func(*corev1.Service)) ServiceOption { return change }
