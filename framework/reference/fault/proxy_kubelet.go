package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of the environment variables that containers start with.
var (
	EnvironmentTargetPort = New("environment-target-port", "Environment variables hold the target ports of a Service.",
		spec.ProxyEnvironmentClusterIP, spec.ProxyEnvironmentContainerLinks)
	EnvironmentLastPort = New("environment-last-port", "The variable for the port of a Service with several holds the last one.",
		spec.ProxyEnvironmentClusterIP)
	EnvironmentPortNamesMissing = New("environment-port-names-missing", "Named ports of a Service have no environment variables.",
		spec.ProxyEnvironmentClusterIP, spec.ProxyEnvironmentNames)
	EnvironmentIPv6Missing = New("environment-ipv6-missing", "A Service whose virtual address is of IPv6 has no environment variables.",
		spec.ProxyEnvironmentClusterIP, spec.ProxyEnvironmentContainerLinks)
	EnvironmentNamesAsTheyAre = New("environment-names-as-they-are", "Names of environment variables keep the lower case and the dashes of the Service.",
		spec.ProxyEnvironmentNames, spec.ProxyEnvironmentClusterIP)
	EnvironmentNamesDashed = New("environment-names-dashed", "Names of environment variables keep the dashes of the Service.",
		spec.ProxyEnvironmentNames)
	EnvironmentDigitHidden = New("environment-digit-hidden", "A Service whose name begins with a digit has no environment variables.",
		spec.ProxyEnvironmentNameLeadingDigit)
	EnvironmentAllNamespaces = New("environment-all-namespaces", "The Services of all namespaces have environment variables.",
		spec.ProxyEnvironmentNamespace)
	EnvironmentWithoutAPIServer = New("environment-without-api-server", "The Service of the API server has no environment variables in other namespaces.",
		spec.ProxyEnvironmentNamespace, spec.ProxyEnvironmentDisabled)
	EnvironmentHeadless = New("environment-headless", "A headless Service has environment variables, with None for its address.",
		spec.ProxyEnvironmentHeadless)
	EnvironmentLinksForced = New("environment-links-forced", "A pod without service links gets the environment variables of Services.",
		spec.ProxyEnvironmentDisabled)
	EnvironmentLinksOffForAll = New("environment-links-off-for-all", "A pod without service links does not get those of the API server either.",
		spec.ProxyEnvironmentDisabled)
	EnvironmentContainerLinksMissing = New("environment-container-links-missing", "There are no environment variables of the form of container links.",
		spec.ProxyEnvironmentContainerLinks)
	EnvironmentUnbracketed = New("environment-unbracketed", "An address of IPv6 stands without brackets before the port in an environment variable.",
		spec.ProxyEnvironmentContainerLinks)
	EnvironmentRemembered = New("environment-remembered", "Services keep their environment variables when they are deleted.",
		spec.ProxyEnvironmentCurrent)
	EnvironmentServicesWin = New("environment-services-win", "The environment variables of a Service replace those that a container sets itself.",
		spec.ProxyEnvironmentOwnFirst)
	EnvironmentReferencesKept = New("environment-references-kept", "References to the environment variables of Services are not replaced.",
		spec.ProxyEnvironmentReferences)
	EnvironmentEscapesReplaced = New("environment-escapes-replaced", "References that are escaped are replaced too.",
		spec.ProxyEnvironmentReferences)
)

// Bugs of probes.
var (
	ReadinessProbeIgnored = New("readiness-probe-ignored", "A pod stays ready when its readiness probe fails.",
		spec.ProxyUnreadyEndpointAvoided)
)
