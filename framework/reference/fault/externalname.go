package fault

import "github.com/service-conformance/conformance/framework/spec"

// Services of type ExternalName.
var (
	ExternalNameOptional     = New("externalname-optional", "an alias may do without a name", spec.APIExternalNameRequired)
	ExternalNameNotValidated = New("externalname-not-validated", "any text is taken for an external name", spec.APIExternalNameSyntax)
	ExternalNameNeedsDot     = New("externalname-needs-dot", "an external name of one label is refused", spec.APIExternalNameSyntax)
	ExternalNameDotRefused   = New("externalname-dot-refused", "an external name that ends in a dot is refused", spec.APIExternalNameTrailingDot)
	ExternalNameSilent       = New("externalname-silent", "an external name on a Service of another type is stored in silence", spec.APIExternalNameType, spec.APIWarningExternalNameIgnored)
	ExternalNameAddressed    = New("externalname-addressed", "an alias is given IP families and cluster IPs like any other Service",
		spec.APITypeExternalName, spec.APIClusterIPExternalNameRefused, spec.APIIPFamiliesExternalName, spec.APITypeChange)
)
