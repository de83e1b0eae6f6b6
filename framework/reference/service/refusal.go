package service

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

var (
	metadataPath = field.NewPath("metadata")
	specPath     = field.NewPath("spec")
	statusPath   = field.NewPath("status")
)

// refusal is the answer to a request that breaks rules: 422 Invalid with one cause for each error; nil if there is none.
func refusal(svc *corev1.Service, errs field.ErrorList) error {
	if len(errs) == 0 {
		return nil
	}
	return apierrors.NewInvalid(schema.GroupKind{Kind: "Service"}, svc.Name, errs)
}

// exhausted is the answer when no address or port is left: 500 InternalError. Nothing is wrong with the request.
func exhausted(svc *corev1.Service, what string, err error) error {
	return apierrors.NewInternalError(fmt.Errorf("failed to allocate a %s for Service %q: %w", what, svc.Name, err))
}
