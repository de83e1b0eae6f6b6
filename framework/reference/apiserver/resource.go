package apiserver

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// object is a typed API object. Objects in the store are never changed: a write replaces them.
type object interface {
	runtime.Object
	metav1.Object
}

// transaction is what a strategy holds open between preparing a write and the store's answer to it. Exactly one of the
// two methods is called.
type transaction interface {
	Commit()
	Rollback()
}

// noTransaction is for writes that hold nothing.
type noTransaction struct{}

func (noTransaction) Commit()   {}
func (noTransaction) Rollback() {}

// strategy is what differs between resources: defaulting, validation and what a write does besides storing the object.
// The generic machinery has set the system metadata before it calls create or update.
type strategy interface {
	// defaults fills in what the schema gives a default; called on every decoded object.
	defaults(s *Server, obj object)
	// create prepares and validates a new object in place.
	create(s *Server, obj object, dryRun bool) (transaction, error)
	// update prepares and validates obj as the successor of old; subresource is "", "status" or "finalize".
	update(s *Server, obj, old object, subresource string, dryRun bool) (transaction, error)
	// deleted is called once after the object has left the store.
	deleted(s *Server, obj object)
	// warnings are the Warning headers of a write to the object, or to a subresource of it; old is nil on create.
	warnings(s *Server, obj, old object, subresource string) []string
}

// resource describes one served resource. Descriptions are shared by all servers and never change.
type resource struct {
	index              int // position in resources and in the tables of a store
	gvk                schema.GroupVersionKind
	name, singular     string
	shortNames         []string
	categories         []string // what "kubectl get <category>" expands
	namespaced         bool
	subresources       []string // "status", "finalize", "proxy"
	createOnUpdate     bool     // PUT of a name that does not exist creates it
	returnsDeleted     bool     // DELETE answers with the object instead of a Status
	noDeleteCollection bool
	noCollector        bool                     // propagation policies have no effect
	deprecated         func(minor int) []string // the warnings of every request to the resource; nil is none
	newObject          func() object
	newList            func(metav1.ListMeta, []object) runtime.Object
	selectableFields   []string // besides metadata.name and, where there are namespaces, metadata.namespace
	fieldValues        func(object, fields.Set)
	columns            []metav1.TableColumnDefinition
	cells              func(object) []any
	strategy           strategy
}

func (r *resource) groupResource() schema.GroupResource {
	return schema.GroupResource{Group: r.gvk.Group, Resource: r.name}
}

func (r *resource) groupVersion() schema.GroupVersion { return r.gvk.GroupVersion() }

// verbs are the verbs of the resource itself, as discovery lists them.
func (r *resource) verbs() []string {
	verbs := []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"}
	if r.noDeleteCollection {
		verbs = slices.DeleteFunc(verbs, func(v string) bool { return v == "deletecollection" })
	}
	return verbs
}

// field returns the label and value set that field selectors are matched against.
func (r *resource) fieldSet(obj object) fields.Set {
	set := fields.Set{"metadata.name": obj.GetName()}
	if r.namespaced {
		set["metadata.namespace"] = obj.GetNamespace()
	}
	if r.fieldValues != nil {
		r.fieldValues(obj, set)
	}
	return set
}

// selectable reports whether field selectors may use the field.
func (r *resource) selectable(field string) bool {
	return field == "metadata.name" || r.namespaced && field == "metadata.namespace" || slices.Contains(r.selectableFields, field)
}

// listOf makes the newList function of a list type from its constructor and its items. The items of a list carry no
// apiVersion and kind of their own.
func listOf[T any, L runtime.Object](build func(metav1.ListMeta, []T) L, typeMeta func(*T) *metav1.TypeMeta) func(metav1.ListMeta, []object) runtime.Object {
	return func(m metav1.ListMeta, objs []object) runtime.Object {
		items := make([]T, len(objs))
		for i, o := range objs {
			items[i] = *any(o).(*T)
			*typeMeta(&items[i]) = metav1.TypeMeta{}
		}
		return build(m, items)
	}
}

var (
	namespaces = &resource{
		gvk: corev1.SchemeGroupVersion.WithKind("Namespace"), name: "namespaces", singular: "namespace", shortNames: []string{"ns"},
		subresources: []string{"status", "finalize"}, returnsDeleted: true, noDeleteCollection: true, noCollector: true,
		newObject: func() object { return &corev1.Namespace{} },
		newList: listOf(func(m metav1.ListMeta, items []corev1.Namespace) *corev1.NamespaceList {
			return &corev1.NamespaceList{TypeMeta: listType(corev1.SchemeGroupVersion, "NamespaceList"), ListMeta: m, Items: items}
		}, func(o *corev1.Namespace) *metav1.TypeMeta { return &o.TypeMeta }),
		selectableFields: []string{"status.phase"},
		fieldValues: func(o object, set fields.Set) {
			set["status.phase"] = string(o.(*corev1.Namespace).Status.Phase)
		},
		strategy: namespaceStrategy{},
	}
	services = &resource{
		gvk: corev1.SchemeGroupVersion.WithKind("Service"), name: "services", singular: "service", shortNames: []string{"svc"}, categories: []string{"all"},
		namespaced: true, subresources: []string{"status", "proxy"}, createOnUpdate: true, returnsDeleted: true,
		newObject: func() object { return &corev1.Service{} },
		newList: listOf(func(m metav1.ListMeta, items []corev1.Service) *corev1.ServiceList {
			return &corev1.ServiceList{TypeMeta: listType(corev1.SchemeGroupVersion, "ServiceList"), ListMeta: m, Items: items}
		}, func(o *corev1.Service) *metav1.TypeMeta { return &o.TypeMeta }),
		selectableFields: []string{"spec.clusterIP", "spec.type"},
		fieldValues: func(o object, set fields.Set) {
			set["spec.clusterIP"], set["spec.type"] = o.(*corev1.Service).Spec.ClusterIP, string(o.(*corev1.Service).Spec.Type)
		},
		strategy: serviceStrategy{},
	}
	endpoints = &resource{
		gvk: corev1.SchemeGroupVersion.WithKind("Endpoints"), name: "endpoints", singular: "endpoints", shortNames: []string{"ep"},
		namespaced: true, createOnUpdate: true,
		newObject: func() object { return &corev1.Endpoints{} },
		newList: listOf(func(m metav1.ListMeta, items []corev1.Endpoints) *corev1.EndpointsList {
			return &corev1.EndpointsList{TypeMeta: listType(corev1.SchemeGroupVersion, "EndpointsList"), ListMeta: m, Items: items}
		}, func(o *corev1.Endpoints) *metav1.TypeMeta { return &o.TypeMeta }),
		deprecated: endpointsDeprecated,
		strategy:   endpointsStrategy{},
	}
	pods = &resource{
		gvk: corev1.SchemeGroupVersion.WithKind("Pod"), name: "pods", singular: "pod", shortNames: []string{"po"}, categories: []string{"all"},
		namespaced: true, subresources: []string{"status"}, returnsDeleted: true,
		newObject: func() object { return &corev1.Pod{} },
		newList: listOf(func(m metav1.ListMeta, items []corev1.Pod) *corev1.PodList {
			return &corev1.PodList{TypeMeta: listType(corev1.SchemeGroupVersion, "PodList"), ListMeta: m, Items: items}
		}, func(o *corev1.Pod) *metav1.TypeMeta { return &o.TypeMeta }),
		selectableFields: []string{"spec.nodeName", "spec.restartPolicy", "spec.schedulerName", "spec.serviceAccountName",
			"spec.hostNetwork", "status.phase", "status.podIP", "status.podIPs", "status.nominatedNodeName"},
		fieldValues: podFields,
		strategy:    podStrategy{},
	}
	nodes = &resource{
		gvk: corev1.SchemeGroupVersion.WithKind("Node"), name: "nodes", singular: "node", shortNames: []string{"no"},
		subresources: []string{"status"},
		newObject:    func() object { return &corev1.Node{} },
		newList: listOf(func(m metav1.ListMeta, items []corev1.Node) *corev1.NodeList {
			return &corev1.NodeList{TypeMeta: listType(corev1.SchemeGroupVersion, "NodeList"), ListMeta: m, Items: items}
		}, func(o *corev1.Node) *metav1.TypeMeta { return &o.TypeMeta }),
		selectableFields: []string{"spec.unschedulable"},
		fieldValues:      nodeFields,
		strategy:         nodeStrategy{},
	}
	events = &resource{
		gvk: corev1.SchemeGroupVersion.WithKind("Event"), name: "events", singular: "event", shortNames: []string{"ev"},
		namespaced: true, createOnUpdate: true, noCollector: true,
		newObject: func() object { return &corev1.Event{} },
		newList: listOf(func(m metav1.ListMeta, items []corev1.Event) *corev1.EventList {
			return &corev1.EventList{TypeMeta: listType(corev1.SchemeGroupVersion, "EventList"), ListMeta: m, Items: items}
		}, func(o *corev1.Event) *metav1.TypeMeta { return &o.TypeMeta }),
		selectableFields: []string{"involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
			"involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath", "reason", "reportingComponent", "source", "type"},
		fieldValues: eventFields,
		strategy:    eventStrategy{},
	}
	endpointSlices = &resource{
		gvk: discoveryv1.SchemeGroupVersion.WithKind("EndpointSlice"), name: "endpointslices", singular: "endpointslice",
		namespaced: true,
		newObject:  func() object { return &discoveryv1.EndpointSlice{} },
		newList: listOf(func(m metav1.ListMeta, items []discoveryv1.EndpointSlice) *discoveryv1.EndpointSliceList {
			return &discoveryv1.EndpointSliceList{TypeMeta: listType(discoveryv1.SchemeGroupVersion, "EndpointSliceList"), ListMeta: m, Items: items}
		}, func(o *discoveryv1.EndpointSlice) *metav1.TypeMeta { return &o.TypeMeta }),
		strategy: endpointSliceStrategy{},
	}
	serviceCIDRs = &resource{
		gvk: networkingv1.SchemeGroupVersion.WithKind("ServiceCIDR"), name: "servicecidrs", singular: "servicecidr",
		subresources: []string{"status"},
		newObject:    func() object { return &networkingv1.ServiceCIDR{} },
		newList: listOf(func(m metav1.ListMeta, items []networkingv1.ServiceCIDR) *networkingv1.ServiceCIDRList {
			return &networkingv1.ServiceCIDRList{TypeMeta: listType(networkingv1.SchemeGroupVersion, "ServiceCIDRList"), ListMeta: m, Items: items}
		}, func(o *networkingv1.ServiceCIDR) *metav1.TypeMeta { return &o.TypeMeta }),
		strategy: serviceCIDRStrategy{},
	}
	ipAddresses = &resource{
		gvk: networkingv1.SchemeGroupVersion.WithKind("IPAddress"), name: "ipaddresses", singular: "ipaddress", shortNames: []string{"ip"},
		newObject: func() object { return &networkingv1.IPAddress{} },
		newList: listOf(func(m metav1.ListMeta, items []networkingv1.IPAddress) *networkingv1.IPAddressList {
			return &networkingv1.IPAddressList{TypeMeta: listType(networkingv1.SchemeGroupVersion, "IPAddressList"), ListMeta: m, Items: items}
		}, func(o *networkingv1.IPAddress) *metav1.TypeMeta { return &o.TypeMeta }),
		strategy: ipAddressStrategy{},
	}
)

// resources are all served resources; their index is their place here. Namespaces come first: the store looks
// there before it takes an object with a namespace.
var resources = func() []*resource {
	all := []*resource{namespaces, services, endpoints, pods, nodes, events, endpointSlices, serviceCIDRs, ipAddresses}
	for i, r := range all {
		r.index = i
		r.columns, r.cells = tableColumns(r.name)
	}
	return all
}()

// groupVersions are the groups of the resources in the order of discovery.
var groupVersions = []schema.GroupVersion{corev1.SchemeGroupVersion, discoveryv1.SchemeGroupVersion, networkingv1.SchemeGroupVersion}

// findResource returns the resource with a plural name in a group version, nil if there is none.
func findResource(gv schema.GroupVersion, name string) *resource {
	for _, r := range resources {
		if r.name == name && r.gvk.Group == gv.Group && r.gvk.Version == gv.Version {
			return r
		}
	}
	return nil
}

func listType(gv schema.GroupVersion, kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: gv.String(), Kind: kind}
}
