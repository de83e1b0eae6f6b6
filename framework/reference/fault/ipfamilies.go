package fault

import "github.com/service-conformance/conformance/framework/spec"

// IP families, the policy, and the change between single-stack and dual-stack.
var (
	IPFamiliesNotShown = New("ip-families-not-shown", "ipFamilies is left empty", spec.APIIPFamiliesDefault, spec.APISingleStack, spec.APIHeadlessFamilies,
		spec.APIHeadlessSelectorlessFamilies)
	IPFamiliesDefaultLast = New("ip-families-default-last", "the last range of the cluster decides the default family",
		spec.APIIPFamiliesDefault, spec.APIHeadlessFamilies, spec.APIHeadlessSelectorlessFamilies, spec.APISingleStack)
	IPFamiliesReordered = New("ip-families-reordered", "families that the client names are put into the order of the cluster",
		spec.APIIPFamiliesChosen, spec.APIClusterIPsOnePerFamily)
	IPFamiliesIgnored  = New("ip-families-ignored", "the family that the client names is ignored", spec.APIIPFamiliesChosen, spec.APISingleStack)
	IPFamiliesUnknown  = New("ip-families-unknown", "a family that the cluster does not have is dropped", spec.APIIPFamiliesNotConfigured, spec.APIIPFamiliesValues)
	IPFamiliesMerged   = New("ip-families-merged", "a family that is named twice is taken once", spec.APIIPFamiliesAtMostTwo)
	IPFamiliesRestored = New("ip-families-restored", "an update of the families of a Service is ignored",
		spec.APIIPFamiliesPrimaryImmutable, spec.APIHeadlessPrimaryFamilyImmutable, spec.APIIPFamiliesSecondaryNeedsPolicy, spec.APIIPFamiliesRemovalNeedsSingleStack)
	HeadlessFamiliesMutable = New("headless-families-mutable", "a headless Service may change its families, and changes to the default one if an update leaves them out",
		spec.APIHeadlessPrimaryFamilyImmutable)

	IPFamilyPolicyIgnored = New("ip-family-policy-ignored", "SingleStack does not stand against a second family or address",
		spec.APIClusterIPsPolicy, spec.APIIPFamiliesPolicy, spec.APIIPFamiliesSecondaryNeedsPolicy)
	IPFamilyPolicyReset        = New("ip-family-policy-reset", "an update without policy makes the Service single-stack", spec.APIIPFamilyPolicyKept)
	IPFamilyPolicyNotValidated = New("ip-family-policy-not-validated", "any text is taken for a policy", spec.APIIPFamilyPolicyValues)
	PreferDualStackUnknown     = New("prefer-dual-stack-unknown", "PreferDualStack is not known as a policy", spec.APIIPFamilyPolicyValues, spec.APIPreferDualStack, spec.APIPreferDualStackOnSingleStack)
	DualStackByDefault         = New("dual-stack-by-default", "a Service that names no policy gets PreferDualStack", spec.APIIPFamilyPolicyDefault, spec.APIIPFamiliesDefault)
	SingleStackGetsBoth        = New("single-stack-gets-both", "a SingleStack Service gets both families of a dual-stack cluster", spec.APISingleStack, spec.APIIPFamiliesDefault)
	DualStackNotCompleted      = New("dual-stack-not-completed", "a dual-stack Service gets only the families that it names",
		spec.APIPreferDualStack, spec.APIRequireDualStack, spec.APIDualStackCompletesFamilies, spec.APIDualStackUpgrade, spec.APIIPFamiliesDefault,
		spec.APIHeadlessSelectorlessFamilies)
	PreferDualStackRefused   = New("prefer-dual-stack-refused", "PreferDualStack is refused on a single-stack cluster", spec.APIPreferDualStackOnSingleStack)
	RequireDualStackAsPrefer = New("require-dual-stack-as-prefer", "RequireDualStack on a single-stack cluster is taken for PreferDualStack",
		spec.APIRequireDualStackOnSingleStack)

	DualStackRemovalIgnored = New("dual-stack-removal-ignored", "an update that leaves out the secondary family or address of a dual-stack Service changes nothing",
		spec.APIIPFamiliesRemovalNeedsSingleStack)
	DualStackUpgradeNoAddress = New("dual-stack-upgrade-no-address", "an upgrade to dual-stack adds the family and no address of it", spec.APIDualStackUpgrade)
	DualStackDowngradeLeaks   = New("dual-stack-downgrade-leaks", "a downgrade to single-stack does not free the secondary address", spec.APIDualStackDowngrade)
	DualStackPolicyFixed      = New("dual-stack-policy-fixed", "a dual-stack Service cannot change to the other dual-stack policy", spec.APIDualStackPolicyChange)
)
