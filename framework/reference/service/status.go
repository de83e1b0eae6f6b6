package service

import (
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/utils/ptr"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

var (
	ingressPath = statusPath.Child("loadBalancer", "ingress")
	ipModes     = []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP}
)

// defaultIPMode: an address of a load balancer is a virtual IP by default.
func (r *Rules) defaultIPMode(svc *corev1.Service) {
	if !isLoadBalancer(svc) {
		return
	}
	for i := range svc.Status.LoadBalancer.Ingress {
		if ingress := &svc.Status.LoadBalancer.Ingress[i]; ingress.IP != "" && ingress.IPMode == nil {
			ingress.IPMode = ptr.To(corev1.LoadBalancerIPModeVIP)
			if r.faults.On(fault.IPModeDefaultProxy) {
				ingress.IPMode = ptr.To(corev1.LoadBalancerIPModeProxy)
			}
		}
	}
}

// clearLoadBalancerStatus: a Service that is no load balancer has no status of one.
func (r *Rules) clearLoadBalancerStatus(svc *corev1.Service) {
	if !isLoadBalancer(svc) && !r.faults.On(fault.IngressNotCleared) {
		svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
	}
}

// dropStatus is where faults lose parts of a status that is written.
func (r *Rules) dropStatus(svc, old *corev1.Service) {
	ingress := svc.Status.LoadBalancer.Ingress
	if r.faults.On(fault.ConditionsDropped) {
		svc.Status.Conditions = old.Status.Conditions
	}
	if len(ingress) > 1 && r.faults.On(fault.IngressFirstOnly) {
		svc.Status.LoadBalancer.Ingress = ingress[:1]
	}
	for i := range ingress {
		if r.faults.On(fault.PortStatusDropped) {
			ingress[i].Ports = nil
		}
	}
}

// validateStatusUpdate holds the rules for a change of the status.
func (r *Rules) validateStatusUpdate(svc, old *corev1.Service) field.ErrorList {
	errs := r.validateMetadataUpdate(svc, old)
	errs = append(errs, r.validateLoadBalancerStatus(svc, old)...)
	return append(errs, r.validateConditions(svc, old)...)
}

// validateLoadBalancerStatus: only a load balancer has ingress points. Those that are stored may stay as they are.
func (r *Rules) validateLoadBalancerStatus(svc, old *corev1.Service) (errs field.ErrorList) {
	ingress := svc.Status.LoadBalancer.Ingress
	if len(ingress) > 0 && !isLoadBalancer(svc) && !r.faults.On(fault.IngressAnyType) {
		return field.ErrorList{field.Forbidden(ingressPath, "may only be used when `spec.type` is 'LoadBalancer'")}
	}
	var storedIPs []string
	for i := range old.Status.LoadBalancer.Ingress {
		storedIPs = append(storedIPs, old.Status.LoadBalancer.Ingress[i].IP)
	}
	for i := range ingress {
		path := ingressPath.Index(i)
		if ingress[i].IP == "" && r.faults.On(fault.IngressHostnameAlone) {
			errs = append(errs, field.Required(path.Child("ip"), ""))
		}
		errs = append(errs, r.validateIngressIP(ingress[i].IP, path.Child("ip"), storedIPs)...)
		errs = append(errs, r.validateIPMode(&ingress[i], path.Child("ipMode"))...)
		errs = append(errs, r.validateIngressHostname(ingress[i].Hostname, path.Child("hostname"))...)
		errs = append(errs, r.validatePortStatus(ingress[i].Ports, path.Child("ports"))...)
	}
	return errs
}

// validateIngressIP: the address of an ingress point is one.
func (r *Rules) validateIngressIP(ip string, path *field.Path, stored []string) field.ErrorList {
	if ip == "" || r.faults.On(fault.IngressIPUnchecked) {
		return nil
	}
	if addr, ok := parseIP(ip); ok && addr.Is6() && r.faults.On(fault.IngressIPv4Only) {
		return field.ErrorList{field.Invalid(path, ip, "must be an IPv4 address")}
	}
	return validation.IsValidIPForLegacyField(path, ip, r.strictIPs() && !r.faults.On(fault.IngressIPSloppy), r.kept(stored))
}

// validateIPMode: the mode says how packets to an address arrive, so there is one exactly if there is an address.
func (r *Rules) validateIPMode(ingress *corev1.LoadBalancerIngress, path *field.Path) field.ErrorList {
	switch {
	case ingress.IPMode == nil:
		if ingress.IP != "" {
			return field.ErrorList{field.Required(path, "must be specified when `ip` is set")}
		}
	case ingress.IP == "" && r.faults.On(fault.IPModeWithoutIP), r.faults.On(fault.IPModeUnchecked):
	case ingress.IP == "":
		return field.ErrorList{field.Forbidden(path, "may not be specified when `ip` is not set")}
	case !slices.Contains(ipModes, *ingress.IPMode) || *ingress.IPMode == corev1.LoadBalancerIPModeProxy && r.faults.On(fault.IPModeVIPOnly):
		return field.ErrorList{field.NotSupported(path, *ingress.IPMode, ipModes)}
	}
	return nil
}

// validateIngressHostname: the hostname of an ingress point is a DNS name, and no address.
func (r *Rules) validateIngressHostname(hostname string, path *field.Path) (errs field.ErrorList) {
	if hostname == "" || r.faults.On(fault.IngressHostnameUnchecked) {
		return nil
	}
	for _, msg := range validation.IsDNS1123Subdomain(hostname) {
		errs = append(errs, field.Invalid(path, hostname, msg))
	}
	if _, isIP := parseIP(hostname); isIP {
		errs = append(errs, field.Invalid(path, hostname, "must be a DNS name, not an IP address"))
	}
	return errs
}

// portErrorSyntax is the syntax of the error of a port: a name with an optional DNS prefix, as the schema of PortStatus has it.
var portErrorSyntax = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

// maxPortErrorLength is a DNS name, a slash and a label.
const maxPortErrorLength = 316

// validatePortStatus: the status of a port names the port and its protocol, and an error has the form of a name.
func (r *Rules) validatePortStatus(ports []corev1.PortStatus, path *field.Path) (errs field.ErrorList) {
	if r.faults.On(fault.PortStatusUnchecked) {
		return nil
	}
	for i := range ports {
		port, path := &ports[i], path.Index(i)
		errs = append(errs, r.validatePortNumber(port.Port, path.Child("port"))...)
		errs = append(errs, r.validateProtocol(port.Protocol, path.Child("protocol"))...)
		if port.Error == nil {
			continue
		}
		if len(*port.Error) > maxPortErrorLength {
			errs = append(errs, field.TooLong(path.Child("error"), *port.Error, maxPortErrorLength))
		} else if !portErrorSyntax.MatchString(*port.Error) || strings.Contains(*port.Error, "/") && r.faults.On(fault.PortErrorBuiltInOnly) {
			errs = append(errs, field.Invalid(path.Child("error"), *port.Error, "must be a CamelCase name, or foo.example.com/CamelCase"))
		}
	}
	return errs
}

// validateConditions: conditions are complete and each type occurs once. Those that are stored may stay as they are.
func (r *Rules) validateConditions(svc, old *corev1.Service) field.ErrorList {
	if apiequality.Semantic.DeepEqual(svc.Status.Conditions, old.Status.Conditions) || r.faults.On(fault.ConditionsUnchecked) {
		return nil
	}
	return metav1validation.ValidateConditions(svc.Status.Conditions, statusPath.Child("conditions"))
}
