package apiserver

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Every answer that is not a success is a metav1.Status with the code, reason and details that a real API server gives
// (https://kubernetes.io/docs/reference/using-api/api-concepts/, apimachinery pkg/api/errors).

// writeError answers with the Status of an error.
func (s *Server) writeError(w http.ResponseWriter, r *http.Request, err error) {
	status := statusOf(err)
	if status.Details != nil && status.Details.RetryAfterSeconds > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(status.Details.RetryAfterSeconds)))
	}
	if status.Code == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	// The answer to a request that accepts nothing that we have is JSON.
	e, negotiationError := negotiate(r, false)
	if negotiationError != nil {
		e = encoding{media: mediaJSON}
	}
	e.as = ""
	s.write(w, e, int(status.Code), status)
}

func statusOf(err error) *metav1.Status {
	var withStatus apierrors.APIStatus
	if !errors.As(err, &withStatus) {
		withStatus = apierrors.NewInternalError(err)
	}
	status := withStatus.Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	if status.Status == "" {
		status.Status = metav1.StatusFailure
	}
	if status.Code < 400 || status.Code > 599 {
		status.Code = http.StatusInternalServerError
	}
	return &status
}

// storeError turns an answer of the store into a Status.
func storeError(err error, r *resource, namespace, name string) error {
	var expired *expiredError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, errNotFound):
		return apierrors.NewNotFound(r.groupResource(), name)
	case errors.Is(err, errExists):
		return apierrors.NewAlreadyExists(r.groupResource(), name)
	case errors.Is(err, errChanged):
		return apierrors.NewConflict(r.groupResource(), name,
			errors.New("the object has been modified; please apply your changes to the latest version and try again"))
	case errors.Is(err, errNamespaceMissing):
		return apierrors.NewNotFound(namespaces.groupResource(), namespace)
	case errors.Is(err, errNamespaceTerminating):
		forbidden := apierrors.NewForbidden(r.groupResource(), name,
			fmt.Errorf("unable to create new content in namespace %s because it is being terminated", namespace))
		forbidden.ErrStatus.Details.Causes = append(forbidden.ErrStatus.Details.Causes, metav1.StatusCause{
			Type:    "NamespaceTerminating",
			Message: fmt.Sprintf("namespace %s is being terminated", namespace),
			Field:   "metadata.namespace",
		})
		return forbidden
	case errors.As(err, &expired):
		return apierrors.NewResourceExpired(expired.Error())
	case errors.Is(err, errFutureVersion):
		tooLarge := apierrors.NewTimeoutError("Too large resource version", 1)
		tooLarge.ErrStatus.Details.Causes = []metav1.StatusCause{{
			Type: metav1.CauseTypeResourceVersionTooLarge, Message: "Too large resource version",
		}}
		return tooLarge
	}
	return err
}

// unknownPath is the answer to a path that does not exist. A real server writes a text here, which clients turn into this Status.
func unknownPath() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotFound, Reason: metav1.StatusReasonNotFound,
		Message: "the server could not find the requested resource",
		Details: &metav1.StatusDetails{},
	}}
}

// methodNotAllowed is the answer to a path that exists and does not know the verb.
func methodNotAllowed() error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusMethodNotAllowed, Reason: metav1.StatusReasonMethodNotAllowed,
		Message: "the server does not allow this method on the requested resource",
		Details: &metav1.StatusDetails{},
	}}
}

func notAcceptable() error {
	return notAcceptableShape("only the following media types are accepted: " + strings.Join(acceptedMedia, ", "))
}

// notAcceptableShape is the answer to a request for an object in a form that it does not have.
func notAcceptableShape(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusNotAcceptable, Reason: metav1.StatusReasonNotAcceptable, Message: message,
	}}
}

func unsupportedMedia(accepted ...string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnsupportedMediaType, Reason: metav1.StatusReasonUnsupportedMediaType,
		Message: "the body of the request was in an unknown format - accepted media types include: " + strings.Join(accepted, ", "),
	}}
}

// unprocessable is the answer to a well-formed patch that does not fit the object.
func unprocessable(message string) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: http.StatusUnprocessableEntity, Reason: metav1.StatusReasonInvalid,
		Message: "the patch cannot be applied: " + message,
	}}
}
