package fault

import "github.com/service-conformance/conformance/framework/spec"

// Ownership of an address, from when until when.
var (
	DuplicateAccepted = New("duplicate-accepted", "an address in use can be named again",
		spec.AllocDuplicateRefused, spec.AllocUnique, spec.AllocConcurrentStatic, spec.AllocFirstAddressKubernetes, spec.AllocDNSAddressConflict,
		spec.AllocUpdateToClusterIP, spec.APIClusterIPInUse)
	DynamicMissing = New("dynamic-missing", "a Service has to name its address", spec.AllocDynamicAssigned, spec.AllocClusterIPAssigned)
	HiddenAddress  = New("hidden-address", "Services that need no address take one that nobody sees", spec.AllocExhaustedOthersUnaffected)
	LowPortsOnly   = New("low-ports-only", "ports above 32767 are refused", spec.AllocAnyPort)
	FamilyIgnored  = New("family-without-range-ignored", "an IP family without a range is ignored", spec.AllocNoRangeNoAddress, spec.APIIPFamiliesNotConfigured)

	RefusedUpdateKeepsAddress = New("refused-update-keeps-address", "an update that is refused after allocation keeps the address that it was given",
		spec.AllocRefusedUpdateLeaksNothing, spec.APIUpdateRefusedWhole, spec.APIDualStackUpgradeRefused)
	RefusedCreateKeepsAddress = New("refused-create-keeps-address", "a create that is refused after allocation keeps its addresses",
		spec.AllocRefusedCreateLeaksNothing, spec.AllocRefusedDualStackCreateLeaksNothing, spec.AllocNodePortRefusedCreateLeaksNothing, spec.APIDualStackUpgradeRefused)
	RefusedCreateStored     = New("refused-create-stored", "a create that is refused is stored even so", spec.AllocRefusedCreateLeaksNothing, spec.AllocExhaustedRefused)
	RefusedCreateFreesTaken = New("refused-create-frees-taken", "a create that names an address in use is refused, and frees it", spec.AllocRefusedCreateLeaksNothing, spec.AllocDuplicateRefused)
	RefusedDualStackKeeps   = New("refused-dual-stack-keeps-address", "a dual-stack request that cannot have one of its addresses keeps the other",
		spec.AllocRefusedUpdateLeaksNothing, spec.AllocRefusedDualStackCreateLeaksNothing, spec.APIDualStackUpgradeRefused)
	FailureUnexplained = New("failure-unexplained", "the answer to a create that cannot have an address does not say why", spec.AllocFailureNamed)

	DeleteKeepsAddress = New("delete-keeps-address", "the addresses of a deleted Service stay allocated",
		spec.AllocDeleteReleases, spec.AllocDeleteCollectionReleases, spec.AllocIPAddressPerClusterIP)
	UpdateKeepsAddress = New("update-keeps-address", "addresses that an update takes away from a Service stay allocated",
		spec.AllocExternalNameReleases, spec.AllocDowngradeReleasesSecondary, spec.APITypeChange)
	FreedTakenAgain      = New("freed-address-taken-again", "an address that an update gives back is taken again for the Service that had it", spec.AllocFreedStaysFree)
	UpdateAddressNotHeld = New("update-address-not-held", "an address that an update gives to a Service is free for others",
		spec.AllocUpgradeSecondaryUnique, spec.AllocUpdateToClusterIP, spec.APITypeChangeHoldsClusterIP)
	UpdateNeedsAddress = New("update-needs-address", "an update has to repeat the address of the Service", spec.AllocWellKnownStays, spec.APITypeChange)
	UpdateNeedsFree    = New("update-needs-free-address", "an update is refused when no address is free", spec.AllocExhaustedOthersUnaffected)
	AddressHeldLate    = New("address-held-late", "an address is reserved a moment after its Service can be seen", spec.AllocAddressBeforeService, spec.AllocDuplicateRefused)
	FullRangeBlocksAll = New("full-range-blocks-all", "an exhausted range of one IP family keeps the other from being used", spec.AllocDualStackEachFamily)
	RestartForgets     = New("restart-forgets", "what is allocated is only known to the process and forgotten when it is restarted",
		spec.AllocRecordSurvivesRestart, spec.AllocNodePortRecordSurvivesRestart, spec.AllocRestartDuringCreates)
	SecondRangeIgnored      = New("second-range-ignored", "a server that is restarted with ranges of both families uses those that it had before", spec.APIDualStackEnabledNew)
	ExistingBecomeDualStack = New("existing-become-dual-stack", "the policy of Services that exist is changed when the cluster becomes dual-stack", spec.APIDualStackEnabledExisting)
	SecondServerOwnRecord   = New("second-server-own-record", "each API server knows only what was in use when it started, and what it has given out itself",
		spec.AllocRecordShared, spec.AllocNodePortRecordShared, spec.AllocRecordMigrates)
	BitmapNotShared = New("bitmap-not-shared", "API servers that keep addresses in a bitmap and in IPAddress objects do not know of each other's addresses", spec.AllocRecordMigrates)
	RepairFreesNew  = New("repair-frees-new", "an API server that starts frees the addresses of Services that were created within a minute", spec.AllocRepairKeepsUsed)
)
