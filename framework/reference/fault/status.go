package fault

import "github.com/service-conformance/conformance/framework/spec"

// The status of a Service.
var (
	ConditionsDropped   = New("conditions-dropped", "conditions are not stored", spec.APIStatusConditions)
	ConditionsUnchecked = New("conditions-unchecked", "conditions are not validated", spec.APIStatusConditionFields, spec.APIStatusConditionTypes)

	IngressAnyType           = New("ingress-any-type", "ingress points are accepted on every type", spec.APIStatusLoadBalancerType)
	IngressFirstOnly         = New("ingress-first-only", "only the first ingress point is stored", spec.APIStatusIngress)
	IngressNotCleared        = New("ingress-not-cleared", "ingress points are not cleared by a change of the type", spec.APIStatusLoadBalancerCleared)
	IngressHostnameUnchecked = New("ingress-hostname-unchecked", "any text is a hostname of an ingress point", spec.APIStatusIngressHostname)
	IngressHostnameAlone     = New("ingress-hostname-alone", "an ingress point with a hostname and without an IP is refused", spec.APIStatusIngressHostname, spec.APIStatusIngress)
	IngressIPUnchecked       = New("ingress-ip-unchecked", "any text is the IP of an ingress point", spec.APIStatusIngressIP, spec.APIStatusIngressIPStrict)
	IngressIPv4Only          = New("ingress-ipv4-only", "ingress points of the family IPv6 are refused", spec.APIStatusIngressIP)
	IngressIPSloppy          = New("ingress-ip-sloppy", "the IP of an ingress point may have leading zeros", spec.APIStatusIngressIPStrict)
	IPModeWithoutIP          = New("ip-mode-without-ip", "ipMode is accepted without an IP", spec.APIStatusIngressIPMode)
	IPModeUnchecked          = New("ip-mode-unchecked", "any text is an ipMode", spec.APIStatusIngressIPModeValues)
	IPModeVIPOnly            = New("ip-mode-vip-only", "ipMode Proxy is refused", spec.APIStatusIngressIPModeValues)
	IPModeDefaultProxy       = New("ip-mode-default-proxy", "ipMode is Proxy by default", spec.APIStatusIngressIPModeDefault)

	PortStatusDropped   = New("port-status-dropped", "records of ports are not stored", spec.APIStatusIngressPorts, spec.APIStatusIngressPortError)
	PortStatusUnchecked = New("port-status-unchecked", "records of ports are not validated",
		spec.APIStatusIngressPortRequired, spec.APIStatusIngressPortProtocol, spec.APIStatusIngressPortErrorSyntax)
	PortErrorBuiltInOnly = New("port-error-built-in-only", "errors with the prefix of a provider are refused", spec.APIStatusIngressPortError)
)
