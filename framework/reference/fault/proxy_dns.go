package fault

import "github.com/service-conformance/conformance/framework/spec"

// Bugs of the cluster's DNS.
var (
	DNSEndpointsForVirtualIP = New("dns-endpoints-for-virtual-ip", "The name of a Service resolves to its endpoints where it has a virtual address.",
		spec.ProxyDNSClusterIP, spec.ProxyDNSDualStack, spec.ProxyDNSNameLeadingDigit)
	DNSTargetPort = New("dns-srv-target-port", "SRV records of a Service carry the port of its endpoints.",
		spec.ProxyDNSSrvPort)
	DNSProtocolIgnored = New("dns-srv-protocol-ignored", "SRV records are given for a port whatever protocol is asked for.",
		spec.ProxyDNSSrvPort)
	DNSPrimaryOnly = New("dns-primary-only", "A dual-stack Service has records for its first address only.",
		spec.ProxyDNSDualStack)
	DNSFirstEndpoint = New("dns-headless-first-only", "The name of a headless Service resolves to one of its endpoints.",
		spec.ProxyDNSHeadless, spec.ProxyDNSPublishNotReady)
	DNSUnreadyListed = New("dns-headless-unready-listed", "The name of a headless Service resolves to endpoints that are not ready too.",
		spec.ProxyDNSHeadless)
	DNSUnsaidReadinessHidden = New("dns-headless-unsaid-readiness-hidden", "Endpoints that do not say whether they are ready are taken for unready.",
		spec.ProxyDNSHeadless)
	DNSHostnamesUnknown = New("dns-hostnames-unknown", "Pods with a hostname have no records of their own.",
		spec.ProxyDNSHeadlessHostnames)
	DNSHostnameOnce = New("dns-hostname-once", "Of several pods with one hostname one has a record.",
		spec.ProxyDNSHeadlessHostnames)
	DNSHeadlessSRVOfService = New("dns-headless-srv-of-service", "SRV records of a headless Service lead to the Service itself.",
		spec.ProxyDNSHeadlessHostnames)
	DNSNotReadyUnpublished = New("dns-not-ready-unpublished", "Pods that are not ready have no records, whatever the EndpointSlice says of publishing them.",
		spec.ProxyDNSPublishNotReady)
	DNSExternalNameUnknown = New("dns-external-name-unknown", "Services of type ExternalName have no records.",
		spec.ProxyDNSExternalName, spec.ProxyDNSExternalNameTrailingDot)
	DNSExternalNameBelowDomain = New("dns-external-name-below-domain", "An externalName without a dot at its end is taken to be below the domain of the cluster.",
		spec.ProxyDNSExternalName, spec.ProxyDNSExternalNameTrailingDot)
	DNSTrailingDotRefused = New("dns-trailing-dot-refused", "An externalName that ends in a dot gives no record.",
		spec.ProxyDNSExternalNameTrailingDot)
	DNSLeadingDigitUnknown = New("dns-leading-digit-unknown", "Services whose names begin with a digit have no records.",
		spec.ProxyDNSNameLeadingDigit)
	DNSAliasWithinClusterHidden = New("dns-alias-within-cluster-hidden", "An ExternalName Service that leads to a name of the cluster has no CNAME record.",
		spec.ProxyDNSExternalName)
	DNSAliasNotFollowed = New("dns-alias-not-followed", "The answer for an ExternalName Service ends with its CNAME record, also where the other name is of the cluster.",
		spec.ProxyDNSExternalNameFollowed)
	DNSDanglingAliasHidden = New("dns-dangling-alias-hidden", "Who asks for the addresses of an ExternalName Service gets no record if the other name is of the cluster and has none.",
		spec.ProxyDNSExternalNameDangling)
	DNSAliasOfNamesBelow = New("dns-alias-of-names-below", "Names below that of an ExternalName Service are aliases, too.",
		spec.ProxyDNSExternalName)
	DNSMissRemembered = New("dns-miss-remembered", "A name that was asked for before it existed is unknown for another minute.",
		spec.ProxyDNSClusterIP, spec.ProxyDNSHeadless, spec.ProxyDNSHeadlessHostnames)
	DNSAliasWithSelectorHidden = New("dns-alias-with-selector-hidden", "An ExternalName Service with a selector has no CNAME record.",
		spec.ProxyDNSExternalName)
	DNSSelectorlessSRVHidden = New("dns-selectorless-srv-hidden", "The ports of a headless Service without selector have no SRV records.",
		spec.ProxyDNSSrvPort)
	DNSHeadlessFirstPort = New("dns-headless-first-port", "Of the ports of a headless Service only the first one has SRV records.",
		spec.ProxyDNSSrvPort)
	DNSUnnamedPortByNumber = New("dns-unnamed-port-by-number", "A port without a name has SRV records under its number.",
		spec.ProxyDNSUnnamedPort)
	DNSCaseMatters = New("dns-case-matters", "A name is found only in lower case.",
		spec.ProxyDNSCaseInsensitive)
	DNSReverseUnknown = New("dns-reverse-unknown", "The virtual addresses of Services have no PTR records.",
		spec.ProxyDNSReverse)
	DNSReverseFirstFamily = New("dns-reverse-first-family", "Of the virtual addresses of a dual-stack Service only the first one has a PTR record.",
		spec.ProxyDNSReverse)
	DNSReverseRemembered = New("dns-reverse-remembered", "An address keeps the name that was found for it first, also when another Service has it.",
		spec.ProxyDNSReverse)
	DNSHeadlessReverseUnknown = New("dns-headless-reverse-unknown", "The endpoints of headless Services have no PTR records.",
		spec.ProxyDNSHeadlessReverse)
	DNSHeadlessReverseByAddress = New("dns-headless-reverse-by-address", "The PTR records of endpoints have names made of addresses, also where there is a hostname.",
		spec.ProxyDNSHeadlessReverse)
	DNSHeadlessReverseNamedOnly = New("dns-headless-reverse-named-only", "Of the endpoints of headless Services only those with a hostname have PTR records.",
		spec.ProxyDNSHeadlessReverse)
	DNSSchemaVersionUnknown = New("dns-schema-version-unknown", "The DNS does not tell the version of its schema.",
		spec.ProxyDNSSchemaVersion)
	DNSSchemaVersionShort = New("dns-schema-version-short", "The version of the DNS schema has two numbers instead of three.",
		spec.ProxyDNSSchemaVersion)
	DNSHeadlessUnknown = New("dns-headless-unknown", "The name of a headless Service does not exist.",
		spec.ProxyDNSHeadless)
)
