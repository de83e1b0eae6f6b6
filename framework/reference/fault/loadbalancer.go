package fault

import "github.com/service-conformance/conformance/framework/spec"

// Fields of type LoadBalancer.
var (
	BalancerNodePortsOff        = New("balancer-node-ports-off", "allocateLoadBalancerNodePorts is false by default", spec.APILoadBalancerNodePortsDefault)
	BalancerNodePortsAlways     = New("balancer-node-ports-always", "allocateLoadBalancerNodePorts false is ignored", spec.APILoadBalancerNodePortsDisabled, spec.APILoadBalancerNodePortsExplicit)
	BalancerNodePortsDropped    = New("balancer-node-ports-dropped", "allocateLoadBalancerNodePorts false removes node ports that are named", spec.APILoadBalancerNodePortsExplicit, spec.APILoadBalancerNodePortsDisabledLater)
	BalancerNodePortsAnyType    = New("balancer-node-ports-any-type", "allocateLoadBalancerNodePorts is accepted on every type", spec.APILoadBalancerNodePortsType)
	BalancerNodePortsNotCleared = New("balancer-node-ports-not-cleared", "allocateLoadBalancerNodePorts is not cleared by a change of the type", spec.APILoadBalancerNodePortsCleared, spec.APITypeChange)

	BalancerClassDropped      = New("balancer-class-dropped", "loadBalancerClass is dropped", spec.APILoadBalancerClassMeaning)
	BalancerClassDefaulted    = New("balancer-class-defaulted", "loadBalancerClass has a default", spec.APILoadBalancerClassMeaning)
	BalancerClassUnchecked    = New("balancer-class-unchecked", "any text is a loadBalancerClass", spec.APILoadBalancerClassSyntax)
	BalancerClassPrefixNeeded = New("balancer-class-prefix-needed", "loadBalancerClass needs a prefix", spec.APILoadBalancerClassSyntax)
	BalancerClassAnyType      = New("balancer-class-any-type", "loadBalancerClass is accepted on every type", spec.APILoadBalancerClassType)
	BalancerClassLate         = New("balancer-class-late", "loadBalancerClass can be set as long as it is not set", spec.APILoadBalancerClassWhenSet)
	BalancerClassCreateOnly   = New("balancer-class-create-only", "loadBalancerClass can be set on create only", spec.APILoadBalancerClassWhenSet)
	BalancerClassMutable      = New("balancer-class-mutable", "loadBalancerClass can be changed", spec.APILoadBalancerClassImmutable)
	BalancerClassNotCleared   = New("balancer-class-not-cleared", "loadBalancerClass is not cleared by a change of the type", spec.APILoadBalancerClassCleared)

	BalancerIPDropped      = New("balancer-ip-dropped", "loadBalancerIP is dropped", spec.APILoadBalancerIP)
	SourceRangesUnchecked  = New("source-ranges-unchecked", "source ranges are not validated", spec.APILoadBalancerSourceRanges, spec.APILoadBalancerSourceRangesStrict)
	SourceRangesUntrimmed  = New("source-ranges-untrimmed", "source ranges may not have blanks around them", spec.APILoadBalancerSourceRanges)
	SourceRangesSloppy     = New("source-ranges-sloppy", "source ranges may have host bits and leading zeros", spec.APILoadBalancerSourceRangesStrict)
	SourceRangesAnyType    = New("source-ranges-any-type", "source ranges are accepted on every type", spec.APILoadBalancerSourceRangesType)
	BalancerSingleProtocol = New("balancer-single-protocol", "all ports of a load balancer have one protocol", spec.APILoadBalancerMixedProtocols)
)

// The health check node port.
var (
	HealthCheckAlways      = New("health-check-always", "every load balancer gets a health check node port", spec.APIHealthCheckNodePortApplies)
	HealthCheckNever       = New("health-check-never", "no load balancer needs a health check node port", spec.APIHealthCheckNodePortApplies, spec.APIHealthCheckNodePortAssigned, spec.APIHealthCheckNodePortChosen)
	HealthCheckNotReserved = New("health-check-not-reserved", "health check node ports are free for others",
		spec.APIHealthCheckNodePortAssigned, spec.APIHealthCheckNodePortChosen, spec.APIHealthCheckNodePortInUse)
	HealthCheckAnyNumber     = New("health-check-any-number", "a health check node port outside the range is accepted", spec.APIHealthCheckNodePortOutOfRange)
	HealthCheckServerError   = New("health-check-server-error", "a health check node port that cannot be had is answered with a server error", spec.APIHealthCheckNodePortClientError)
	HealthCheckUnneeded      = New("health-check-unneeded", "a health check node port is accepted where it is not needed", spec.APIHealthCheckNodePortUnneeded)
	HealthCheckNotCleared    = New("health-check-not-cleared", "a health check node port that is no longer needed is not cleared", spec.APIHealthCheckNodePortCleared)
	HealthCheckUpdateLeaks   = New("health-check-update-leaks", "a health check node port that is no longer needed is not freed", spec.APIHealthCheckNodePortCleared, spec.APITypeChange)
	HealthCheckDeletionLeaks = New("health-check-deletion-leaks", "the health check node port of a deleted Service is not freed", spec.APIHealthCheckNodePortReleased)
	HealthCheckMutable       = New("health-check-mutable", "the health check node port can be changed", spec.APIHealthCheckNodePortImmutable)
	HealthCheckNotKept       = New("health-check-not-kept", "an update that leaves the health check node port out removes it", spec.APIHealthCheckNodePortImmutable, spec.APITypeChange)
)
