package fault

import "github.com/service-conformance/conformance/framework/spec"

// Patches and server-side apply.
var (
	JSONPatchFirstOnly = New("json-patch-first-only", "only the first operation of a JSON patch is carried out", spec.APIJSONPatch, spec.APIJSONPatchAtomic)
	JSONPatchPartial   = New("json-patch-partial", "the operations of a JSON patch before one that fails are carried out", spec.APIJSONPatchAtomic)
	JSONPatchValueNull = New("json-patch-value-null", "a missing value in a JSON patch is taken for null", spec.APIJSONPatchValue)
	MergePatchNulls    = New("merge-patch-nulls", "null in a merge patch removes nothing", spec.APIMergePatch)
	PatchRefusalLost   = New("patch-refusal-lost", "a patch whose result breaks a rule is answered with the unchanged Service", spec.APIPatchValidation, spec.APIStrategicMergeClientError)
	PatchMalformed500  = New("patch-malformed-500", "a malformed patch is answered with 500", spec.APIPatchMalformed, spec.APIResourceVersionClientError)

	PatchedPortsByNumber = New("patched-ports-by-number", "a patch merges ports that have the same number",
		spec.APIJSONPatchSameNumber, spec.APIMergePatchSameNumber, spec.APIStrategicMergeSameNumber, spec.APIStrategicMergePorts, spec.APIApplyPortKeys, spec.APIApplyPortProtocolDefault)
	StrategicMergePlain    = New("strategic-merge-plain", "a strategic merge patch is taken for a JSON merge patch", spec.APIStrategicMergePorts, spec.APIStrategicMergeSameNumber)
	StrategicMergeWithout  = New("strategic-merge-without-directives", "the directives of a strategic merge patch are dropped", spec.APIStrategicMergePorts)
	StrategicMergeMapWhole = New("strategic-merge-map-whole", "a strategic merge patch replaces labels and selector as a whole", spec.APIStrategicMergeMap)

	StrategicMergeServerError = New("strategic-merge-server-error", "a strategic merge patch that cannot be applied is answered with a server error", spec.APIStrategicMergeClientError)

	ApplyNeedsObject     = New("apply-needs-object", "a Service has to exist before it is applied", spec.APIApplyCreates, spec.APIApplyYaml)
	ApplyJSONOnly        = New("apply-json-only", "an applied configuration has to be JSON", spec.APIApplyYaml)
	ApplyManagerOptional = New("apply-manager-optional", "an apply without a field manager is recorded for \"unknown\"", spec.APIApplyManagerRequired)
	ManagedFieldsHidden  = New("managed-fields-hidden", "metadata.managedFields is not shown", spec.APIApplyManagedFields)
	ApplyForces          = New("apply-forces", "every apply is forced",
		spec.APIApplyConflict, spec.APIApplyForce, spec.APIApplyUpdateConflict, spec.APIApplyAtomicLists, spec.APIApplyPortKeys, spec.APIApplyConditionsKeys)
	ApplyForceIgnored = New("apply-force-ignored", "no apply is forced", spec.APIApplyForce, spec.APIApplyAtomicLists)
	ApplyOneManager   = New("apply-one-manager", "every apply is recorded for the same manager",
		spec.APIApplyManagedFields, spec.APIApplyConflict, spec.APIApplyForce, spec.APIApplyShared, spec.APIApplyRemovesOwn, spec.APIApplyPortKeys, spec.APIApplyConditionsKeys)
	ApplyKeepsOwn = New("apply-keeps-own", "what a manager leaves out of its configuration stays",
		spec.APIApplyShared, spec.APIApplyRemovesOwn, spec.APIApplyPortKeys, spec.APIApplyPortProtocolDefault)
	UpdatesUnowned         = New("updates-unowned", "an update of an applied Service is recorded for nobody", spec.APIApplyUpdateConflict)
	ApplyDuplicateLastWins = New("apply-duplicate-last-wins", "of applied ports with the same number and protocol the last one is taken", spec.APIApplyPortDuplicate)
	ApplyServerError       = New("apply-server-error", "a configuration that does not fit the schema is answered with a server error", spec.APIApplyClientError)
	ApplySelectorsGranular = New("apply-selectors-granular", "an applied selector is merged with the one that is stored", spec.APIApplyAtomicLists)
)
