package fault

import "github.com/service-conformance/conformance/framework/spec"

// The ports of a Service.
var (
	PortsSorted           = New("ports-sorted", "ports are stored in the order of their numbers", spec.APIPortsList)
	PortsOptional         = New("ports-optional", "a Service with a virtual address may have no port", spec.APIPortsNeeded)
	PortsAlwaysNeeded     = New("ports-always-needed", "a headless Service and an alias need a port too", spec.APIPortsNeeded)
	PortsRepeated         = New("ports-repeated", "a number and protocol may occur twice", spec.APIPortsDistinct)
	PortsDistinctByNumber = New("ports-distinct-by-number", "a number may not occur with two protocols", spec.APIPortsDistinct)
	PortDefault80         = New("port-default-80", "an entry without a port is one for port 80", spec.APIPortRequired, spec.APIPortValues)
	PortNumberUnchecked   = New("port-number-unchecked", "port numbers are not validated",
		spec.APIPortRequired, spec.APIPortValues, spec.APITargetPortNumber, spec.APIStatusIngressPortRequired)
	PortNumberBelow65535 = New("port-number-below-65535", "65535 is no port number", spec.APIPortValues, spec.APITargetPortNumber)
	ProtocolDefaultUDP   = New("protocol-default-udp", "the protocol is UDP by default", spec.APIPortProtocolDefault)
	ProtocolUnchecked    = New("protocol-unchecked", "any text is a protocol", spec.APIPortProtocolValues, spec.APIStatusIngressPortProtocol)
	SCTPRefused          = New("sctp-refused", "SCTP is no protocol",
		spec.APIPortProtocolValues, spec.APIStatusIngressPortProtocol, spec.APILoadBalancerMixedProtocols)
	PortNameDots          = New("port-name-dots", "the name of a port may be a DNS name with dots", spec.APIPortNameSyntax)
	PortNameShort         = New("port-name-short", "the name of a port has at most 15 characters, as the name of a target port", spec.APIPortNameSyntax)
	PortNamesRepeated     = New("port-names-repeated", "two ports may have one name", spec.APIPortNamesUnique)
	PortNameAlways        = New("port-name-always", "the only port needs a name too", spec.APIPortNameOptional)
	PortNameNever         = New("port-name-never", "no port needs a name", spec.APIPortNameOptional)
	TargetPortNameLost    = New("target-port-name-lost", "a target port that is a name becomes the number of the port", spec.APITargetPortKinds)
	TargetPortOfFirst     = New("target-port-of-first", "a target port that is not specified is the number of the first port", spec.APITargetPortDefault)
	TargetPortAnyLabel    = New("target-port-any-label", "the name of a target port may be any DNS label", spec.APITargetPortName)
	TargetPortLetterFirst = New("target-port-letter-first", "the name of a target port begins with a letter", spec.APITargetPortName)
	TargetPortSameNoVIP   = New("target-port-same-headless", "a headless Service is refused if a target port differs from its port", spec.APITargetPortHeadless)
)

// The application protocol of a port.
var (
	AppProtocolUnchecked    = New("app-protocol-unchecked", "any text is an application protocol", spec.APIAppProtocolSyntax)
	AppProtocolLowerCase    = New("app-protocol-lower-case", "an application protocol has no upper case letters", spec.APIAppProtocolSyntax)
	AppProtocolPrefixNeeded = New("app-protocol-prefix-needed", "an application protocol needs a prefix", spec.APIAppProtocolStandardNames, spec.APIAppProtocolSyntax)
	AppProtocolNoForeign    = New("app-protocol-no-foreign", "the only prefix of an application protocol is kubernetes.io",
		spec.APIAppProtocolPrefixedNames, spec.APIAppProtocolSyntax)
	AppProtocolNoKubernetes = New("app-protocol-no-kubernetes", "application protocols with the prefix kubernetes.io are refused", spec.APIAppProtocolKubernetesNames)
)

// The selector of a Service.
var (
	SelectorNeeded     = New("selector-needed", "a Service needs a selector, unless it is an alias or in the namespace default", spec.APISelectorOptional)
	SelectorNoAlias    = New("selector-no-alias", "an alias with a selector is refused", spec.APISelectorExternalName)
	SelectorUnchecked  = New("selector-unchecked", "keys and values of a selector are not validated", spec.APISelectorSyntax)
	SelectorEmptyValue = New("selector-empty-value", "the values of a selector may not be empty", spec.APISelectorSyntax)
)
