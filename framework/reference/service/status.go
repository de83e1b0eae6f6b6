package service

import (
	"regexp"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

var (
	ingressPath = statusPath.Child("loadBalancer", "ingress")
	ipModes     = []corev1.LoadBalancerIPMode{corev1.LoadBalancerIPModeProxy, corev1.LoadBalancerIPModeVIP}
)

// An address of a load balancer is a virtual IP by default.
var ipModeDefault = rule.New("ip-mode-default", defaultIPModeOf(corev1.LoadBalancerIPModeVIP), spec.APIStatusIngressIPModeDefault)

// defaultIPModeOf makes a rule: this is the mode of an address of a load balancer if the client does not set it.
func defaultIPModeOf(mode corev1.LoadBalancerIPMode) defaulting {
	return func(svc *corev1.Service) {
		if !isLoadBalancer(svc) {
			return
		}
		for i := range svc.Status.LoadBalancer.Ingress {
			if ingress := &svc.Status.LoadBalancer.Ingress[i]; ingress.IP != "" && ingress.IPMode == nil {
				ingress.IPMode = new(mode)
			}
		}
	}
}

// What a write does with the part of a Service that it is not about.
var (
	newHasNoStatus = rule.New("new-service-has-no-status", func(_ *Rules, svc, _ *corev1.Service) {
		svc.Status = corev1.ServiceStatus{}
	}, spec.APIStatusIgnored)

	updateKeepsStatus = rule.New("update-keeps-status", func(_ *Rules, svc, old *corev1.Service) {
		svc.Status = old.Status
	}, spec.APISpecKeepsStatus, spec.APIStatusIgnored)

	statusUpdateKeepsSpec = rule.New("status-update-keeps-spec", func(_ *Rules, svc, old *corev1.Service) {
		svc.Spec = *old.Spec.DeepCopy()
	}, spec.APIStatusKeepsSpec)

	// A Service that is no load balancer has no status of one.
	balancerStatusCleared = rule.New("load-balancer-status-cleared", func(_ *Rules, svc, _ *corev1.Service) {
		if !isLoadBalancer(svc) {
			svc.Status.LoadBalancer = corev1.LoadBalancerStatus{}
		}
	}, spec.APIStatusLoadBalancerCleared)
)

// Rules for the status.
var (
	// Only a load balancer has ingress points. Those that are stored may stay as they are.
	ingressValid = rule.New("ingress-valid", func(r *Rules, svc, old *corev1.Service) (errs field.ErrorList) {
		ingress := svc.Status.LoadBalancer.Ingress
		if errs := r.ingressByType.Do(r, svc, old); len(errs) > 0 {
			return errs
		}
		var storedIPs []string
		for i := range old.Status.LoadBalancer.Ingress {
			storedIPs = append(storedIPs, old.Status.LoadBalancer.Ingress[i].IP)
		}
		for i := range ingress {
			for j := range r.ingressChecks {
				errs = append(errs, r.ingressChecks[j].Do(r, &ingress[i], ingressPath.Index(i), storedIPs)...)
			}
		}
		return errs
	}, spec.APIStatusIngress)

	ingressByType = rule.New("ingress-by-type", func(_ *Rules, svc, _ *corev1.Service) field.ErrorList {
		if len(svc.Status.LoadBalancer.Ingress) > 0 && !isLoadBalancer(svc) {
			return field.ErrorList{field.Forbidden(ingressPath, "may only be used when `spec.type` is 'LoadBalancer'")}
		}
		return nil
	}, spec.APIStatusLoadBalancerType)

	// Conditions are complete and each type occurs once. Those that are stored may stay as they are.
	conditionsValid = rule.New("conditions-valid", func(_ *Rules, svc, old *corev1.Service) field.ErrorList {
		if apiequality.Semantic.DeepEqual(svc.Status.Conditions, old.Status.Conditions) {
			return nil
		}
		return metav1validation.ValidateConditions(svc.Status.Conditions, statusPath.Child("conditions"))
	}, spec.APIStatusConditions, spec.APIStatusConditionFields, spec.APIStatusConditionTypes)
)

// Rules for one ingress point.
var (
	ingressIPSyntax = rule.New("ingress-ip-syntax", func(r *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, stored []string) field.ErrorList {
		if ingress.IP == "" {
			return nil
		}
		return validation.IsValidIPForLegacyField(path.Child("ip"), ingress.IP, r.ingressIPStrict.Do(r), r.storedStays.Do(stored))
	}, spec.APIStatusIngressIP)

	ingressIPStrict = rule.New("ingress-ip-strict", (*Rules).strictIPs, spec.APIStatusIngressIPStrict)

	// The mode says how packets to an address arrive, so there is one exactly if there is an address.
	ipModeNeeded = rule.New("ip-mode-needed", func(_ *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, _ []string) field.ErrorList {
		if ingress.IPMode == nil && ingress.IP != "" {
			return field.ErrorList{field.Required(path.Child("ipMode"), "must be specified when `ip` is set")}
		}
		return nil
	}, spec.APIStatusIngressIPModeDefault)

	ipModeNeedsIP = rule.New("ip-mode-needs-ip", func(_ *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, _ []string) field.ErrorList {
		if ingress.IPMode != nil && ingress.IP == "" {
			return field.ErrorList{field.Forbidden(path.Child("ipMode"), "may not be specified when `ip` is not set")}
		}
		return nil
	}, spec.APIStatusIngressIPMode)

	ipModeKnown = rule.New("ip-mode-known", func(_ *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, _ []string) field.ErrorList {
		if ingress.IPMode != nil && ingress.IP != "" && !slices.Contains(ipModes, *ingress.IPMode) {
			return unknownIPMode(ingress, path)
		}
		return nil
	}, spec.APIStatusIngressIPModeValues)

	// The hostname is a DNS name, and no address.
	ingressHostnameSyntax = rule.New("ingress-hostname-syntax", func(_ *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, _ []string) (errs field.ErrorList) {
		hostname, path := ingress.Hostname, path.Child("hostname")
		if hostname == "" {
			return nil
		}
		for _, msg := range validation.IsDNS1123Subdomain(hostname) {
			errs = append(errs, field.Invalid(path, hostname, msg))
		}
		if _, isIP := parseIP(hostname); isIP {
			errs = append(errs, field.Invalid(path, hostname, "must be a DNS name, not an IP address"))
		}
		return errs
	}, spec.APIStatusIngressHostname)

	// The status of a port names the port and its protocol, and may have an error.
	portStatusValid = rule.New("port-status-valid", func(r *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, _ []string) (errs field.ErrorList) {
		for i := range ingress.Ports {
			port, path := &ingress.Ports[i], path.Child("ports").Index(i)
			errs = append(errs, r.portNumber.Do(port.Port, path.Child("port"))...)
			errs = append(errs, r.protocolKnown.Do(port.Protocol, path.Child("protocol"))...)
			if port.Error != nil {
				errs = append(errs, r.portErrorSyntax.Do(*port.Error, path.Child("error"))...)
			}
		}
		return errs
	}, spec.APIStatusIngressPorts, spec.APIStatusIngressPortRequired, spec.APIStatusIngressPortProtocol)

	// The error of a port is a name with an optional DNS prefix, as the schema of PortStatus has it.
	portErrorSyntax = rule.New("port-error-syntax", func(text string, path *field.Path) field.ErrorList {
		switch {
		case len(text) > maxPortErrorLength:
			return field.ErrorList{field.TooLong(path, text, maxPortErrorLength)}
		case !portErrorPattern.MatchString(text):
			return refusePortError(text, path)
		}
		return nil
	}, spec.APIStatusIngressPortError, spec.APIStatusIngressPortErrorSyntax)
)

var portErrorPattern = regexp.MustCompile(`^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$`)

// maxPortErrorLength is a DNS name, a slash and a label.
const maxPortErrorLength = 316

func refusePortError(text string, path *field.Path) field.ErrorList {
	return field.ErrorList{field.Invalid(path, text, "must be a CamelCase name, or foo.example.com/CamelCase")}
}

func unknownIPMode(ingress *corev1.LoadBalancerIngress, path *field.Path) field.ErrorList {
	return field.ErrorList{field.NotSupported(path.Child("ipMode"), *ingress.IPMode, ipModes)}
}
