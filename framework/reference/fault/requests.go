package fault

import "github.com/service-conformance/conformance/framework/spec"

// Requests on Services: dry run, verbs, field validation, content types, lists, watches, warnings, schema.
var (
	DryRunStoresNew    = New("dry-run-stores-new", "a dry run of a create stores the Service", spec.APIDryRunCreate, spec.APIDryRunSilent, spec.AllocDryRunCreateKeepsNothing)
	DryRunStoresChange = New("dry-run-stores-change", "a dry run of an update or patch stores the change", spec.APIDryRunUpdate, spec.APIDryRunSilent, spec.AllocDryRunUpdateKeepsNothing)
	DryRunDeletes      = New("dry-run-deletes", "a dry run of a deletion deletes", spec.APIDryRunDelete, spec.APIDryRunSilent, spec.AllocDryRunDeleteKeepsAddress)
	DryRunNotValidated = New("dry-run-not-validated", "the rules are not applied to a dry run", spec.APIDryRunValidation)
	DryRunAnyValue     = New("dry-run-any-value", "every value of dryRun is taken for All", spec.APIDryRunValue)

	PUTNeedsObject       = New("put-needs-object", "an update creates nothing", spec.APIPUTCreates)
	DeleteOfMissing      = New("delete-of-missing", "a deletion of a Service that does not exist succeeds", spec.APINotFound, spec.APIDeleteRemoves)
	CollectionUnselected = New("collection-unselected", "a deletecollection ignores its selectors", spec.APIDeleteCollection)
	CollectionLeaks      = New("collection-leaks", "a deletecollection does not release addresses", spec.APIDeleteCollection)
	MethodNotFound       = New("method-not-found", "a method that a path does not serve is answered with 404", spec.APIMethodNotAllowed)
	MalformedBody500     = New("malformed-body-500", "a body that is no Service is answered with 500", spec.APIMalformedBody)
	ProxyBadGateway      = New("proxy-bad-gateway", "the proxy answers with 502 when it finds no endpoint", spec.APIProxyNoEndpoints, spec.APIProxyUnknownPort)

	DiscoveryWithoutCollection = New("discovery-without-collection", "discovery does not list deletecollection", spec.APIDiscoveryVerbs)
	DiscoveryWithoutNames      = New("discovery-without-names", "discovery lists neither short names nor categories", spec.APIDiscoveryNames)
	DiscoveryWithoutStatus     = New("discovery-without-status", "discovery does not list the status subresource", spec.APIDiscoverySubresources)

	StrictWarns        = New("strict-warns", "fieldValidation Strict is treated as Warn", spec.APIFieldValidationStrict)
	WarnIgnores        = New("warn-ignores", "fieldValidation Warn is treated as Ignore", spec.APIFieldValidationWarn, spec.APIWarningForm)
	IgnoreWarns        = New("ignore-warns", "fieldValidation Ignore is treated as Warn", spec.APIFieldValidationIgnore)
	ValidationAnyValue = New("field-validation-any-value", "an unknown value of fieldValidation is dropped", spec.APIFieldValidationValue)

	AnyIsYAML        = New("any-is-yaml", "a client that accepts anything is answered in YAML", spec.APIContentJSON)
	YAMLIsJSON       = New("yaml-is-json", "a client that accepts YAML is answered in JSON", spec.APIContentYaml)
	ProtobufRefused  = New("protobuf-refused", "protobuf is not served", spec.APIContentProtobuf)
	AnyMediaIsRead   = New("any-media-is-read", "the media type of a body is not looked at", spec.APIContentUnsupported)
	AnyMediaIsServed = New("any-media-is-served", "a client that accepts none of the media types is answered in JSON", spec.APIAcceptUnsupported)

	ListEverywhere      = New("list-everywhere", "a list of a namespace holds those of all namespaces", spec.APIListNamespace, spec.APIListLabels)
	ListDefaultOnly     = New("list-default-only", "a list of all namespaces holds those of the namespace default", spec.APIListNamespace)
	ListLabelsIgnored   = New("list-labels-ignored", "a list ignores its label selector", spec.APIListLabels)
	ListFieldsIgnored   = New("list-fields-ignored", "a list ignores its field selector", spec.APIListFields)
	ListFieldsTolerated = New("list-fields-tolerated", "a field selector on an unsupported field is ignored", spec.APIListFieldsUnsupported)
	ContinueLatest      = New("continue-latest", "a list continues with the latest state", spec.APIListChunks)
	ContinueRestarts    = New("continue-restarts", "an invalid continue token begins the list again", spec.APIListContinueInvalid)

	WatchAllAdded        = New("watch-all-added", "a watch calls every change ADDED", spec.APIWatchEvents)
	WatchRepeats         = New("watch-repeats", "a watch delivers the change with the resourceVersion that it begins from", spec.APIWatchFromVersion, spec.APIWatchEvents)
	WatchWithoutInitial  = New("watch-without-initial", "a watch without a resourceVersion begins with the next change", spec.APIWatchInitial)
	WatchSelectorOfAdded = New("watch-selector-of-added", "a watch with a selector calls it MODIFIED when a Service ceases to match", spec.APIWatchSelector)

	WarningCode           = New("warning-code", "warnings have code 199", spec.APIWarningForm)
	WarningAlways         = New("warning-always", "every create and update is warned of", spec.APIWarningForm)
	NoWarningClusterIP    = New("no-warning-cluster-ip-not-canonical", "nobody is warned of virtual addresses that are not canonical", spec.APIWarningClusterIPNotCanonical)
	NoWarningNotCanonical = New("no-warning-not-canonical", "nobody is warned of addresses that are not canonical",
		spec.APIWarningNotCanonical, spec.APIWarningClusterIPNotCanonical)
	NoWarningExternalIPs      = New("no-warning-external-ips", "nobody is warned that externalIPs is deprecated", spec.APIWarningExternalIPs)
	NoWarningIgnoredIPs       = New("no-warning-ignored-external-ips", "nobody is warned that an ExternalName Service ignores externalIPs", spec.APIWarningExternalIPsIgnored)
	NoWarningHeadless         = New("no-warning-headless", "nobody is warned of what a headless Service ignores", spec.APIWarningHeadlessIgnored)
	NoWarningPreferClose      = New("no-warning-prefer-close", "nobody is warned that PreferClose is deprecated", spec.APIWarningPreferClose)
	NoWarningTopologyHints    = New("no-warning-topology-hints", "nobody is warned that the annotation for topology hints is deprecated", spec.APIWarningTopologyHints)
	OpenAPIWithoutKind        = New("openapi-without-kind", "the schema does not tell group, version and kind", spec.APIOpenapiPublished)
	OpenAPIWithoutIPMode      = New("openapi-without-ip-mode", "the schema does not know ipMode", spec.APIOpenapiIPMode)
	OpenAPIWithoutField       = New("openapi-without-field", "the schema does not know healthCheckNodePort", spec.APIOpenapiFields)
	OpenAPIWithoutRequired    = New("openapi-without-required", "the schema requires nothing", spec.APIOpenapiRequired)
	OpenAPIWithoutListTypes   = New("openapi-without-list-types", "the schema does not tell lists that are maps from others", spec.APIOpenapiListTypes)
	OpenAPIWithoutPatchKeys   = New("openapi-without-patch-keys", "the schema does not tell what a strategic merge patch merges by", spec.APIOpenapiPatchStrategy)
	OpenAPIWithoutEnumeration = New("openapi-without-enums", "the schema lists no values", spec.APIOpenapiEnums)
	OpenAPIWithoutDefaults    = New("openapi-without-defaults", "the schema has no defaults", spec.APIOpenapiDefaults)
)
