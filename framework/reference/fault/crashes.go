package fault

import "github.com/service-conformance/conformance/framework/spec"

// Requests of which a server has lost its way: it panicked, or forgot what was to be done.
var (
	SameNumberPatchFails = New("same-number-patch-fails", "A patch that changes nothing fails on a Service that has one node-port number for two protocols.",
		spec.APIStrategicMergeSameNumber, spec.APINodePortShared)
	NumberlessPortFails = New("numberless-port-fails", "A replacement that adds a port without a node port fails.",
		spec.APINodePortKept, spec.APIUpdateReplaces)
	StatusFinalizerKeeps = New("status-finalizer-keeps", "What a Service held stays taken when a write of its status has taken its last finalizer away.",
		spec.AllocFinalizerKeeps, spec.AllocNodePortDeleteReleases, spec.AllocDeleteReleases)
	ChosenBothRefused = New("chosen-both-refused", "A new dual-stack Service that names both addresses is told that they are taken.",
		spec.APIClusterIPsChosen, spec.AllocStaticExact)
	ApplyProtocolRequired = New("apply-protocol-required", "An applied configuration whose ports name no protocol is refused.",
		spec.APIApplyPortProtocolDefault, spec.APIApplyCreates, spec.APIApplyYaml)
	TypeAlonePatchFails = New("type-alone-patch-fails", "A strategic merge patch that says nothing but the type LoadBalancer fails on a Service with two ports.",
		spec.APITypeChange, spec.APILoadBalancerNodePortsDefault)
)
