package apiserver

import (
	"reflect"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/schema"
)

// This is what the Go types of the served kinds do not tell about server-side apply. A test demands that nothing is
// missing when a new version of the types comes, and that nothing is left which no served kind has.

// mergeRule is how apply merges the elements of a list or map.
type mergeRule struct {
	relationship schema.ElementRelationship
	keys         []string
}

var (
	asOne = mergeRule{relationship: schema.Atomic}      // who sets it owns the whole
	asSet = mergeRule{relationship: schema.Associative} // each value has owners
)

// byKeys is the rule of a list whose elements have owners, and are told apart by the fields given.
func byKeys(keys ...string) mergeRule {
	return mergeRule{relationship: schema.Associative, keys: keys}
}

// mergeRules are the rules of fields, by JSON name. A list without one has the rule of its patch strategy, and is
// atomic if it has none. All other maps have owners for each key.
var mergeRules = map[reflect.Type]map[string]mergeRule{
	// Where a strategic merge patch knows one key of a list, apply may know two.
	reflect.TypeFor[corev1.Container]():                {"ports": byKeys("containerPort", "protocol")},
	reflect.TypeFor[corev1.EphemeralContainerCommon](): {"ports": byKeys("containerPort", "protocol")},
	reflect.TypeFor[corev1.ServiceSpec](): {
		"ports":    byKeys("port", "protocol"),
		"selector": asOne,
	},
	reflect.TypeFor[corev1.PodSpec](): {
		"nodeSelector":              asOne,
		"topologySpreadConstraints": byKeys("topologyKey", "whenUnsatisfiable"),
	},
	reflect.TypeFor[corev1.PodVolumeHealth](): {"healthConditions": byKeys("status", "reason")},
	// A strategic merge patch merges the addresses of hosts, apply does not. With what follows it is the other way round.
	reflect.TypeFor[corev1.PodStatus](): {
		"hostIPs":      asOne,
		"volumeHealth": byKeys("name"),
	},
	reflect.TypeFor[corev1.ContainerRestartRuleOnExitCodes]():    {"values": asSet},
	reflect.TypeFor[corev1.NodeAllocatableResourceClaimStatus](): {"containers": asSet},
	reflect.TypeFor[corev1.NodePodPreemptionPolicy]():            {"disableResizePreemption": asSet},
	reflect.TypeFor[corev1.ResourceRequirements]():               {"claims": byKeys("name")},
	reflect.TypeFor[corev1.ResourceStatus]():                     {"resources": byKeys("resourceID")},
	reflect.TypeFor[corev1.VolumeMount]():                        {"bindMountOptions": asSet},
	reflect.TypeFor[discoveryv1.Endpoint]():                      {"addresses": asSet},
}

// atomicStructs are the types whose fields have one owner together: references, selectors and what else means something
// only as a whole.
var atomicStructs = []reflect.Type{
	reflect.TypeFor[corev1.ConfigMapKeySelector](),
	reflect.TypeFor[corev1.EndpointAddress](),
	reflect.TypeFor[corev1.EndpointPort](),
	reflect.TypeFor[corev1.EvictionResponder](),
	reflect.TypeFor[corev1.FileKeySelector](),
	reflect.TypeFor[corev1.LocalObjectReference](),
	reflect.TypeFor[corev1.NodeSelector](),
	reflect.TypeFor[corev1.NodeSelectorTerm](),
	reflect.TypeFor[corev1.ObjectFieldSelector](),
	reflect.TypeFor[corev1.ObjectReference](),
	reflect.TypeFor[corev1.ResourceFieldSelector](),
	reflect.TypeFor[corev1.SecretKeySelector](),
	reflect.TypeFor[corev1.TypedLocalObjectReference](),
	reflect.TypeFor[discoveryv1.EndpointPort](),
	reflect.TypeFor[metav1.LabelSelector](),
	reflect.TypeFor[metav1.OwnerReference](),
}

// fieldDefaults are the defaults of fields that an encoded object may lack, by JSON name, as values of JSON. Of a key
// of a list apply reads them too: a port without protocol is the one with TCP.
var fieldDefaults = map[reflect.Type]map[string]any{
	reflect.TypeFor[corev1.AzureDiskVolumeSource](): {
		"cachingMode": string(corev1.AzureDataDiskCachingReadWrite),
		"fsType":      "ext4",
		"kind":        string(corev1.AzureSharedBlobDisk),
		"readOnly":    false,
	},
	reflect.TypeFor[corev1.ContainerPort]():        {"protocol": string(corev1.ProtocolTCP)},
	reflect.TypeFor[corev1.FileKeySelector]():      {"optional": false},
	reflect.TypeFor[corev1.GRPCAction]():           {"service": ""},
	reflect.TypeFor[corev1.ISCSIVolumeSource]():    {"iscsiInterface": "default"},
	reflect.TypeFor[corev1.LocalObjectReference](): {"name": ""},
	reflect.TypeFor[corev1.RBDVolumeSource](): {
		"keyring": "/etc/ceph/keyring",
		"pool":    "rbd",
		"user":    "admin",
	},
	reflect.TypeFor[corev1.ScaleIOVolumeSource](): {
		"fsType":      "xfs",
		"storageMode": "ThinProvisioned",
	},
	reflect.TypeFor[corev1.ServicePort](): {"protocol": string(corev1.ProtocolTCP)},
}
