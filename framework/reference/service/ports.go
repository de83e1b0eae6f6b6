package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	portsPath = specPath.Child("ports")
	protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
)

// defaultPorts: the protocol is TCP and the target port is the port by default.
func (r *Rules) defaultPorts(svc *corev1.Service) {
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
}

// validatePortsPresent: there is a port, unless the Service has no virtual IP.
func (r *Rules) validatePortsPresent(svc *corev1.Service) field.ErrorList {
	if len(svc.Spec.Ports) == 0 && hasClusterIP(svc) && !isHeadless(svc) {
		return field.ErrorList{field.Required(portsPath, "")}
	}
	return nil
}

// validatePorts holds the rules for each entry of ports.
func (r *Rules) validatePorts(svc *corev1.Service) (errs field.ErrorList) {
	for i := range svc.Spec.Ports {
		port, path := &svc.Spec.Ports[i], portsPath.Index(i)
		errs = append(errs, r.validatePortName(svc, i)...)
		errs = append(errs, r.validatePortNumber(port.Port, path.Child("port"))...)
		errs = append(errs, r.validateProtocol(port.Protocol, path.Child("protocol"))...)
		errs = append(errs, r.validateTargetPort(port.TargetPort, path.Child("targetPort"))...)
		errs = append(errs, r.validateAppProtocol(port.AppProtocol, path.Child("appProtocol"))...)
	}
	return errs
}

// validatePortName: a name is a DNS label, is unique in the Service, and may be missing only if there is one port.
func (r *Rules) validatePortName(svc *corev1.Service, i int) (errs field.ErrorList) {
	name, path := svc.Spec.Ports[i].Name, portsPath.Index(i).Child("name")
	if name == "" {
		if len(svc.Spec.Ports) > 1 {
			errs = append(errs, field.Required(path, ""))
		}
		return errs
	}
	for _, msg := range validation.IsDNS1123Label(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	if slices.ContainsFunc(svc.Spec.Ports[:i], func(p corev1.ServicePort) bool { return p.Name == name }) {
		errs = append(errs, field.Duplicate(path, name))
	}
	return errs
}

// validatePortNumber: a port is 1 to 65535.
func (r *Rules) validatePortNumber(port int32, path *field.Path) (errs field.ErrorList) {
	for _, msg := range validation.IsValidPortNum(int(port)) {
		errs = append(errs, field.Invalid(path, port, msg))
	}
	return errs
}

// validateProtocol: a protocol is TCP, UDP or SCTP.
func (r *Rules) validateProtocol(protocol corev1.Protocol, path *field.Path) field.ErrorList {
	switch {
	case protocol == "":
		return field.ErrorList{field.Required(path, "")}
	case !slices.Contains(protocols, protocol):
		return field.ErrorList{field.NotSupported(path, protocol, protocols)}
	}
	return nil
}

// validateTargetPort: a target port is a number 1 to 65535 or an IANA service name. With a headless Service it is ignored,
// and so may differ from the port.
func (r *Rules) validateTargetPort(port intstr.IntOrString, path *field.Path) (errs field.ErrorList) {
	if port.Type == intstr.Int {
		return r.validatePortNumber(port.IntVal, path)
	}
	for _, msg := range validation.IsValidPortName(port.StrVal) {
		errs = append(errs, field.Invalid(path, port.StrVal, msg))
	}
	return errs
}

// validateAppProtocol: an application protocol has the syntax of a label key. Names are not checked against any registry.
func (r *Rules) validateAppProtocol(protocol *string, path *field.Path) field.ErrorList {
	if protocol == nil {
		return nil
	}
	return validateQualifiedName(*protocol, path)
}

// validateQualifiedName: the syntax of a label key, a name with an optional DNS prefix.
func validateQualifiedName(name string, path *field.Path) (errs field.ErrorList) {
	for _, msg := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}

// validatePortsUnique: each pair of port and protocol occurs once.
func (r *Rules) validatePortsUnique(svc *corev1.Service) (errs field.ErrorList) {
	type key struct {
		protocol corev1.Protocol
		port     int32
	}
	seen := make(map[key]bool, len(svc.Spec.Ports))
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		k := key{port.Protocol, port.Port}
		if seen[k] {
			errs = append(errs, field.Duplicate(portsPath.Index(i), corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}))
		}
		seen[k] = true
	}
	return errs
}
