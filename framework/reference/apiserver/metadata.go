package apiserver

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/service-conformance/conformance/framework/reference/fault"
)

// A generated name ends in random characters and fits into 63 characters with them.
const (
	generatedSuffix  = 5
	maxGeneratedName = 63 - generatedSuffix
)

// namespaceOfBody checks the namespace of an object against that of the URL and fills it in.
func (rq *request) namespaceOfBody(obj object) error {
	if !rq.resource.namespaced {
		obj.SetNamespace("")
		return nil
	}
	switch obj.GetNamespace() {
	case "":
		obj.SetNamespace(rq.namespace)
	case rq.namespace:
	default:
		if rq.faulty(fault.URLNamespaceWins) {
			obj.SetNamespace(rq.namespace)
			return nil
		}
		return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
	}
	return nil
}

// nameOfBody checks the name of an object against that of the URL.
func (rq *request) nameOfBody(obj object) error {
	switch obj.GetName() {
	case rq.name:
		return nil
	case "":
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", rq.name))
	default:
		if rq.faulty(fault.URLNameWins) {
			obj.SetName(rq.name)
			return nil
		}
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), rq.name))
	}
}

// newMetadata sets what the server alone decides about a new object.
func newMetadata(obj object) {
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetSelfLink("")
	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(now())
}

// generateName makes a name from generateName.
func generateName(obj object) {
	base := obj.GetGenerateName()
	if len(base) > maxGeneratedName {
		base = base[:maxGeneratedName]
	}
	obj.SetName(base + utilrand.String(generatedSuffix))
}

// successorMetadata sets what the server alone decides about a changed object. The error is a Status.
func (rq *request) successorMetadata(obj, old object) error {
	if v := obj.GetResourceVersion(); v != "" {
		if _, err := parseResourceVersion(v); err != nil {
			return err
		}
		if v != old.GetResourceVersion() && !rq.faulty(fault.StaleWriteWins) {
			return storeError(errChanged, rq.resource, rq.namespace, rq.name)
		}
	}
	if obj.GetResourceVersion() == "" && rq.faulty(fault.ResourceVersionRequired) {
		return refusal(rq.resource, rq.name, field.ErrorList{field.Required(field.NewPath("metadata", "resourceVersion"), "must be specified for an update")})
	}
	obj.SetResourceVersion(old.GetResourceVersion())
	obj.SetGeneration(old.GetGeneration())
	obj.SetSelfLink("")
	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if obj.GetDeletionTimestamp() == nil {
		obj.SetDeletionTimestamp(old.GetDeletionTimestamp())
	}
	if obj.GetDeletionGracePeriodSeconds() == nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
	return nil
}

// checkPreconditions compares an object with the UID and the resource version that a client insists on.
func checkPreconditions(r *resource, obj object, uid *types.UID, version *string) error {
	if uid != nil && *uid != obj.GetUID() {
		return apierrors.NewConflict(r.groupResource(), obj.GetName(),
			fmt.Errorf("Precondition failed: UID in precondition: %v, UID in object meta: %v", *uid, obj.GetUID())) //nolint:staticcheck // the text of a real server
	}
	if version != nil && *version != obj.GetResourceVersion() {
		return apierrors.NewConflict(r.groupResource(), obj.GetName(),
			fmt.Errorf("Precondition failed: ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", *version, obj.GetResourceVersion())) //nolint:staticcheck // as above
	}
	return nil
}

// now is the current time as objects carry it: whole seconds.
func now() metav1.Time { return metav1.Now().Rfc3339Copy() }
