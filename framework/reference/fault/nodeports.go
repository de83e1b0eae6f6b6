package fault

import "github.com/service-conformance/conformance/framework/spec"

// Node ports.
var (
	NodePortFirstOnly = New("node-port-first-only", "only the first port is assigned a node port", spec.APINodePortAssigned, spec.APILoadBalancerNodePortsDefault, spec.APITypeNodePort)
	NodePortIgnored   = New("node-port-ignored", "a node port that the client names is replaced by an assigned one",
		spec.APINodePortChosen, spec.APINodePortChanged, spec.APILoadBalancerNodePortsExplicit, spec.AllocNodePortStaticAnyBand)
	NodePortAnyNumber          = New("node-port-any-number", "a node port outside the range is accepted", spec.APINodePortOutOfRange)
	NodePortTwice              = New("node-port-twice", "a node port of another Service is accepted", spec.APINodePortInUse, spec.AllocNodePortConcurrentStatic)
	NodePortForTwo             = New("node-port-for-two", "two ports of a Service may have the same node port and protocol", spec.APINodePortDistinct)
	NodePortServerError        = New("node-port-server-error", "a node port that cannot be had is answered with a server error", spec.APINodePortClientError)
	NodePortNotShared          = New("node-port-not-shared", "two protocols of a port may not have the same node port", spec.APINodePortShared)
	NodePortOnClusterIP        = New("node-port-on-cluster-ip", "a node port is stored for type ClusterIP", spec.APINodePortUnneeded)
	NodePortOnAlias            = New("node-port-on-alias", "a node port is stored for type ExternalName and freed with it", spec.APINodePortUnneeded, spec.APINodePortOwner)
	NodePortNotCleared         = New("node-port-not-cleared", "node ports stay in a Service whose new type has none, and are freed with it", spec.APINodePortCleared, spec.APINodePortOwner, spec.APITypeChange)
	NodePortFreedEarly         = New("node-port-freed-early", "what a Service holds is freed while a finalizer still holds the Service", spec.APINodePortOwner, spec.AllocFinalizerKeeps)
	NodePortReassigned         = New("node-port-reassigned", "an update that leaves node ports out is assigned new ones", spec.APINodePortKept, spec.APITypeChange)
	NodePortLeaks              = New("node-port-leaks", "node ports that an update drops are not freed", spec.APINodePortCleared, spec.APINodePortChanged)
	RefusedUpdateKeepsNodePort = New("refused-update-keeps-node-port", "an update that is refused after allocation keeps the node ports that it was given",
		spec.AllocNodePortRefusedUpdateLeaksNothing, spec.APIUpdateRefusedWhole, spec.APINodePortRefusedWhole)
	UpdateDrawsNodePortFirst = New("update-draws-node-port-first", "an update is given the node ports that it leaves to the server before those that it names after them", spec.APINodePortChosen)
	DryRunNextNodePort       = New("dry-run-next-node-port", "a dry run of an update shows, for a node port that it leaves to the server, the one after those that it names before", spec.APIDryRunUpdate)
	NodePortRefusalLeaks     = New("node-port-refusal-leaks", "node ports of a request that is refused are not freed",
		spec.APINodePortRefusedWhole, spec.APIHealthCheckNodePortRefusedWhole, spec.APIUpdateRefusedWhole, spec.AllocNodePortRefusedCreateLeaksNothing, spec.AllocNodePortRefusedUpdateLeaksNothing)
	NodePortRefusalFrees = New("node-port-refusal-frees", "node ports that an update drops are freed even if it is refused", spec.APINodePortRefusedWhole, spec.APIUpdateRefusedWhole)
)
