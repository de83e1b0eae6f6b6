package apiserver

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"sync"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/apimachinery/pkg/util/mergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
	kjson "sigs.k8s.io/json"
	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
)

// maxPatchOperations is the limit of a JSON patch, that of a real server.
const maxPatchOperations = 10000

// limitCopies keeps a JSON patch from growing a document without bound by copying it into itself. The limit is a variable of
// the library, so it is set once.
var limitCopies = sync.OnceFunc(func() { jsonpatch.AccumulatedCopySizeLimit = 2 * maxBody })

// patch handles PATCH on an object or a subresource.
func (rq *request) patch() error {
	media, err := rq.bodyMedia(string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType))
	if err == nil && rq.server.lacks(spec.FeatureServerSideApply) && media == string(types.ApplyYAMLPatchType) {
		err = unsupportedMedia(string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType))
	}
	if err != nil {
		return err
	}
	if rq.r.Header.Get("Content-Type") == "" {
		return unsupportedMedia(string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType))
	}
	patchType := types.PatchType(media)
	options, force, err := rq.patchOptions(patchType)
	if err != nil {
		return err
	}
	data, err := rq.body()
	if err != nil {
		return err
	}
	p := &patcher{rq: rq, options: options, data: data}
	m := modification{options: options}
	switch patchType {
	case types.JSONPatchType:
		m.next = p.jsonPatch
	case types.MergePatchType:
		m.next = p.mergePatch
	case types.StrategicMergePatchType:
		m.next = func(old object) (object, error) { return rq.book.strategicMerge.Do(p, old) }
	default:
		m.apply, m.create = true, rq.book.applyCreates.Do(rq)
		m.next, err = p.apply(force)
		if err != nil {
			return err
		}
	}
	return rq.book.patchApplied.Do(rq, m)
}

// Rules for patches. Libraries know how patches are merged.
var (
	patchApplied = rule.New("patch-applied", (*request).modify, spec.APIPatchValidation, spec.APIPatchMalformed)

	operationsHaveValues = rule.New("json-patch-values", checkOperations, spec.APIJSONPatchValue)

	operationsApplied = rule.New("json-patch-applied", applyOperations, spec.APIJSONPatch, spec.APIJSONPatchAtomic, spec.APIJSONPatchSameNumber)

	mergeApplied = rule.New("merge-patch-applied", jsonpatch.MergePatch, spec.APIMergePatch, spec.APIMergePatchSameNumber)

	strategicMerge = rule.New("strategic-merge-patch", (*patcher).strategicMergePatch, spec.APIStrategicMergePorts, spec.APIStrategicMergeSameNumber)

	strategicMergeRefused = rule.New("strategic-merge-patch-refused", strategicPatchError, spec.APIStrategicMergeClientError)

	strategicMergeApplied = rule.New("strategic-merge-patch-applied", strategicMergeDocument, spec.APIStrategicMergePorts, spec.APIStrategicMergeMap)
)

// Rules for server-side apply.
var (
	applyCreates = rule.New("apply-creates", func(rq *request) bool { return rq.subresource == "" }, spec.APIApplyCreates)

	applyManagerNamed = rule.New("apply-manager-named", func(o *metav1.PatchOptions, patchType types.PatchType) field.ErrorList {
		if patchType == types.ApplyYAMLPatchType && o.FieldManager == "" {
			return field.ErrorList{field.Required(field.NewPath("fieldManager"), "is required for apply patch")}
		}
		return nil
	}, spec.APIApplyManagerRequired)

	configurationRead = rule.New("apply-configuration-read", func(data []byte) (map[string]any, error) {
		configuration := map[string]any{}
		if err := yaml.Unmarshal(data, &configuration); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding YAML: %v", err))
		}
		return configuration, nil
	}, spec.APIApplyYaml)

	// A stray type, such as a list where metadata is expected, would not survive the accessors.
	configurationTyped = rule.New("apply-configuration-typed", func(configuration *unstructured.Unstructured) error {
		_, err := typeConverter().ObjectToTyped(configuration)
		return err
	}, spec.APIApplyPortDuplicate)

	configurationRefused = rule.New("apply-configuration-refused", func(message string) error {
		return apierrors.NewBadRequest(message)
	}, spec.APIApplyClientError)

	configurationApplied = rule.New("apply-configuration-merged", func(a application) (runtime.Object, error) {
		return a.fields.Apply(a.live, a.configuration, a.manager, a.force)
	}, spec.APIApplyManagedFields, spec.APIApplyConflict, spec.APIApplyForce, spec.APIApplyShared, spec.APIApplyRemovesOwn, spec.APIApplyUpdateConflict,
		spec.APIApplyAtomicLists, spec.APIApplyPortKeys, spec.APIApplyPortProtocolDefault, spec.APIApplyConditionsKeys)
)

// application is a configuration that is applied to a live object on behalf of a manager.
type application struct {
	fields        *managedfields.FieldManager
	live          object
	configuration *unstructured.Unstructured
	manager       string
	force         bool
}

// patcher applies one patch to whatever is stored.
type patcher struct {
	rq      *request
	options writeOptions
	data    []byte
	warned  bool // a patch that is tried again warns once
}

// strictProblems refuses, warns of or ignores unknown and duplicate fields.
func (p *patcher) strictProblems(errs []error) error {
	if len(errs) == 0 || !p.options.strict() {
		return nil
	}
	strict := newStrictError(p.rq.resource, errs)
	if p.options.refusesUnknown {
		return p.invalid("strict decoding error: " + strings.Join(strict.messages, ", "))
	}
	if !p.warned {
		p.warned = true
		p.rq.warn(strict.warnings...)
	}
	return nil
}

// invalid is the refusal of a patch whose result is no object of the kind.
func (p *patcher) invalid(message string) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{field.Invalid(field.NewPath("patch"), string(p.data), message)})
}

// jsonPatch applies RFC 6902.
func (p *patcher) jsonPatch(old object) (object, error) {
	limitCopies()
	patch, err := jsonpatch.DecodePatch(p.data)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if len(patch) > maxPatchOperations {
		return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf("The allowed maximum operations in a JSON patch is %d, got %d", maxPatchOperations, len(patch)))
	}
	// Unknown fields of an operation are ignored by the library, duplicate ones are not defined by the RFC.
	var operations []struct {
		Op    string `json:"op"`
		Path  string `json:"path"`
		From  string `json:"from"`
		Value any    `json:"value"`
	}
	strict, err := kjson.UnmarshalStrict(p.data, &operations)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	original, err := p.document(old)
	if err != nil {
		return nil, err
	}
	if err := p.rq.book.operationsHaveValues.Do(patch); err != nil {
		return nil, unprocessable(err.Error())
	}
	patched, err := p.rq.book.operationsApplied.Do(patch, original)
	if err != nil {
		return nil, unprocessable(err.Error())
	}
	return p.decodeDocument(patched, strict)
}

// checkOperations refuses operations without the value that they must have (RFC 6902, section 4): the library takes it for null.
func checkOperations(patch jsonpatch.Patch) error {
	for i, op := range patch {
		switch op.Kind() {
		case "add", "replace", "test":
			if _, ok := op["value"]; !ok {
				return fmt.Errorf("operation %d (%s) has no value", i, op.Kind())
			}
		}
	}
	return nil
}

// applyOperations applies a patch whole or not at all. The library panics where a test compares anything with a null
// inside of an array. No object of the API has one there, so the two are not equal.
func applyOperations(patch jsonpatch.Patch, document []byte) (patched []byte, err error) {
	defer func() {
		if p := recover(); p != nil {
			patched, err = nil, fmt.Errorf("an operation cannot be evaluated (%v): %w", p, jsonpatch.ErrTestFailed)
		}
	}()
	return patch.Apply(document)
}

// mergePatch applies RFC 7386.
func (p *patcher) mergePatch(old object) (object, error) {
	patch := map[string]any{}
	strict, err := kjson.UnmarshalStrict(p.data, &patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	if patch == nil {
		return nil, apierrors.NewBadRequest("error decoding patch: null is not an object")
	}
	original, err := p.document(old)
	if err != nil {
		return nil, err
	}
	patched, err := p.rq.book.mergeApplied.Do(original, p.data)
	if err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	return p.decodeDocument(patched, strict)
}

// document is the stored object as JSON.
func (p *patcher) document(old object) ([]byte, error) {
	var b bytes.Buffer
	if err := codecs().json.Encode(old, &b); err != nil {
		return nil, err
	}
	return b.Bytes(), nil
}

// decodeDocument reads a patched document. The client's patch is to blame for what cannot be read.
func (p *patcher) decodeDocument(patched []byte, earlier []error) (object, error) {
	res := p.rq.resource
	decoder := codecs().json
	if p.options.strict() {
		decoder = codecs().jsonStrict
	}
	obj, err := p.rq.book.objectRead.Do(p.rq.server, res, decoder, patched)
	if strict, ok := errors.AsType[*strictError](err); ok {
		for _, m := range strict.messages {
			earlier = append(earlier, errors.New(m))
		}
		err = nil
	}
	if err != nil {
		return nil, p.invalid(err.Error())
	}
	return obj, p.strictProblems(earlier)
}

// strategicMergePatch applies the merge that knows, from the Go types, which lists are merged by which key
// (https://kubernetes.io/docs/tasks/manage-kubernetes-objects/update-api-object-kubectl-patch/).
func (p *patcher) strategicMergePatch(old object) (object, error) {
	patch := map[string]any{}
	strict, err := kjson.UnmarshalStrict(p.data, &patch)
	if err != nil {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	original, err := runtime.DefaultUnstructuredConverter.ToUnstructured(old)
	if err != nil {
		return nil, err
	}
	lookup, err := strategicpatch.NewPatchMetaFromStruct(old)
	if err != nil {
		return nil, err
	}
	patched, err := p.rq.book.strategicMergeApplied.Do(original, patch, lookup)
	if err != nil {
		return nil, p.rq.book.strategicMergeRefused.Do(err)
	}
	obj := p.rq.resource.newObject()
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(patched, obj, p.options.strict()); err != nil {
		unknown, ok := runtime.AsStrictDecodingError(err)
		if !ok {
			return nil, p.invalid(err.Error())
		}
		strict = append(strict, unknown.Errors()...)
	}
	obj.GetObjectKind().SetGroupVersionKind(p.rq.resource.gvk) // which a patch cannot change
	p.rq.resource.strategy.defaults(p.rq.server, obj)
	return obj, p.strictProblems(strict)
}

func strategicMergeDocument(document, patch map[string]any, lookup strategicpatch.LookupPatchMeta) (map[string]any, error) {
	return strategicpatch.StrategicMergeMapPatchUsingLookupPatchMeta(document, patch, lookup)
}

func strategicPatchError(err error) error {
	for _, malformed := range []error{mergepatch.ErrBadJSONDoc, mergepatch.ErrBadPatchFormatForPrimitiveList, mergepatch.ErrBadPatchFormatForRetainKeys,
		mergepatch.ErrBadPatchFormatForSetElementOrderList, mergepatch.ErrUnsupportedStrategicMergePatchFormat} {
		if errors.Is(err, malformed) {
			return apierrors.NewBadRequest(err.Error())
		}
	}
	return unprocessable(err.Error())
}

// apply reads the configuration of a server-side apply and returns the function that merges it
// (https://kubernetes.io/docs/reference/using-api/server-side-apply/).
func (p *patcher) apply(force bool) (func(object) (object, error), error) {
	rq, res := p.rq, p.rq.resource
	content, err := rq.book.configurationRead.Do(p.data)
	if err != nil {
		return nil, err
	}
	if content == nil {
		return nil, apierrors.NewBadRequest("error decoding YAML: the configuration is empty")
	}
	configuration := &unstructured.Unstructured{Object: content}
	if err := yaml.UnmarshalStrict(p.data, &map[string]any{}); err != nil {
		if p.options.refusesUnknown {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error strict decoding patch: %v", err))
		}
		if p.options.strict() {
			rq.warn(decodingWarnings(err)...)
		}
	}
	if gvk := configuration.GroupVersionKind(); gvk != res.gvk {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("the object to apply is a %q, the request is for a %q: set apiVersion and kind", gvk, res.gvk))
	}
	if err := rq.book.configurationTyped.Do(configuration); err != nil {
		return nil, rq.book.configurationRefused.Do(fmt.Sprintf("failed to create typed patch object (%s/%s; %s, Kind=%s): %v",
			rq.namespace, rq.name, res.groupVersion(), res.gvk.Kind, err))
	}
	fields, err := rq.server.fieldManager(res, rq.subresource)
	if err != nil {
		return nil, err
	}
	return func(live object) (object, error) {
		if live == nil {
			live = rq.server.empty(res)
		}
		merged, err := rq.book.configurationApplied.Do(application{fields, live, configuration.DeepCopy(), p.options.manager, force})
		if err != nil {
			var status apierrors.APIStatus
			if errors.As(err, &status) {
				return nil, err
			}
			return nil, apierrors.NewBadRequest(err.Error())
		}
		obj, ok := merged.(object)
		if !ok {
			return nil, fmt.Errorf("server-side apply made a %T", merged)
		}
		obj.GetObjectKind().SetGroupVersionKind(res.gvk)
		return obj, nil
	}, nil
}
