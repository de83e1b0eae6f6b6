package service

import (
	"cmp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

var (
	portsPath = specPath.Child("ports")
	protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
)

// defaultPorts: the protocol is TCP and the target port is the port by default.
func (r *Rules) defaultPorts(svc *corev1.Service) {
	for i := range svc.Spec.Ports {
		port := &svc.Spec.Ports[i]
		if port.Port == 0 && r.faults.On(fault.PortDefault80) {
			port.Port = 80
		}
		if port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
			if r.faults.On(fault.ProtocolDefaultUDP) {
				port.Protocol = corev1.ProtocolUDP
			}
		}
		if port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("") {
			port.TargetPort = intstr.FromInt32(port.Port)
			if r.faults.On(fault.TargetPortOfFirst) {
				port.TargetPort = intstr.FromInt32(svc.Spec.Ports[0].Port)
			}
		}
		if port.TargetPort.Type == intstr.String && r.faults.On(fault.TargetPortNameLost) {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}
	if r.faults.On(fault.PortsSorted) {
		slices.SortStableFunc(svc.Spec.Ports, func(a, b corev1.ServicePort) int { return cmp.Compare(a.Port, b.Port) })
	}
}

// validatePortsPresent: there is a port, unless the Service has no virtual IP.
func (r *Rules) validatePortsPresent(svc *corev1.Service) field.ErrorList {
	needed := hasClusterIP(svc) && !isHeadless(svc) && !r.faults.On(fault.PortsOptional) || r.faults.On(fault.PortsAlwaysNeeded)
	if len(svc.Spec.Ports) == 0 && needed {
		return field.ErrorList{field.Required(portsPath, "")}
	}
	return nil
}

// validatePorts holds the rules for each entry of ports.
func (r *Rules) validatePorts(svc *corev1.Service) (errs field.ErrorList) {
	if isLoadBalancer(svc) && r.faults.On(fault.BalancerSingleProtocol) {
		for i := range svc.Spec.Ports {
			if svc.Spec.Ports[i].Protocol != svc.Spec.Ports[0].Protocol {
				errs = append(errs, field.Invalid(portsPath.Index(i).Child("protocol"), svc.Spec.Ports[i].Protocol, "all ports must have one protocol"))
			}
		}
	}
	for i := range svc.Spec.Ports {
		port, path := &svc.Spec.Ports[i], portsPath.Index(i)
		errs = append(errs, r.validatePortName(svc, i)...)
		errs = append(errs, r.validatePortNumber(port.Port, path.Child("port"))...)
		errs = append(errs, r.validateProtocol(port.Protocol, path.Child("protocol"))...)
		errs = append(errs, r.validateTargetPort(port.TargetPort, path.Child("targetPort"))...)
		if isHeadless(svc) && port.TargetPort != intstr.FromInt32(port.Port) && r.faults.On(fault.TargetPortSameNoVIP) {
			errs = append(errs, field.Invalid(path.Child("targetPort"), port.TargetPort.String(), "must be the port"))
		}
		errs = append(errs, r.validateAppProtocol(port.AppProtocol, path.Child("appProtocol"))...)
	}
	return errs
}

// validatePortName: a name is a DNS label, is unique in the Service, and may be missing only if there is one port.
func (r *Rules) validatePortName(svc *corev1.Service, i int) (errs field.ErrorList) {
	name, path := svc.Spec.Ports[i].Name, portsPath.Index(i).Child("name")
	if name == "" {
		if len(svc.Spec.Ports) > 1 && !r.faults.On(fault.PortNameNever) || r.faults.On(fault.PortNameAlways) {
			errs = append(errs, field.Required(path, ""))
		}
		return errs
	}
	syntax := validation.IsDNS1123Label
	if r.faults.On(fault.PortNameDots) {
		syntax = validation.IsDNS1123Subdomain
	}
	if r.faults.On(fault.PortNameShort) {
		syntax = validation.IsValidPortName
	}
	for _, msg := range syntax(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	if !r.faults.On(fault.PortNamesRepeated) && slices.ContainsFunc(svc.Spec.Ports[:i], func(p corev1.ServicePort) bool { return p.Name == name }) {
		errs = append(errs, field.Duplicate(path, name))
	}
	return errs
}

// validatePortNumber: a port is 1 to 65535.
func (r *Rules) validatePortNumber(port int32, path *field.Path) (errs field.ErrorList) {
	if r.faults.On(fault.PortNumberUnchecked) {
		return nil
	}
	if port == 65535 && r.faults.On(fault.PortNumberBelow65535) {
		errs = append(errs, field.Invalid(path, port, "must be less than 65535"))
	}
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
	case r.faults.On(fault.ProtocolUnchecked):
	case !slices.Contains(protocols, protocol) || protocol == corev1.ProtocolSCTP && r.faults.On(fault.SCTPRefused):
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
	syntax := validation.IsValidPortName
	if r.faults.On(fault.TargetPortAnyLabel) {
		syntax = validation.IsDNS1123Label
	}
	if port.StrVal != "" && port.StrVal[0] <= '9' && r.faults.On(fault.TargetPortLetterFirst) {
		errs = append(errs, field.Invalid(path, port.StrVal, "must begin with a letter"))
	}
	for _, msg := range syntax(port.StrVal) {
		errs = append(errs, field.Invalid(path, port.StrVal, msg))
	}
	return errs
}

// validateAppProtocol: an application protocol has the syntax of a label key. Names are not checked against any registry.
func (r *Rules) validateAppProtocol(protocol *string, path *field.Path) field.ErrorList {
	if protocol == nil || r.faults.On(fault.AppProtocolUnchecked) {
		return nil
	}
	prefix, _, prefixed := strings.Cut(*protocol, "/")
	kubernetes := prefixed && prefix == "kubernetes.io"
	if *protocol != strings.ToLower(*protocol) && r.faults.On(fault.AppProtocolLowerCase) || !prefixed && r.faults.On(fault.AppProtocolPrefixNeeded) ||
		prefixed && !kubernetes && r.faults.On(fault.AppProtocolNoForeign) || kubernetes && r.faults.On(fault.AppProtocolNoKubernetes) {
		return field.ErrorList{field.Invalid(path, *protocol, "is not known")}
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
		if r.faults.On(fault.PortsDistinctByNumber) {
			k.protocol = ""
		}
		if seen[k] && !r.faults.On(fault.PortsRepeated) {
			errs = append(errs, field.Duplicate(portsPath.Index(i), corev1.ServicePort{Protocol: port.Protocol, Port: port.Port}))
		}
		seen[k] = true
	}
	return errs
}
