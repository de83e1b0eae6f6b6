package apiserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/reference/fault"
	"github.com/service-conformance/conformance/framework/spec"
)

// The deliberate bugs that take more than a condition. Where they are switched on, the code calls a function of this file;
// without faults these functions change nothing.

// Faults are the deliberate bugs that are switched on.
type Faults = fault.Set

// A wrong is a fault and what it changes in a book.
type clusterWrong fault.Edit[clusterBook]

func newClusterBookWith(on Faults) *clusterBook {
	return fault.Apply(newClusterBook(), clusterWrongs, on)
}

// faultsOfRules are those that the rules of Services are started with. A server without health check node ports is one for which
// no load balancer needs one.
func (s *Server) faultsOfRules() Faults {
	if !s.lacks(spec.FeatureHealthCheckNodePort) {
		return s.options.Faults
	}
	faults := Faults{fault.HealthCheckNever: true}
	maps.Copy(faults, s.options.Faults)
	return faults
}

// faulty reports whether a fault is on and concerns the resource: faults are bugs of Services, everything else is sound.
func (s *Server) faulty(res *resource, f *fault.Fault) bool {
	return res == services && s.options.Faults.On(f)
}

func (rq *request) faulty(f *fault.Fault) bool { return rq.server.faulty(rq.resource, f) }

// faultyEncoding changes what was negotiated.
func (rq *request) faultyEncoding(e encoding, err error) (encoding, error) {
	switch {
	case err != nil && rq.faulty(fault.AnyMediaIsServed):
		return encoding{media: mediaJSON}, nil
	case err == nil && e.media == mediaJSON && rq.r.Header.Get("Accept") == "*/*" && rq.faulty(fault.AnyIsYAML):
		e.media = mediaYAML
	case e.media == mediaYAML && rq.faulty(fault.YAMLIsJSON):
		e.media = mediaJSON
	case e.media == mediaProtobuf && rq.faulty(fault.ProtobufRefused):
		return encoding{}, notAcceptable()
	}
	return e, err
}

// faultyQuery changes the query parameters.
func (rq *request) faultyQuery(values url.Values) url.Values {
	if values.Has("dryRun") && rq.faulty(fault.DryRunAnyValue) {
		values.Set("dryRun", metav1.DryRunAll)
	}
	known := []string{metav1.FieldValidationIgnore, metav1.FieldValidationWarn, metav1.FieldValidationStrict}
	if !slices.Contains(known, values.Get("fieldValidation")) && rq.faulty(fault.ValidationAnyValue) {
		values.Del("fieldValidation")
	}
	return values
}

// faultyValidation changes what happens to unknown and duplicate fields.
func (rq *request) faultyValidation(validation string) string {
	switch {
	case validation == metav1.FieldValidationStrict && rq.faulty(fault.StrictWarns):
		return metav1.FieldValidationWarn
	case validation == metav1.FieldValidationWarn && rq.faulty(fault.WarnIgnores):
		return metav1.FieldValidationIgnore
	case validation == metav1.FieldValidationIgnore && rq.faulty(fault.IgnoreWarns):
		return metav1.FieldValidationWarn
	}
	return validation
}

// decodeUnchecked reads an object whatever it says it is.
func (s *Server) decodeUnchecked(res *resource, data []byte) (object, error) {
	obj := res.newObject()
	if err := yaml.Unmarshal(data, obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	res.strategy.defaults(s, obj)
	return obj, nil
}

// keepUnknown notes the unknown fields of a body in an annotation of the object that was read from it.
func keepUnknown(obj object, data []byte) {
	strict := codecs().strict[mediaJSON]
	gvk := obj.GetObjectKind().GroupVersionKind()
	if _, _, err := strict.Decode(data, &gvk, nil); err != nil {
		annotations := obj.GetAnnotations()
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations["unknown-fields"] = err.Error()
		obj.SetAnnotations(annotations)
	}
}

// faultyNew changes a new object before it is looked at.
func (s *Server) faultyNew(res *resource, obj object) {
	if s.faulty(res, fault.ResourceVersionDropped) {
		obj.SetResourceVersion("")
	}
	if s.faulty(res, fault.OwnersDropped) {
		obj.SetOwnerReferences(nil)
	}
	if s.faulty(res, fault.NameOptional) && obj.GetName() == "" && obj.GetGenerateName() == "" {
		obj.SetGenerateName("service-")
	}
	if s.faulty(res, fault.NamespaceDefaulted) && s.store.namespaceState(obj.GetNamespace()) != nil {
		obj.SetNamespace(metav1.NamespaceDefault)
	}
	if s.faulty(res, fault.NotReadyLost) {
		obj.(*corev1.Service).Spec.PublishNotReadyAddresses = false
	}
}

// faultyGeneratedName changes a name that was made from generateName.
func (s *Server) faultyGeneratedName(res *resource, obj object) {
	switch {
	case s.faulty(res, fault.GenerateNameConstant):
		obj.SetName(strings.TrimSuffix(obj.GetName(), obj.GetName()[len(obj.GetName())-generatedSuffix:]) + "00000")
	case s.faulty(res, fault.GenerateNameLong):
		obj.SetName(obj.GetGenerateName() + obj.GetName()[len(obj.GetName())-generatedSuffix:])
	}
}

// faultyUpdate changes the body of a PUT.
func (rq *request) faultyUpdate(obj, old object) {
	if old == nil {
		return
	}
	if rq.faulty(fault.UIDIgnored) {
		obj.SetUID(old.GetUID())
	}
	if rq.faulty(fault.UpdateMerges) {
		svc, was := obj.(*corev1.Service), old.(*corev1.Service)
		if len(svc.Spec.Selector) == 0 {
			svc.Spec.Selector = was.Spec.Selector
		}
		if len(svc.Spec.ExternalIPs) == 0 {
			svc.Spec.ExternalIPs = was.Spec.ExternalIPs
		}
	}
}

// firstPatched holds, by UID, the state that the first patch of a Service has seen (fault patch-from-cache).
var firstPatched sync.Map

// faultyPatchBase is what a patch starts from.
func (rq *request) faultyPatchBase(stored object) object {
	if rq.r.Method != http.MethodPatch || !rq.faulty(fault.PatchFromCache) {
		return stored
	}
	first, _ := firstPatched.LoadOrStore(stored.GetUID(), stored)
	return first.(object)
}

// faultyPatched changes the result of a patch.
func (rq *request) faultyPatched(obj, old object) {
	if rq.r.Method != http.MethodPatch {
		return
	}
	if rq.faulty(fault.PatchFromCache) {
		obj.SetResourceVersion("")
	}
	if rq.faulty(fault.UIDIgnored) {
		obj.SetUID(old.GetUID())
	}
	if rq.faulty(fault.PatchedPortsByNumber) {
		svc := obj.(*corev1.Service)
		seen := map[int32]bool{}
		svc.Spec.Ports = slices.DeleteFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
			again := seen[p.Port]
			seen[p.Port] = true
			return again
		})
	}
	if rq.faulty(fault.ApplySelectorsGranular) {
		svc := obj.(*corev1.Service)
		for k, v := range old.(*corev1.Service).Spec.Selector {
			if _, ok := svc.Spec.Selector[k]; !ok && svc.Spec.Selector != nil {
				svc.Spec.Selector[k] = v
			}
		}
	}
}

// faultyPatchRefusal changes the answer to a patch that is refused.
func (rq *request) faultyPatchRefusal(err error) error {
	switch {
	case apierrors.IsBadRequest(err) && rq.faulty(fault.PatchMalformed500):
		return apierrors.NewInternalError(err)
	case apierrors.IsInvalid(err) && rq.faulty(fault.PatchRefusalLost):
		if e := rq.server.store.get(rq.resource, rq.namespace, rq.name); e != nil {
			rq.answer(http.StatusOK, e.view)
			return nil
		}
	}
	return err
}

// faultyOperations changes the operations of a JSON patch.
func (rq *request) faultyOperations(patch jsonpatch.Patch, document []byte) jsonpatch.Patch {
	if rq.faulty(fault.JSONPatchFirstOnly) && len(patch) > 1 {
		return patch[:1]
	}
	for rq.faulty(fault.JSONPatchPartial) && len(patch) > 0 {
		if _, err := applyOperations(patch, document); err == nil {
			break
		}
		patch = patch[:len(patch)-1]
	}
	return patch
}

// faultyMergePatch changes the body of a JSON merge patch.
func (rq *request) faultyMergePatch(patch map[string]any, data []byte) []byte {
	if !rq.faulty(fault.MergePatchNulls) {
		return data
	}
	removeKeys(patch, func(_ string, v any) bool { return v == nil })
	data, err := json.Marshal(patch)
	if err != nil { // it was JSON before
		return nil
	}
	return data
}

// faultyStrategicPatch changes the body of a strategic merge patch.
func (rq *request) faultyStrategicPatch(patch map[string]any) {
	if rq.faulty(fault.StrategicMergeWithout) {
		removeKeys(patch, func(k string, _ any) bool { return strings.HasPrefix(k, "$") })
	}
	if rq.faulty(fault.StrategicMergeMapWhole) {
		for parent, child := range map[string]string{"metadata": "labels", "spec": "selector"} {
			if m, ok := patch[parent].(map[string]any); ok {
				if whole, ok := m[child].(map[string]any); ok {
					whole["$patch"] = "replace"
				}
			}
		}
	}
}

// removeKeys removes the entries of all maps in a document that the function chooses.
func removeKeys(document any, chosen func(key string, value any) bool) {
	switch d := document.(type) {
	case map[string]any:
		for k, v := range d {
			if chosen(k, v) {
				delete(d, k)
				continue
			}
			removeKeys(v, chosen)
		}
	case []any:
		for _, v := range d {
			removeKeys(v, chosen)
		}
	}
}

// faultyConfiguration changes the configuration of a server-side apply.
func (rq *request) faultyConfiguration(configuration map[string]any) {
	spec, _ := configuration["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	if !rq.faulty(fault.ApplyDuplicateLastWins) || len(ports) == 0 {
		return
	}
	last := map[string]any{}
	for _, p := range ports {
		last[portKey(p)] = p
	}
	spec["ports"] = slices.DeleteFunc(ports, func(p any) bool { return fmt.Sprint(last[portKey(p)]) != fmt.Sprint(p) })
}

func portKey(port any) string {
	p, _ := port.(map[string]any)
	protocol := p["protocol"]
	if protocol == nil {
		protocol = "TCP"
	}
	return fmt.Sprint(p["port"], "/", protocol)
}

// faultyApplied changes the object that a configuration is merged into.
func (rq *request) faultyApplied(live object, manager string) {
	if rq.faulty(fault.ApplyKeepsOwn) {
		live.SetManagedFields(slices.DeleteFunc(live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == manager && e.Operation == metav1.ManagedFieldsOperationApply
		}))
	}
}

// faultyApply changes the manager of an apply and whether it is forced.
func (rq *request) faultyApply(manager string, force bool) (string, bool) {
	if rq.faulty(fault.ApplyOneManager) {
		manager = "apply"
	}
	return manager, (force || rq.faulty(fault.ApplyForces)) && !rq.faulty(fault.ApplyForceIgnored)
}

// faultyViewer is how readers see the successor of an object.
func (s *Server) faultyViewer(res *resource, old object, view func(object) object) func(object) object {
	if !s.faulty(res, fault.ResourceVersionOfSpec) {
		return view
	}
	return func(obj object) object {
		if equality.Semantic.DeepEqual(obj.(*corev1.Service).Spec, old.(*corev1.Service).Spec) {
			obj.SetResourceVersion(old.GetResourceVersion())
		}
		return view(obj)
	}
}

// faultyCollectionDeleted does what a deletecollection should not do.
func (rq *request) faultyCollectionDeleted(obj object) {
	if !rq.faulty(fault.CollectionLeaks) {
		return
	}
	for _, ip := range clusterIPs(obj.(*corev1.Service)) {
		_ = rq.server.rules.Load().Reserve(ip) // one that is in use again has leaked all the same
	}
}

// faultyNamespace is the namespace that is listed.
func (rq *request) faultyNamespace() string {
	switch {
	case rq.faulty(fault.ListEverywhere):
		return ""
	case rq.namespace == "" && rq.faulty(fault.ListDefaultOnly):
		return metav1.NamespaceDefault
	}
	return rq.namespace
}

// faultyDiscovery changes what discovery says of Services.
func (s *Server) faultyDiscovery(list *metav1.APIResourceList) {
	list.APIResources = slices.DeleteFunc(list.APIResources, func(r metav1.APIResource) bool {
		return r.Name == "services/status" && s.options.Faults.On(fault.DiscoveryWithoutStatus)
	})
	for i := range list.APIResources {
		r := &list.APIResources[i]
		if r.Name != services.name {
			continue
		}
		if s.options.Faults.On(fault.DiscoveryWithoutCollection) {
			r.Verbs = slices.DeleteFunc(slices.Clone(r.Verbs), func(v string) bool { return v == "deletecollection" })
		}
		if s.options.Faults.On(fault.DiscoveryWithoutNames) {
			r.ShortNames, r.Categories = nil, nil
		}
	}
}
