package apiserver

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// What can be wrong with patches.
var patchFaults = []requestWrong{
	{fault.PatchFromCache, func(b *requestBook) {
		var first sync.Map // by UID, the state that the first patch of a Service has seen
		b.changeOfLatest.Wrap(func(right func(*request, object) object) func(*request, object) object {
			return func(rq *request, stored object) object {
				if rq.r.Method != http.MethodPatch {
					return right(rq, stored)
				}
				seen, _ := first.LoadOrStore(stored.GetUID(), stored)
				return seen.(object)
			}
		})
		patched(func(obj, _ object) { obj.SetResourceVersion("") })(b)
	}},
	{fault.PatchMalformed500, func(b *requestBook) {
		b.patchApplied.Wrap(func(right modifying) modifying {
			return func(rq *request, m modification) error {
				err := right(rq, m)
				if apierrors.IsBadRequest(err) {
					return apierrors.NewInternalError(err)
				}
				return err
			}
		})
	}},
	{fault.PatchRefusalLost, func(b *requestBook) {
		b.patchApplied.Wrap(func(right modifying) modifying {
			return func(rq *request, m modification) error {
				err := right(rq, m)
				if e := rq.server.store.get(rq.resource, rq.namespace, rq.name); e != nil && apierrors.IsInvalid(err) {
					rq.answer(http.StatusOK, e.view)
					return nil
				}
				return err
			}
		})
	}},
	{fault.PatchedPortsByNumber, patched(func(obj, _ object) {
		svc := obj.(*corev1.Service)
		seen := map[int32]bool{}
		svc.Spec.Ports = slices.DeleteFunc(svc.Spec.Ports, func(p corev1.ServicePort) bool {
			again := seen[p.Port]
			seen[p.Port] = true
			return again
		})
	})},

	{fault.JSONPatchValueNull, func(b *requestBook) { b.operationsHaveValues.Off() }},
	{fault.JSONPatchFirstOnly, func(b *requestBook) {
		b.operationsApplied.Wrap(func(right operating) operating {
			return func(patch jsonpatch.Patch, document []byte) ([]byte, error) {
				return right(patch[:min(1, len(patch))], document)
			}
		})
	}},
	{fault.JSONPatchPartial, func(b *requestBook) {
		b.operationsApplied.Wrap(func(right operating) operating {
			return func(patch jsonpatch.Patch, document []byte) ([]byte, error) {
				patched, err := right(patch, document)
				for err != nil && len(patch) > 0 {
					patch = patch[:len(patch)-1]
					patched, err = right(patch, document)
				}
				return patched, err
			}
		})
	}},
	{fault.MergePatchNulls, func(b *requestBook) {
		b.mergeApplied.Wrap(func(right merging) merging {
			return func(document, patch []byte) ([]byte, error) {
				content := map[string]any{}
				if _, err := kjson.UnmarshalStrict(patch, &content); err != nil {
					return nil, err
				}
				removeKeys(content, func(_ string, v any) bool { return v == nil })
				without, err := json.Marshal(content)
				if err != nil {
					return nil, err
				}
				return right(document, without)
			}
		})
	}},
	{fault.StrategicMergeServerError, func(b *requestBook) { b.strategicMergeRefused.Replace(serverError) }},
	{fault.StrategicMergePlain, func(b *requestBook) { b.strategicMerge.Replace((*patcher).mergePatch) }},
	{fault.StrategicMergeWithout, strategic(func(patch map[string]any) {
		removeKeys(patch, func(k string, _ any) bool { return strings.HasPrefix(k, "$") })
	})},
	{fault.StrategicMergeMapWhole, strategic(func(patch map[string]any) {
		for parent, child := range map[string]string{"metadata": "labels", "spec": "selector"} {
			if m, ok := patch[parent].(map[string]any); ok {
				if whole, ok := m[child].(map[string]any); ok {
					whole["$patch"] = "replace"
				}
			}
		}
	})},
}

// serverError blames the server for what a client has sent.
func serverError(err error) error { return apierrors.NewInternalError(err) }

// patched is a fault: the result of a patch is changed.
func patched(change func(obj, old object)) func(*requestBook) {
	return changed(func(rq *request, obj, old object) {
		if rq.r.Method == http.MethodPatch {
			change(obj, old)
		}
	})
}

// strategic is a fault: another strategic merge patch is applied.
func strategic(change func(patch map[string]any)) func(*requestBook) {
	return func(b *requestBook) {
		b.strategicMergeApplied.Wrap(func(right strategicMerging) strategicMerging {
			return func(document, patch map[string]any, lookup strategicpatch.LookupPatchMeta) (map[string]any, error) {
				change(patch)
				return right(document, patch, lookup)
			}
		})
	}
}

// What can be wrong with server-side apply.
var applyFaults = []requestWrong{
	{fault.ApplyNeedsObject, func(b *requestBook) { b.applyCreates.Off() }},
	{fault.ApplyManagerOptional, func(b *requestBook) {
		b.applyManagerNamed.Replace(func(o *metav1.PatchOptions, _ types.PatchType) field.ErrorList {
			if o.FieldManager == "" {
				o.FieldManager = "unknown"
			}
			return nil
		})
	}},
	{fault.ApplyJSONOnly, func(b *requestBook) {
		b.configurationRead.Wrap(func(right func([]byte) (map[string]any, error)) func([]byte) (map[string]any, error) {
			return func(data []byte) (map[string]any, error) {
				configuration, err := right(data)
				if err == nil && !json.Valid(data) {
					return nil, apierrors.NewBadRequest("the configuration is not JSON")
				}
				return configuration, err
			}
		})
	}},
	{fault.ApplyProtocolRequired, func(b *requestBook) {
		b.configurationTyped.Wrap(func(right func(*unstructured.Unstructured) error) func(*unstructured.Unstructured) error {
			return func(configuration *unstructured.Unstructured) error {
				ports, _, _ := unstructured.NestedSlice(configuration.Object, "spec", "ports")
				for _, p := range ports {
					if port, is := p.(map[string]any); is && port["protocol"] == nil {
						return errors.New("associative list with keys has an element that omits key field \"protocol\"")
					}
				}
				return right(configuration)
			}
		})
	}},
	{fault.ApplyDuplicateLastWins, func(b *requestBook) {
		b.configurationTyped.Wrap(func(right func(*unstructured.Unstructured) error) func(*unstructured.Unstructured) error {
			return func(configuration *unstructured.Unstructured) error {
				keepLastPorts(configuration.Object)
				return right(configuration)
			}
		})
	}},
	{fault.ApplyServerError, func(b *requestBook) {
		b.configurationRefused.Replace(func(message string) error { return serverError(errors.New(message)) })
	}},
	{fault.ApplyForces, apply(func(a *application) { a.force = true })},
	{fault.ApplyForceIgnored, apply(func(a *application) { a.force = false })},
	{fault.ApplyOneManager, apply(func(a *application) { a.manager = "apply" })},
	{fault.ApplyKeepsOwn, apply(func(a *application) {
		a.live.SetManagedFields(slices.DeleteFunc(a.live.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
			return e.Manager == a.manager && e.Operation == metav1.ManagedFieldsOperationApply
		}))
	})},
	{fault.ApplySelectorsGranular, patched(func(obj, old object) {
		svc := obj.(*corev1.Service)
		for k, v := range old.(*corev1.Service).Spec.Selector {
			if _, ok := svc.Spec.Selector[k]; !ok && svc.Spec.Selector != nil {
				svc.Spec.Selector[k] = v
			}
		}
	})},
}

// apply is a fault: a configuration is applied in another way.
func apply(change func(*application)) func(*requestBook) {
	return func(b *requestBook) {
		b.configurationApplied.Wrap(func(right applying) applying {
			return func(a application) (runtime.Object, error) {
				change(&a)
				return right(a)
			}
		})
	}
}

// keepLastPorts removes all but the last of the ports that have the same number and protocol.
func keepLastPorts(configuration map[string]any) {
	spec, _ := configuration["spec"].(map[string]any)
	ports, _ := spec["ports"].([]any)
	if len(ports) == 0 {
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
