package fault

import "github.com/service-conformance/conformance/framework/spec"

// The type of a Service and its cluster IPs.
var (
	TypeDefaultNodePort = New("type-default-nodeport", "a Service that names no type becomes a NodePort", spec.APITypeDefault)
	TypeNotValidated    = New("type-not-validated", "any text is taken for a type", spec.APITypeValues)
	TypeIncomplete      = New("type-incomplete", "ExternalName is not known as a type", spec.APITypeValues)
	TypeNoNodePorts     = New("type-no-node-ports", "NodePort and LoadBalancer Services are assigned no node ports", spec.APITypeNodePort, spec.APITypeLoadBalancer)

	ClusterIPNotAssigned = New("cluster-ip-not-assigned", "a Service has a cluster IP only if the client names one",
		spec.APIClusterIPAssigned, spec.APITypeClusterIP, spec.APITypeNodePort, spec.APITypeLoadBalancer, spec.APIClusterIPFromExternalName, spec.AllocDynamicAssigned)
	ClusterIPsInOrder = New("cluster-ips-in-order", "cluster IPs are assigned in the order of the range", spec.APIClusterIPRandom, spec.AllocDynamicRandom, spec.AllocRangeIPv664)
	ClusterIPIgnored  = New("cluster-ip-ignored", "the address that the client names is ignored, another one is assigned",
		spec.APIClusterIPChosen, spec.APIClusterIPsChosen, spec.APIClusterIPFromExternalName, spec.APIClusterIPsFromClusterIP, spec.APIDualStackUpgrade)
	ClusterIPReplaced = New("cluster-ip-replaced", "an address that cannot be had is replaced by another one",
		spec.APIClusterIPOutOfRange, spec.APIClusterIPInUse, spec.APIClusterIPsChosen, spec.APIClusterIPFromExternalName, spec.APIDualStackUpgradeRefused, spec.AllocDuplicateRefused, spec.AllocStaticExact, spec.AllocStaticOutOfRange)
	ClusterIPOtherFamily = New("cluster-ip-other-family", "an address of a family that the cluster does not have is ignored", spec.APIClusterIPOutOfRange)
	ClusterIPLenient     = New("cluster-ip-lenient", "a cluster IP that is no address is ignored", spec.APIClusterIPSyntax, spec.APIClusterIPsValues)
	ClusterIPNotStrict   = New("cluster-ip-not-strict", "addresses with leading zeros and IPv4-mapped addresses are taken", spec.APIClusterIPStrict)
	ClusterIPMutable     = New("cluster-ip-mutable", "an update can change cluster IPs, without any of them being allocated or freed",
		spec.APIClusterIPImmutable, spec.APIClusterIPsSecondaryImmutable)
	ClusterIPNotKept = New("cluster-ip-not-kept", "an update has to repeat the cluster IPs", spec.APIClusterIPKept, spec.AllocWellKnownStays, spec.APITypeChange)

	HeadlessAssigned = New("headless-assigned", "a headless Service is assigned a cluster IP like any other",
		spec.APIClusterIPNone, spec.APIClusterIPsAssigned, spec.APIClusterIPFromExternalName, spec.APITypeChangeHeadless)
	HeadlessAnyType = New("headless-any-type", "a NodePort or LoadBalancer Service can be headless", spec.APIHeadlessType)

	ClusterIPsNotShown          = New("cluster-ips-not-shown", "clusterIPs is left empty", spec.APIClusterIPsAssigned, spec.APIClusterIPsFromClusterIP)
	ClusterIPsContradiction     = New("cluster-ips-contradiction", "where clusterIP and clusterIPs contradict each other, the first of clusterIPs is taken", spec.APIClusterIPsFirst)
	ClusterIPsEmptyEntry        = New("cluster-ips-empty-entry", "an empty entry of clusterIPs is stored", spec.APIClusterIPsEmptyEntry)
	ClusterIPsTruncated         = New("cluster-ips-truncated", "entries of clusterIPs after the second one are dropped", spec.APIClusterIPsAtMostTwo)
	ClusterIPsOfOneFamily       = New("cluster-ips-of-one-family", "a second address of the same family is dropped", spec.APIClusterIPsOnePerFamily)
	ClusterIPsOtherFamilies     = New("cluster-ips-other-families", "cluster IPs need not be of the families that ipFamilies names", spec.APIClusterIPsMatchFamilies)
	ClusterIPsFamilyNotInferred = New("cluster-ips-family-not-inferred", "the families of a Service do not follow from the addresses that it names", spec.APIClusterIPsMatchFamilies, spec.APIIPFamilyPolicyKept)
)
