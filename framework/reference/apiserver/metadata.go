package apiserver

import (
	"fmt"
	"net/http"
	"strconv"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"

	"github.com/service-conformance/conformance/framework/reference/rule"
	"github.com/service-conformance/conformance/framework/spec"
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
	if obj.GetNamespace() == "" {
		obj.SetNamespace(rq.namespace)
	}
	return rq.book.namespaceOfURL.Do(rq, obj)
}

// checkIdentity checks the name and the namespace of an object against those of the URL.
func (rq *request) checkIdentity(obj object) error {
	if err := rq.book.nameOfURL.Do(rq, obj); err != nil {
		return err
	}
	return rq.namespaceOfBody(obj)
}

// Rules for the identity of an object.
var (
	namespaceOfURL = rule.New("namespace-of-url", func(rq *request, obj object) error {
		if obj.GetNamespace() != rq.namespace {
			return apierrors.NewBadRequest("the namespace of the provided object does not match the namespace sent on the request")
		}
		return nil
	}, spec.APINameMatchesUrl)

	nameOfURL = rule.New("name-of-url", func(rq *request, obj object) error {
		switch obj.GetName() {
		case rq.name:
			return nil
		case "":
			return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s based on URL) was undeterminable: name must be provided", rq.name))
		}
		return apierrors.NewBadRequest(fmt.Sprintf("the name of the object (%s) does not match the name on the URL (%s)", obj.GetName(), rq.name))
	}, spec.APINameMatchesUrl)

	nameGenerated = rule.New("name-generated", generateName, spec.APIGenerateName)
)

// Rules for the metadata of a new object.
var (
	versionUnset = rule.New("resource-version-unset", func(_ *Server, _ *resource, obj object) error {
		if obj.GetResourceVersion() != "" {
			return apierrors.NewBadRequest("resourceVersion should not be set on objects to be created")
		}
		return nil
	}, spec.APIResourceVersionOnCreate)

	systemMetadata = rule.New("system-metadata", func(_ *Server, _ *resource, obj object) error {
		newMetadata(obj)
		return nil
	}, spec.APISystemMetadata)

	namespaceExists = rule.New("namespace-exists", func(s *Server, res *resource, obj object) error {
		if !res.namespaced {
			return nil
		}
		return storeError(s.store.namespaceState(obj.GetNamespace()), res, obj.GetNamespace(), obj.GetName())
	}, spec.APINamespaceExists)
)

// Rules for the metadata of a changed object.
var (
	// The uid in a patch is compared with the rest of the metadata, by the rules of the resource.
	uidOfUpdate = rule.New("uid-of-update", func(rq *request, obj, old object) error {
		if uid := obj.GetUID(); uid != "" && rq.r.Method == http.MethodPut {
			return checkPreconditions(rq.resource, old, &uid, nil)
		}
		return nil
	}, spec.APIUidImmutable)

	versionCurrent = rule.New("resource-version-current", func(rq *request, obj, old object) error {
		v, err := rq.book.versionRead.Do(obj.GetResourceVersion())
		if err != nil {
			return err
		}
		if v != 0 && strconv.FormatUint(v, 10) != old.GetResourceVersion() { // "0" is no version, as the empty one
			return storeError(errChanged, rq.resource, rq.namespace, rq.name)
		}
		return nil
	}, spec.APIStaleUpdate, spec.APIStalePatch, spec.APIUnconditionalUpdate)

	systemMetadataKept = rule.New("system-metadata-kept", func(_ *request, obj, old object) error {
		keepMetadata(obj, old)
		return nil
	}, spec.APIUidImmutable, spec.APIFinalizerHolds)
)

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

// keepMetadata sets what the server alone decides about a changed object.
func keepMetadata(obj, old object) {
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
