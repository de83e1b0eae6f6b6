package fault

import "github.com/service-conformance/conformance/framework/spec"

// ServiceCIDR and IPAddress objects.
var (
	ServiceCIDRNotReady    = New("service-cidr-not-ready", "the default ServiceCIDR is never ready", spec.AllocServiceCIDRDefault)
	ServiceCIDRNotRestored = New("service-cidr-not-restored", "the default ServiceCIDR stays away when it is deleted", spec.AllocServiceCIDRDefaultRestored)
	ServiceCIDREditKept    = New("service-cidr-edit-kept", "the default ServiceCIDR is ready with ranges that the API server does not have", spec.AllocServiceCIDRDefaultEdited)
	ServiceCIDRIgnored     = New("service-cidr-ignored", "a ServiceCIDR that is added is stored and has no effect",
		spec.AllocServiceCIDRAddsRange, spec.AllocServiceCIDROwnBands, spec.AllocRangeIPv430)
	ServiceCIDRHostBits     = New("service-cidr-host-bits", "a ServiceCIDR may have bits set beyond the prefix", spec.AllocServiceCIDRValidation)
	ServiceCIDRMutable      = New("service-cidr-mutable", "the CIDRs of a ServiceCIDR can be changed", spec.AllocServiceCIDRImmutable)
	ServiceCIDRGoneInUse    = New("service-cidr-gone-in-use", "a ServiceCIDR that is deleted goes although Services have addresses of it", spec.AllocServiceCIDRDeletionWaits)
	ServiceCIDRGoneFrees    = New("service-cidr-gone-frees", "addresses of Services become free when their ServiceCIDR goes", spec.AllocOutOfRangeKept)
	ServiceCIDRDeletedGives = New("service-cidr-deleted-gives", "a ServiceCIDR that is being deleted goes on giving addresses", spec.AllocNoRangeNoAddress, spec.AllocServiceCIDRDeletionWaits)
	NoRangeKeepsAddress     = New("no-range-keeps-address", "a create that is refused because the only ServiceCIDR is being deleted keeps an address taken", spec.AllocRefusedCreateLeaksNothing)
	ServiceCIDROverlap      = New("service-cidr-overlap", "ServiceCIDRs that overlap do not know of each other's addresses", spec.AllocServiceCIDROverlapUnique)
	ServiceCIDROnePool      = New("service-cidr-one-pool", "only the default ServiceCIDR is divided into bands", spec.AllocServiceCIDROwnBands)
	ServiceCIDRIPv6Poison   = New("service-cidr-ipv6-poison", "an IPv6 range that is too large ends allocation from all IPv6 ranges", spec.AllocRangeIPv6Shorter)

	DryRunOneRange     = New("dry-run-one-range", "a dry run knows the addresses of one ServiceCIDR alone", spec.AllocServiceCIDRDryRun)
	DryRunLeavingRange = New("dry-run-leaving-range", "a dry run is refused while a ServiceCIDR is being deleted", spec.AllocServiceCIDRDryRun)

	IPAddressUnlabeled   = New("ip-address-unlabeled", "the IPAddress of a Service has no labels", spec.AllocIPAddressPerClusterIP)
	IPAddressIgnored     = New("ip-address-ignored", "an IPAddress that somebody makes reserves nothing", spec.AllocIPAddressReserves)
	IPAddressTakenOver   = New("ip-address-taken-over", "an IPAddress that somebody makes replaces that of a Service", spec.AllocIPAddressDuplicateRefused)
	IPAddressAnyName     = New("ip-address-any-name", "the name of an IPAddress need not be in canonical form", spec.AllocIPAddressName)
	IPAddressMutable     = New("ip-address-mutable", "the parent of an IPAddress can be changed", spec.AllocIPAddressParent)
	IPAddressOrphanKept  = New("ip-address-orphan-kept", "an IPAddress that no Service has stays", spec.AllocRepairUnused)
	IPAddressNotRestored = New("ip-address-not-restored", "the IPAddress of a Service stays away when somebody deletes it", spec.AllocRepairMissing)
)
