package apiserver

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/duration"
)

// validShape checks the options of the shape that the client asked for.
func (rq *request) validShape() error {
	if rq.encoding.as != asTable {
		return nil
	}
	_, err := rq.tableOptions()
	return err
}

func (rq *request) tableOptions() (*metav1.TableOptions, error) {
	options := &metav1.TableOptions{}
	if rq.r.URL.RawQuery != "" {
		if v, ok := rq.r.URL.Query()["includeObject"]; ok {
			options.IncludeObject = metav1.IncludeObjectPolicy(v[0])
		}
	}
	if errs := metav1validation.ValidateTableOptions(options); len(errs) > 0 {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("Unable to convert to Table as requested: %v", errs[0]))
	}
	return options, nil
}

// shape turns an object or a list into what the client asked for with "as" (KEP-555). That is a table of columns for
// people, or the metadata alone.
func (rq *request) shape(obj runtime.Object) (runtime.Object, error) {
	switch rq.encoding.as {
	case asTable:
		return rq.table(obj)
	case asMetadata:
		o, ok := obj.(object)
		if !ok {
			return nil, notAcceptableShape("you requested PartialObjectMetadata, but the requested object is a list")
		}
		return rq.partialMetadata(o), nil
	case asMetadataList:
		if _, single := obj.(object); single {
			return nil, notAcceptableShape("you requested PartialObjectMetadataList, but the requested object is not a list")
		}
		return rq.partialMetadataList(obj)
	}
	return obj, nil
}

// shapeType is the type of a shape. Those of v1 and v1beta1 have the same fields.
func (rq *request) shapeType(kind string) metav1.TypeMeta {
	version := "v1"
	if rq.encoding.beta {
		version = "v1beta1"
	}
	return metav1.TypeMeta{APIVersion: metav1.GroupName + "/" + version, Kind: kind}
}

func (rq *request) partialMetadata(obj object) *metav1.PartialObjectMetadata {
	m := meta.AsPartialObjectMetadata(obj)
	m.TypeMeta = rq.shapeType(asMetadata)
	return m
}

func (rq *request) partialMetadataList(list runtime.Object) (runtime.Object, error) {
	listMeta, err := meta.ListAccessor(list)
	if err != nil {
		return nil, err
	}
	result := &metav1.PartialObjectMetadataList{
		TypeMeta: rq.shapeType(asMetadataList),
		ListMeta: listMetaOf(listMeta),
	}
	err = meta.EachListItem(list, func(o runtime.Object) error {
		m := rq.partialMetadata(o.(object))
		m.TypeMeta = metav1.TypeMeta{}
		result.Items = append(result.Items, *m)
		return nil
	})
	return result, err
}

func listMetaOf(m metav1.ListInterface) metav1.ListMeta {
	return metav1.ListMeta{ResourceVersion: m.GetResourceVersion(), Continue: m.GetContinue(), RemainingItemCount: m.GetRemainingItemCount()}
}

func (rq *request) table(obj runtime.Object) (runtime.Object, error) {
	options, err := rq.tableOptions()
	if err != nil {
		return nil, err
	}
	t := &metav1.Table{TypeMeta: rq.shapeType(asTable), Rows: []metav1.TableRow{}}
	row := func(o runtime.Object) error {
		single := o.(object)
		r := metav1.TableRow{Cells: rq.resource.cells(single)}
		switch options.IncludeObject {
		case metav1.IncludeNone:
		case metav1.IncludeObject:
			single = single.DeepCopyObject().(object)
			single.GetObjectKind().SetGroupVersionKind(rq.resource.gvk)
			r.Object.Object = single
		default:
			r.Object.Object = rq.partialMetadata(single)
		}
		t.Rows = append(t.Rows, r)
		return nil
	}
	if list, err := meta.ListAccessor(obj); err == nil {
		t.ListMeta = listMetaOf(list)
		if err := meta.EachListItem(obj, row); err != nil {
			return nil, err
		}
	} else {
		single := obj.(object)
		t.ResourceVersion = single.GetResourceVersion()
		if single.GetName() != "" { // a bookmark has no row
			if err := row(obj); err != nil {
				return nil, err
			}
		} else {
			t.Rows = append(t.Rows, metav1.TableRow{Cells: make([]any, len(rq.resource.columns)), Object: runtime.RawExtension{Object: rq.partialMetadata(single)}})
		}
	}
	if !rq.columnsSent { // the events of a watch repeat them not
		t.ColumnDefinitions = rq.resource.columns
		rq.columnsSent = true
	}
	return t, nil
}

// tableColumns are the columns that people see of a resource (kubectl get) and the cells of one object.
func tableColumns(name string) ([]metav1.TableColumnDefinition, func(object) []any) {
	switch name {
	case "namespaces":
		return columns("Name", "Status", "Age"), func(o object) []any {
			return []any{o.GetName(), string(o.(*corev1.Namespace).Status.Phase), age(o)}
		}
	case "services":
		return columns("Name", "Type", "Cluster-IP", "External-IP", "Port(s)", "Age", "+Selector"), func(o object) []any {
			svc := o.(*corev1.Service)
			ports := make([]string, len(svc.Spec.Ports))
			for i, p := range svc.Spec.Ports {
				ports[i] = fmt.Sprintf("%d/%s", p.Port, p.Protocol)
				if p.NodePort > 0 {
					ports[i] = fmt.Sprintf("%d:%d/%s", p.Port, p.NodePort, p.Protocol)
				}
			}
			return []any{svc.Name, string(svc.Spec.Type), orNone(strings.Join(svc.Spec.ClusterIPs[:min(1, len(svc.Spec.ClusterIPs))], "")),
				externalIPs(svc), orNone(strings.Join(ports, ",")), age(o), labels.FormatLabels(svc.Spec.Selector)}
		}
	case "endpoints":
		return columns("Name", "Endpoints", "Age"), func(o object) []any {
			return []any{o.GetName(), endpointsText(o.(*corev1.Endpoints)), age(o)}
		}
	case "pods":
		return columns("Name", "Ready", "Status", "Restarts", "Age", "+IP", "+Node", "+Nominated Node", "+Readiness Gates"), podCells
	case "nodes":
		return columns("Name", "Status", "Roles", "Age", "Version", "+Internal-IP", "+External-IP", "+OS-Image", "+Kernel-Version", "+Container-Runtime"), nodeCells
	case "events":
		return columns("Last Seen", "Type", "Reason", "Object", "Message", "+Name"), func(o object) []any {
			e := o.(*corev1.Event)
			seen := e.LastTimestamp.Time
			if seen.IsZero() {
				seen = e.EventTime.Time
			}
			return []any{since(seen), e.Type, e.Reason, strings.ToLower(e.InvolvedObject.Kind) + "/" + e.InvolvedObject.Name, strings.TrimSpace(e.Message), e.Name}
		}
	case "endpointslices":
		return columns("Name", "AddressType", "Ports", "Endpoints", "Age"), func(o object) []any {
			slice := o.(*discoveryv1.EndpointSlice)
			var ports, addresses []string
			for _, p := range slice.Ports {
				switch {
				case p.Port != nil:
					ports = append(ports, strconv.Itoa(int(*p.Port)))
				case p.Name != nil:
					ports = append(ports, *p.Name)
				default:
					ports = append(ports, "*")
				}
			}
			for _, e := range slice.Endpoints {
				addresses = append(addresses, e.Addresses...)
			}
			return []any{slice.Name, string(slice.AddressType), shortened(ports, "<unset>"), shortened(addresses, "<unset>"), age(o)}
		}
	case "servicecidrs":
		return columns("Name", "CIDRs", "Age"), func(o object) []any {
			return []any{o.GetName(), strings.Join(o.(*networkingv1.ServiceCIDR).Spec.CIDRs, ","), age(o)}
		}
	case "ipaddresses":
		return columns("Name", "ParentRef", "Age"), func(o object) []any {
			parent := "<none>"
			if ref := o.(*networkingv1.IPAddress).Spec.ParentRef; ref != nil {
				parts := []string{ref.Resource}
				if ref.Group != "" {
					parts[0] += "." + ref.Group
				}
				if ref.Namespace != "" {
					parts = append(parts, ref.Namespace)
				}
				parent = strings.ToLower(parts[0]) + "/" + strings.Join(append(parts[1:], ref.Name), "/")
			}
			return []any{o.GetName(), parent, age(o)}
		}
	}
	return columns("Name", "Age"), func(o object) []any { return []any{o.GetName(), age(o)} }
}

// columns makes string columns; a leading + marks one that only wide output shows.
func columns(names ...string) []metav1.TableColumnDefinition {
	result := make([]metav1.TableColumnDefinition, len(names))
	for i, n := range names {
		wide, name := strings.HasPrefix(n, "+"), strings.TrimPrefix(n, "+")
		result[i] = metav1.TableColumnDefinition{Name: name, Type: "string"}
		if wide {
			result[i].Priority = 1
		}
		if name == "Name" {
			result[i].Format = "name"
		}
	}
	return result
}

func age(o object) string { return since(o.GetCreationTimestamp().Time) }

func since(t time.Time) string {
	if t.IsZero() {
		return "<unknown>"
	}
	return duration.HumanDuration(time.Since(t))
}

func orNone(s string) string { return cmp.Or(s, "<none>") }

// shortened shows three items and how many more there are.
func shortened(items []string, none string) string {
	const shown = 3
	switch {
	case len(items) == 0:
		return none
	case len(items) > shown:
		return fmt.Sprintf("%s + %d more...", strings.Join(items[:shown], ","), len(items)-shown)
	}
	return strings.Join(items, ",")
}

func externalIPs(svc *corev1.Service) string {
	switch svc.Spec.Type {
	case corev1.ServiceTypeExternalName:
		return svc.Spec.ExternalName
	case corev1.ServiceTypeLoadBalancer:
		var all []string
		for _, ingress := range svc.Status.LoadBalancer.Ingress {
			all = append(all, cmp.Or(ingress.IP, ingress.Hostname))
		}
		slices.Sort(all)
		return cmp.Or(strings.Join(append(slices.Compact(all), svc.Spec.ExternalIPs...), ","), "<pending>")
	}
	return orNone(strings.Join(svc.Spec.ExternalIPs, ","))
}

func endpointsText(e *corev1.Endpoints) string {
	var all []string
	for _, subset := range e.Subsets {
		if len(subset.Ports) == 0 {
			for _, a := range subset.Addresses {
				all = append(all, a.IP)
			}
		}
		for _, p := range subset.Ports {
			for _, a := range subset.Addresses {
				all = append(all, net.JoinHostPort(a.IP, strconv.Itoa(int(p.Port))))
			}
		}
	}
	return shortened(all, "<none>")
}

func podCells(o object) []any {
	pod := o.(*corev1.Pod)
	ready, restarts := 0, int32(0)
	for _, c := range pod.Status.ContainerStatuses {
		restarts += c.RestartCount
		if c.Ready {
			ready++
		}
	}
	status := cmp.Or(pod.Status.Reason, string(pod.Status.Phase))
	if pod.DeletionTimestamp != nil {
		status = "Terminating"
	}
	return []any{pod.Name, fmt.Sprintf("%d/%d", ready, len(pod.Spec.Containers)), status, strconv.Itoa(int(restarts)), age(o),
		orNone(pod.Status.PodIP), orNone(pod.Spec.NodeName), orNone(pod.Status.NominatedNodeName), "<none>"}
}

func nodeCells(o object) []any {
	node := o.(*corev1.Node)
	status := "Unknown"
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			status = map[bool]string{true: "Ready", false: "NotReady"}[c.Status == corev1.ConditionTrue]
		}
	}
	if node.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	var roles []string
	for _, label := range slices.Sorted(maps.Keys(node.Labels)) {
		if role, ok := strings.CutPrefix(label, "node-role.kubernetes.io/"); ok && role != "" {
			roles = append(roles, role)
		}
	}
	address := func(kind corev1.NodeAddressType) string {
		for _, a := range node.Status.Addresses {
			if a.Type == kind {
				return a.Address
			}
		}
		return "<none>"
	}
	info := node.Status.NodeInfo
	return []any{node.Name, status, orNone(strings.Join(roles, ",")), age(o), info.KubeletVersion, address(corev1.NodeInternalIP), address(corev1.NodeExternalIP),
		cmp.Or(info.OSImage, "<unknown>"), cmp.Or(info.KernelVersion, "<unknown>"), cmp.Or(info.ContainerRuntimeVersion, "<unknown>")}
}
