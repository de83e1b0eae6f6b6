package service

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

var (
	portsPath = specPath.Child("ports")
	protocols = []corev1.Protocol{corev1.ProtocolSCTP, corev1.ProtocolTCP, corev1.ProtocolUDP}
)

// Defaults of a port.
var (
	protocolDefault = rule.New("protocol-default", func(svc *corev1.Service, i int) {
		if port := &svc.Spec.Ports[i]; port.Protocol == "" {
			port.Protocol = corev1.ProtocolTCP
		}
	}, spec.APIPortProtocolDefault)

	targetPortDefault = rule.New("target-port-default", func(svc *corev1.Service, i int) {
		if port := &svc.Spec.Ports[i]; namesNoTargetPort(port) {
			port.TargetPort = intstr.FromInt32(port.Port)
		}
	}, spec.APITargetPortDefault, spec.APITargetPortKinds)
)

func namesNoTargetPort(port *corev1.ServicePort) bool {
	return port.TargetPort == intstr.FromInt32(0) || port.TargetPort == intstr.FromString("")
}

// Rules for all ports of a Service.
var (
	// A Service without a virtual IP may have no port.
	portsNeeded = rule.New("ports-needed", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if len(svc.Spec.Ports) == 0 && hasClusterIP(svc) && !isHeadless(svc) {
			return field.ErrorList{field.Required(portsPath, "")}
		}
		return nil
	}, spec.APIPortsNeeded)

	eachPortValid = rule.New("each-port-valid", func(r *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		for i := range svc.Spec.Ports {
			for j := range r.portChecks {
				errs = append(errs, r.portChecks[j].Do(r, svc, i)...)
			}
		}
		return errs
	}, spec.APIPortsList, spec.APILoadBalancerMixedProtocols)

	portsDistinct = rule.New("ports-distinct", func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
		type key struct {
			protocol corev1.Protocol
			port     int32
		}
		seen := make(map[key]bool, len(svc.Spec.Ports))
		for i := range svc.Spec.Ports {
			k := key{svc.Spec.Ports[i].Protocol, svc.Spec.Ports[i].Port}
			if seen[k] {
				errs = append(errs, repeatedPort(svc, i))
			}
			seen[k] = true
		}
		return errs
	}, spec.APIPortsDistinct)
)

func repeatedPort(svc *corev1.Service, i int) *field.Error {
	port := &svc.Spec.Ports[i]
	return field.Duplicate(portsPath.Index(i), corev1.ServicePort{Protocol: port.Protocol, Port: port.Port})
}

// Rules for one port.
var (
	// The name may be missing only if there is one port.
	portNameNeeded = rule.New("port-name-needed", func(_ *Rules, svc *corev1.Service, i int) field.ErrorList {
		if svc.Spec.Ports[i].Name == "" && len(svc.Spec.Ports) > 1 {
			return nameRequired(i)
		}
		return nil
	}, spec.APIPortNameOptional)

	portNameSyntax = rule.New("port-name-syntax", portNameOf(validation.IsDNS1123Label), spec.APIPortNameSyntax)

	portNamesUnique = rule.New("port-names-unique", func(_ *Rules, svc *corev1.Service, i int) field.ErrorList {
		name := svc.Spec.Ports[i].Name
		if name != "" && slices.ContainsFunc(svc.Spec.Ports[:i], func(p corev1.ServicePort) bool { return p.Name == name }) {
			return field.ErrorList{field.Duplicate(portNamePath(i), name)}
		}
		return nil
	}, spec.APIPortNamesUnique)

	portValid = rule.New("port-valid", func(r *Rules, svc *corev1.Service, i int) field.ErrorList {
		return r.portNumber.Do(svc.Spec.Ports[i].Port, portsPath.Index(i).Child("port"))
	}, spec.APIPortValues, spec.APIPortRequired, spec.AllocAnyPort)

	portProtocolValid = rule.New("port-protocol-valid", func(r *Rules, svc *corev1.Service, i int) field.ErrorList {
		return r.protocolKnown.Do(svc.Spec.Ports[i].Protocol, portsPath.Index(i).Child("protocol"))
	}, spec.APIPortProtocolValues)

	// With a headless Service a target port is ignored, and so may differ from the port.
	targetPortNumber = rule.New("target-port-number", func(r *Rules, svc *corev1.Service, i int) field.ErrorList {
		if target := &svc.Spec.Ports[i].TargetPort; target.Type == intstr.Int {
			return r.portNumber.Do(target.IntVal, targetPortPath(i))
		}
		return nil
	}, spec.APITargetPortNumber, spec.APITargetPortHeadless)

	targetPortName = rule.New("target-port-name", targetPortNameOf(validation.IsValidPortName), spec.APITargetPortName)

	// Names are not checked against any registry.
	appProtocolSyntax = rule.New("app-protocol-syntax", func(_ *Rules, svc *corev1.Service, i int) field.ErrorList {
		if protocol := svc.Spec.Ports[i].AppProtocol; protocol != nil {
			return validateQualifiedName(*protocol, appProtocolPath(i))
		}
		return nil
	}, spec.APIAppProtocolSyntax, spec.APIAppProtocolStandardNames, spec.APIAppProtocolKubernetesNames, spec.APIAppProtocolPrefixedNames)
)

// Rules for numbers and protocols, of a Service and of its status.
var (
	// A port is 1 to 65535.
	portNumber = rule.New("port-number", func(port int32, path *field.Path) (errs field.ErrorList) {
		for _, msg := range validation.IsValidPortNum(int(port)) {
			errs = append(errs, field.Invalid(path, port, msg))
		}
		return errs
	}, spec.APIPortValues, spec.APIPortRequired, spec.APITargetPortNumber, spec.APIStatusIngressPortRequired)

	protocolKnown = rule.New("protocol-known", func(protocol corev1.Protocol, path *field.Path) field.ErrorList {
		switch {
		case protocol == "":
			return field.ErrorList{field.Required(path, "")}
		case !slices.Contains(protocols, protocol):
			return unknownProtocol(protocol, path)
		}
		return nil
	}, spec.APIPortProtocolValues, spec.APIStatusIngressPortProtocol)
)

func unknownProtocol(protocol corev1.Protocol, path *field.Path) field.ErrorList {
	return field.ErrorList{field.NotSupported(path, protocol, protocols)}
}

func portNamePath(i int) *field.Path    { return portsPath.Index(i).Child("name") }
func targetPortPath(i int) *field.Path  { return portsPath.Index(i).Child("targetPort") }
func appProtocolPath(i int) *field.Path { return portsPath.Index(i).Child("appProtocol") }

func nameRequired(i int) field.ErrorList {
	return field.ErrorList{field.Required(portNamePath(i), "")}
}

// portNameOf makes a rule: the name of a port, if it has one, has this syntax.
func portNameOf(syntax func(string) []string) portChecking {
	return func(_ *Rules, svc *corev1.Service, i int) (errs field.ErrorList) {
		name := svc.Spec.Ports[i].Name
		if name == "" {
			return nil
		}
		for _, msg := range syntax(name) {
			errs = append(errs, field.Invalid(portNamePath(i), name, msg))
		}
		return errs
	}
}

// targetPortNameOf makes a rule: a target port that is a name has this syntax.
func targetPortNameOf(syntax func(string) []string) portChecking {
	return func(_ *Rules, svc *corev1.Service, i int) (errs field.ErrorList) {
		target := &svc.Spec.Ports[i].TargetPort
		if target.Type == intstr.Int {
			return nil
		}
		for _, msg := range syntax(target.StrVal) {
			errs = append(errs, field.Invalid(targetPortPath(i), target.StrVal, msg))
		}
		return errs
	}
}

// validateQualifiedName: the syntax of a label key, a name with an optional DNS prefix.
func validateQualifiedName(name string, path *field.Path) (errs field.ErrorList) {
	for _, msg := range validation.IsQualifiedName(name) {
		errs = append(errs, field.Invalid(path, name, msg))
	}
	return errs
}
