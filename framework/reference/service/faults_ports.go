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

// What can be wrong with ports.
var portFaults = []wrong{
	{fault.PortDefault80, func(b *book) {
		b.portDefaults = before(b.portDefaults, protocolDefault, func(svc *corev1.Service, i int) {
			if svc.Spec.Ports[i].Port == 0 {
				svc.Spec.Ports[i].Port = 80
			}
		})
	}},
	{fault.ProtocolDefaultUDP, func(b *book) {
		at(b.portDefaults, protocolDefault).Replace(func(svc *corev1.Service, i int) {
			if port := &svc.Spec.Ports[i]; port.Protocol == "" {
				port.Protocol = corev1.ProtocolUDP
			}
		})
	}},
	{fault.TargetPortOfFirst, func(b *book) {
		at(b.portDefaults, targetPortDefault).Replace(func(svc *corev1.Service, i int) {
			if port := &svc.Spec.Ports[i]; namesNoTargetPort(port) {
				port.TargetPort = intstr.FromInt32(svc.Spec.Ports[0].Port)
			}
		})
	}},
	{fault.TargetPortNameLost, func(b *book) {
		b.portDefaults = after(b.portDefaults, targetPortDefault, func(svc *corev1.Service, i int) {
			if port := &svc.Spec.Ports[i]; port.TargetPort.Type == intstr.String {
				port.TargetPort = intstr.FromInt32(port.Port)
			}
		})
	}},
	{fault.PortsSorted, func(b *book) {
		b.defaults = append(b.defaults, bug(func(svc *corev1.Service) {
			slices.SortStableFunc(svc.Spec.Ports, func(a, b corev1.ServicePort) int { return cmp.Compare(a.Port, b.Port) })
		}))
	}},

	{fault.PortsOptional, func(b *book) { at(b.checks, portsNeeded).Off() }},
	{fault.PortsAlwaysNeeded, func(b *book) {
		at(b.checks, portsNeeded).Replace(func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
			if len(svc.Spec.Ports) == 0 {
				return field.ErrorList{field.Required(portsPath, "")}
			}
			return nil
		})
	}},
	{fault.BalancerSingleProtocol, func(b *book) {
		b.checks = before(b.checks, eachPortValid, func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
			for i := range svc.Spec.Ports {
				if isLoadBalancer(svc) && svc.Spec.Ports[i].Protocol != svc.Spec.Ports[0].Protocol {
					errs = append(errs, field.Invalid(portsPath.Index(i).Child("protocol"), svc.Spec.Ports[i].Protocol, "all ports must have one protocol"))
				}
			}
			return errs
		})
	}},
	{fault.PortsDistinctByNumber, func(b *book) {
		at(b.checks, portsDistinct).Replace(func(_ *Rules, svc, _ *corev1.Service) (errs field.ErrorList) {
			for i := range svc.Spec.Ports {
				number := svc.Spec.Ports[i].Port
				if slices.ContainsFunc(svc.Spec.Ports[:i], func(p corev1.ServicePort) bool { return p.Port == number }) {
					errs = append(errs, repeatedPort(svc, i))
				}
			}
			return errs
		})
	}},
	{fault.PortsRepeated, func(b *book) { at(b.checks, portsDistinct).Off() }},

	{fault.PortNameNever, func(b *book) { at(b.portChecks, portNameNeeded).Off() }},
	{fault.PortNameAlways, func(b *book) {
		at(b.portChecks, portNameNeeded).Replace(func(_ *Rules, svc *corev1.Service, i int) field.ErrorList {
			if svc.Spec.Ports[i].Name == "" {
				return nameRequired(i)
			}
			return nil
		})
	}},
	{fault.PortNameDots, func(b *book) { at(b.portChecks, portNameSyntax).Replace(portNameOf(validation.IsDNS1123Subdomain)) }},
	{fault.PortNameShort, func(b *book) { at(b.portChecks, portNameSyntax).Replace(portNameOf(validation.IsValidPortName)) }},
	{fault.PortNamesRepeated, func(b *book) { at(b.portChecks, portNamesUnique).Off() }},

	{fault.PortNumberBelow65535, func(b *book) {
		b.portNumber.Wrap(func(right numberChecking) numberChecking {
			return func(port int32, path *field.Path) (errs field.ErrorList) {
				if port == 65535 {
					errs = append(errs, field.Invalid(path, port, "must be less than 65535"))
				}
				return append(errs, right(port, path)...)
			}
		})
	}},
	{fault.PortNumberUnchecked, func(b *book) { b.portNumber.Off() }},
	{fault.SCTPRefused, func(b *book) {
		b.protocolKnown.Wrap(func(right protocolChecking) protocolChecking {
			return func(protocol corev1.Protocol, path *field.Path) field.ErrorList {
				if protocol == corev1.ProtocolSCTP {
					return unknownProtocol(protocol, path)
				}
				return right(protocol, path)
			}
		})
	}},
	{fault.ProtocolUnchecked, func(b *book) {
		b.protocolKnown.Replace(func(protocol corev1.Protocol, path *field.Path) field.ErrorList {
			if protocol == "" {
				return field.ErrorList{field.Required(path, "")}
			}
			return nil
		})
	}},

	{fault.TargetPortAnyLabel, func(b *book) { at(b.portChecks, targetPortName).Replace(targetPortNameOf(validation.IsDNS1123Label)) }},
	{fault.TargetPortLetterFirst, func(b *book) {
		b.portChecks = before(b.portChecks, targetPortName, func(_ *Rules, svc *corev1.Service, i int) field.ErrorList {
			if target := &svc.Spec.Ports[i].TargetPort; target.Type == intstr.String && target.StrVal != "" && target.StrVal[0] <= '9' {
				return field.ErrorList{field.Invalid(targetPortPath(i), target.StrVal, "must begin with a letter")}
			}
			return nil
		})
	}},
	{fault.TargetPortSameNoVIP, func(b *book) {
		b.portChecks = after(b.portChecks, targetPortName, func(_ *Rules, svc *corev1.Service, i int) field.ErrorList {
			if port := &svc.Spec.Ports[i]; isHeadless(svc) && port.TargetPort != intstr.FromInt32(port.Port) {
				return field.ErrorList{field.Invalid(targetPortPath(i), port.TargetPort.String(), "must be the port")}
			}
			return nil
		})
	}},

	{fault.AppProtocolLowerCase, refuseAppProtocol(func(protocol, _ string, _ bool) bool { return protocol != strings.ToLower(protocol) })},
	{fault.AppProtocolPrefixNeeded, refuseAppProtocol(func(_, _ string, prefixed bool) bool { return !prefixed })},
	{fault.AppProtocolNoForeign, refuseAppProtocol(func(_, prefix string, prefixed bool) bool { return prefixed && prefix != "kubernetes.io" })},
	{fault.AppProtocolNoKubernetes, refuseAppProtocol(func(_, prefix string, prefixed bool) bool { return prefixed && prefix == "kubernetes.io" })},
	{fault.AppProtocolUnchecked, func(b *book) { at(b.portChecks, appProtocolSyntax).Off() }},

	{fault.LowPortsOnly, func(b *book) {
		b.familiesDecided.Wrap(func(right allocating) allocating {
			return func(t *Transaction, svc, old *corev1.Service) error {
				if err := right(t, svc, old); err != nil || old != nil {
					return err
				}
				return refuseHighPorts(svc)
			}
		})
		b.update.Wrap(func(right updating) updating {
			return func(r *Rules, svc, old *corev1.Service, dryRun bool) (*Transaction, error) {
				if err := refuseHighPorts(svc); err != nil {
					return nil, err
				}
				return right(r, svc, old, dryRun)
			}
		})
	}},
}

// refuseAppProtocol is a fault: some application protocols are refused, by their text and the prefix that it may have.
func refuseAppProtocol(unknown func(protocol, prefix string, prefixed bool) bool) func(*book) {
	return func(b *book) {
		at(b.portChecks, appProtocolSyntax).Wrap(func(right portChecking) portChecking {
			return func(r *Rules, svc *corev1.Service, i int) field.ErrorList {
				if protocol := svc.Spec.Ports[i].AppProtocol; protocol != nil {
					prefix, _, prefixed := strings.Cut(*protocol, "/")
					if unknown(*protocol, prefix, prefixed) {
						return field.ErrorList{field.Invalid(appProtocolPath(i), *protocol, "is not known")}
					}
				}
				return right(r, svc, i)
			}
		})
	}
}

func refuseHighPorts(svc *corev1.Service) error {
	for i := range svc.Spec.Ports {
		if svc.Spec.Ports[i].Port > 32767 {
			return refusal(svc, field.ErrorList{field.Invalid(portsPath.Index(i).Child("port"), svc.Spec.Ports[i].Port, "must be at most 32767")})
		}
	}
	return nil
}
