package service

import (
	"net/netip"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	apivalidation "k8s.io/apimachinery/pkg/api/validation"

	"github.com/service-conformance/conformance/framework/reference/allocator"
	"github.com/service-conformance/conformance/framework/reference/rule"
)

// The kinds of rules. Old is the stored Service, and nil for a new one.
type (
	// A defaulting rule fills in a field, and a port defaulting rule one of port i.
	defaulting     = func(svc *corev1.Service)
	portDefaulting = func(svc *corev1.Service, i int)
	// An adjusting rule keeps, changes or clears a field.
	adjusting = func(r *Rules, svc, old *corev1.Service)
	// A checking rule says what is wrong with a Service, or with a part of it.
	checking           = func(r *Rules, svc, old *corev1.Service) field.ErrorList
	portChecking       = func(r *Rules, svc *corev1.Service, i int) field.ErrorList
	numberChecking     = func(port int32, path *field.Path) field.ErrorList
	protocolChecking   = func(protocol corev1.Protocol, path *field.Path) field.ErrorList
	externalIPChecking = func(r *Rules, svc *corev1.Service, i int, ip netip.Addr) field.ErrorList
	portErrorChecking  = func(text string, path *field.Path) field.ErrorList
	ingressChecking    = func(r *Rules, ingress *corev1.LoadBalancerIngress, path *field.Path, stored []string) field.ErrorList
	// An inferring rule adds the families of addresses that a client has named, or says what is wrong with them.
	inferring = func(r *Rules, svc *corev1.Service) field.ErrorList
	// An allocating rule takes and gives back addresses and node ports.
	allocating        = func(t *Transaction, svc, old *corev1.Service) error
	nodePortAssigning = func(t *Transaction, svc, old *corev1.Service, i int) error
	clusterIPTaking   = func(t *Transaction, svc *corev1.Service, family corev1.IPFamily, chosen string) (string, error)
	addressTaking     = func(t *Transaction, ip netip.Addr) error
	freeAddressTaking = func(t *Transaction, family corev1.IPFamily) (netip.Addr, error)
	addressNoting     = func(t *Transaction, ip netip.Addr)
	nodePortTaking    = func(t *Transaction, port int) error
	nodePortNoting    = func(t *Transaction, port int)
	returning         = func(t *Transaction)
	nodePortRefusing  = func(svc *corev1.Service, i int, err error) error
	// A creating rule, and an updating rule, is what happens to a Service from beginning to end.
	creating = func(r *Rules, svc *corev1.Service, dryRun bool) (*Transaction, error)
	updating = func(r *Rules, svc, old *corev1.Service, dryRun bool) (*Transaction, error)
	// A releasing rule gives back what a deleted Service holds.
	releasing = func(r *Rules, svc *corev1.Service)
	// A warning rule returns what a client is told.
	warning = func(r *Rules, svc *corev1.Service) []string
	// A deciding rule is a question about a Service.
	deciding = func(svc *corev1.Service) bool
	sharing  = func(svc *corev1.Service, i int, isNew bool) bool
	// Rules for the ranges of the cluster.
	dividing       = func(a *addresses, name string, prefix netip.Prefix) (allocator.Allocator, error)
	rangeRemoving  = func(a *addresses, name string)
	rangeTaking    = func(a *addresses, ip netip.Addr) error
	rangeGiving    = func(a *addresses, family corev1.IPFamily) (netip.Addr, error)
	rangesInformed = func(a *addresses, i int, ip netip.Addr)
)

// book is the rules of the Service resource, in the order in which they are applied. It is read only once it is in use.
type book struct {
	pure rule.Pure

	// Defaults.
	portDefaults []rule.Rule[portDefaulting]
	defaults     []rule.Rule[defaulting]

	// A create and an update as a whole, and what they do to the object before anything is taken.
	create   rule.Rule[creating]
	update   rule.Rule[updating]
	prepares []rule.Rule[adjusting] // of a create
	keeps    []rule.Rule[adjusting] // of an update

	// IP families.
	familiesDecided       rule.Rule[allocating]
	policyDefaults        []rule.Rule[adjusting]
	clusterIPChecks       []rule.Rule[checking]
	clusterIPSyntax       rule.Rule[checking]
	clusterIPsStrict      rule.Rule[func(*Rules) bool]
	clusterIPsAtMostTwo   rule.Rule[checking]
	clusterIPFamilyChecks []rule.Rule[checking]
	familyChecks          []rule.Rule[checking]
	familiesInferred      rule.Rule[inferring]
	configuredChecks      []rule.Rule[checking]
	familyDefault         rule.Rule[func(*Rules) corev1.IPFamily]
	policyGetsBoth        rule.Rule[deciding]

	// Addresses and node ports.
	typeHasClusterIPs      rule.Rule[deciding]
	addressPerFamily       rule.Rule[allocating]
	clusterIPTaken         rule.Rule[clusterIPTaking]
	addressChanges         []rule.Rule[allocating] // of an update
	portsTaken             []rule.Rule[allocating]
	portsFreed             []rule.Rule[allocating] // of an update
	nodePortsWanted        rule.Rule[deciding]
	nodePortShared         rule.Rule[sharing]
	nodePortRefused        rule.Rule[nodePortRefusing]
	nodePortAssigned       rule.Rule[nodePortAssigning]
	nodePortsOwned         rule.Rule[func(*corev1.Service) []int]
	healthCheckNeeded      rule.Rule[deciding]
	healthCheckPortRefused rule.Rule[func(*corev1.Service, error) error]

	// Transactions.
	chosenAddressTaken     rule.Rule[addressTaking]
	freeAddressTaken       rule.Rule[freeAddressTaking]
	takenAddressHeld       rule.Rule[addressNoting]
	droppedAddressFreed    rule.Rule[addressNoting]
	freedAddressReleased   rule.Rule[addressNoting]
	chosenNodePortTaken    rule.Rule[nodePortTaking]
	droppedNodePortFreed   rule.Rule[nodePortNoting]
	freedNodePortReleased  rule.Rule[nodePortNoting]
	failedAllocationUndone rule.Rule[returning]
	refusalUndone          rule.Rule[returning]
	takenAddressesReturned rule.Rule[returning]
	takenNodePortsReturned rule.Rule[returning]
	dryRunValidated        rule.Rule[func() bool]

	// Ranges.
	rangeDivided                   rule.Rule[dividing]
	removedRangeGivesNothing       rule.Rule[rangeRemoving]
	chosenAddressTakenInEveryRange rule.Rule[rangeTaking]
	freeAddressOfFirstRange        rule.Rule[rangeGiving]
	otherRangesTakeIt              rule.Rule[rangesInformed]

	// What an update clears, and what is refused.
	clears                []rule.Rule[adjusting]
	createChecks          []rule.Rule[checking]
	metadataChecks        []rule.Rule[checking] // of an update, and of one of the status
	updateChecks          []rule.Rule[checking]
	checks                []rule.Rule[checking]
	nameSyntax            rule.Rule[func(*Rules) apivalidation.ValidateNameFunc]
	storedStays           rule.Rule[func(stored []string) []string]
	portChecks            []rule.Rule[portChecking]
	portNumber            rule.Rule[numberChecking]
	protocolKnown         rule.Rule[protocolChecking]
	affinityTimeoutLimits rule.Rule[func() (least, most int32)]
	externalIPsStrict     rule.Rule[func(*Rules) bool]
	externalIPReachable   rule.Rule[externalIPChecking]
	sourceRangesStrict    rule.Rule[func(*Rules) bool]
	sourceRangesTrimmed   rule.Rule[func([]string) []string]
	distributions         rule.Rule[func(*Rules) []string]

	// The status.
	statusKeeps     []rule.Rule[adjusting]
	statusChecks    []rule.Rule[checking]
	ingressByType   rule.Rule[checking]
	ingressChecks   []rule.Rule[ingressChecking]
	ingressIPStrict rule.Rule[func(*Rules) bool]
	portErrorSyntax rule.Rule[portErrorChecking]

	// What a deletion gives back, what readers see, and what clients are warned of.
	releases []rule.Rule[releasing]
	views    []rule.Rule[defaulting]
	warnings []rule.Rule[warning]
}

// newBook is the right rules.
func newBook() *book {
	return &book{
		pure: pureKinds,

		portDefaults: []rule.Rule[portDefaulting]{protocolDefault, targetPortDefault},
		defaults: []rule.Rule[defaulting]{
			affinityDefault, affinityNoneDropsConfig, affinityTimeoutDefault, typeDefault, externalPolicyDefault, internalPolicyDefault,
			balancerNodePortsDefault, ipModeDefault,
		},

		create:   addressBeforeCreate,
		update:   clearBeforeValidation,
		prepares: []rule.Rule[adjusting]{newHasNoStatus, clusterIPsFromClusterIP},
		keeps: []rule.Rule[adjusting]{
			updateKeepsStatus, clusterIPsKept, headlessFamiliesKept, nodePortsKept, healthCheckPortKept, clusterIPsFollowClusterIP,
		},

		familiesDecided:       familiesDecided,
		policyDefaults:        []rule.Rule[adjusting]{policyKept, selectorlessPolicyDefault, policyDefault},
		clusterIPChecks:       []rule.Rule[checking]{clusterIPsBeginWithClusterIP, familiesKnown, policyKnown},
		clusterIPSyntax:       clusterIPSyntax,
		clusterIPsStrict:      clusterIPsStrict,
		clusterIPsAtMostTwo:   clusterIPsAtMostTwo,
		clusterIPFamilyChecks: []rule.Rule[checking]{clusterIPsOnePerFamily, clusterIPsMatchFamilies},
		familyChecks: []rule.Rule[checking]{
			singleStackDropsSecondary, dualStackKeepsSecondary, singleStackHasOneFamily,
		},
		familiesInferred: familiesFollowAddresses,
		configuredChecks: []rule.Rule[checking]{dualStackConfigured, familiesConfigured},
		familyDefault:    familyDefault,
		policyGetsBoth:   policyGetsBoth,

		typeHasClusterIPs: typeHasClusterIPs,
		addressPerFamily:  addressPerFamily,
		clusterIPTaken:    clusterIPTaken,
		addressChanges: []rule.Rule[allocating]{
			fromAliasGetsClusterIPs, toAliasFreesClusterIPs, secondaryClusterIPGained, secondaryClusterIPFreed,
		},
		portsTaken: []rule.Rule[allocating]{
			namedNodePortsTaken, namedHealthCheckPortTaken, missingNodePortsAssigned, missingHealthCheckPortAssigned,
		},
		portsFreed:             []rule.Rule[allocating]{droppedNodePortsFreed, uselessHealthCheckPortFreed},
		nodePortsWanted:        nodePortsWanted,
		nodePortShared:         nodePortShared,
		nodePortRefused:        nodePortRefused,
		nodePortAssigned:       nodePortAssigned,
		nodePortsOwned:         nodePortsOwned,
		healthCheckNeeded:      healthCheckNeeded,
		healthCheckPortRefused: healthCheckPortRefused,

		chosenAddressTaken:     chosenAddressTaken,
		freeAddressTaken:       freeAddressTaken,
		takenAddressHeld:       takenAddressHeld,
		droppedAddressFreed:    droppedAddressFreed,
		freedAddressReleased:   freedAddressReleased,
		chosenNodePortTaken:    chosenNodePortTaken,
		droppedNodePortFreed:   droppedNodePortFreed,
		freedNodePortReleased:  freedNodePortReleased,
		failedAllocationUndone: failedAllocationUndone,
		refusalUndone:          refusalUndone,
		takenAddressesReturned: takenAddressesReturned,
		takenNodePortsReturned: takenNodePortsReturned,
		dryRunValidated:        dryRunValidated,

		rangeDivided:                   rangeDivided,
		removedRangeGivesNothing:       removedRangeGivesNothing,
		chosenAddressTakenInEveryRange: chosenAddressTakenInEveryRange,
		freeAddressOfFirstRange:        freeAddressOfFirstRange,
		otherRangesTakeIt:              otherRangesTakeIt,

		clears: []rule.Rule[adjusting]{
			clusterIPsCleared, familiesCleared, nodePortsCleared, healthCheckPortCleared, balancerNodePortsCleared, balancerClassCleared,
			externalPolicyCleared, balancerStatusCleared,
		},
		createChecks:   []rule.Rule[checking]{metadataValid, finalizersQualified},
		metadataChecks: []rule.Rule[checking]{metadataUpdateValid, updateFinalizersQualified},
		updateChecks: []rule.Rule[checking]{
			clusterIPsImmutable, secondaryClusterIPGoesWithPolicy, primaryFamilyImmutable, secondaryFamilyGoesWithPolicy,
			balancerClassImmutable, healthCheckPortImmutable,
		},
		checks: []rule.Rule[checking]{
			topologyAnnotationsAgree, portsNeeded, headlessType, aliasHasNoClusterIPs, aliasHasNoFamilies, externalNameNeeded,
			externalNameSyntax, eachPortValid, selectorSyntax, affinityKnown, affinityTimeoutInLimits, affinityNoneHasNoConfig,
			clusterIPFieldsValid, externalIPsValid, typeKnown, nodePortsByType, nodePortsDistinct, portsDistinct, sourceRangesByType,
			sourceRangesSyntax, balancerNodePortsByType, balancerNodePortsSet, balancerClassByType, balancerClassSyntax,
			externalPolicyForExternalTraffic, externalPolicyKnown, healthCheckPortByType, healthCheckPortValid, internalPolicySet,
			internalPolicyKnown, distributionKnown,
		},
		nameSyntax:  nameSyntax,
		storedStays: storedStays,
		portChecks: []rule.Rule[portChecking]{
			portNameNeeded, portNameSyntax, portNamesUnique, portValid, portProtocolValid, targetPortNumber, targetPortName,
			appProtocolSyntax,
		},
		portNumber:            portNumber,
		protocolKnown:         protocolKnown,
		affinityTimeoutLimits: affinityTimeoutLimits,
		externalIPsStrict:     externalIPsStrict,
		externalIPReachable:   externalIPReachable,
		sourceRangesStrict:    sourceRangesStrict,
		sourceRangesTrimmed:   sourceRangesTrimmed,
		distributions:         distributions,

		statusKeeps:   []rule.Rule[adjusting]{statusUpdateKeepsSpec},
		statusChecks:  []rule.Rule[checking]{ingressValid, conditionsValid},
		ingressByType: ingressByType,
		ingressChecks: []rule.Rule[ingressChecking]{
			ingressIPSyntax, ipModeNeeded, ipModeNeedsIP, ipModeKnown, ingressHostnameSyntax, portStatusValid,
		},
		ingressIPStrict: ingressIPStrict,
		portErrorSyntax: portErrorSyntax,

		releases: []rule.Rule[releasing]{deletedAddressesFreed, deletedNodePortsFreed, deletedHealthCheckPortFreed},
		views:    []rule.Rule[defaulting]{internalPolicyHidden},
		warnings: []rule.Rule[warning]{
			topologyHintsWarned, headlessIgnoresWarned, aliasIgnoresExternalIPsWarned, externalNameIgnoredWarned, clusterIPFormWarned,
			externalIPFormWarned, balancerIPFormWarned, sourceRangeFormWarned, externalIPsWarned, preferCloseWarned,
		},
	}
}

// Book returns the rules of the Service resource with the requirements that they follow, sorted by name.
func Book() []rule.Entry { return rule.Entries(newBook()) }
