package candidate

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// insistence are the pauses before an API server is asked again.
var insistence = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 6}

// Insist repeats a setup request until an API server answers it, six times at most. A busy server gives up a write
// after half a minute (504), and may have carried it out all the same. ask is told when it is asked again. The error is
// that of the last time.
func Insist(ctx context.Context, ask func(again bool) error) error {
	again := false
	return retry.OnError(insistence, func(err error) bool { return ctx.Err() == nil && GaveUp(err) }, func() error {
		defer func() { again = true }()
		return ask(again)
	})
}

// InsistTimeout bounds what is insisted on though a check was interrupted: it leaves time for a second request.
const InsistTimeout = 75 * time.Second

// creator is a typed client of one kind of object.
type creator[T any] interface {
	Create(context.Context, T, metav1.CreateOptions) (T, error)
	Get(context.Context, string, metav1.GetOptions) (T, error)
}

// Create insists on an object whose name nobody else uses, and returns it as stored.
func Create[T metav1.Object](ctx context.Context, client creator[T], object T) (stored T, err error) {
	err = Insist(ctx, func(again bool) error {
		stored, err = client.Create(ctx, object, metav1.CreateOptions{})
		if again && apierrors.IsAlreadyExists(err) {
			stored, err = client.Get(ctx, object.GetName(), metav1.GetOptions{})
		}
		return err
	})
	return stored, err
}

// SetStatus insists on the status of an object that Create has returned.
func SetStatus[T metav1.Object](ctx context.Context, client interface {
	UpdateStatus(context.Context, T, metav1.UpdateOptions) (T, error)
}, object T) error {
	return Insist(ctx, func(again bool) error {
		if again {
			object.SetResourceVersion("") // it may have been set, or be set yet
		}
		_, err := client.UpdateStatus(ctx, object, metav1.UpdateOptions{})
		return err
	})
}

// Update insists on an object, whatever it has become meanwhile, and returns it as stored.
func Update[T metav1.Object](ctx context.Context, client interface {
	Update(context.Context, T, metav1.UpdateOptions) (T, error)
}, object T) (stored T, err error) {
	object.SetResourceVersion("")
	err = Insist(ctx, func(bool) error {
		stored, err = client.Update(ctx, object, metav1.UpdateOptions{})
		return err
	})
	return stored, err
}

// Patch insists on a patch that may be applied twice.
func Patch[T any](ctx context.Context, client interface {
	Patch(context.Context, string, types.PatchType, []byte, metav1.PatchOptions, ...string) (T, error)
}, name string, kind types.PatchType, patch string, subresources ...string) error {
	return Insist(ctx, func(bool) error {
		_, err := client.Patch(ctx, name, kind, []byte(patch), metav1.PatchOptions{}, subresources...)
		return err
	})
}

// Delete insists on the deletion of an object. That there is none is an error unless it is found when the server is asked again.
func Delete(ctx context.Context, client interface {
	Delete(context.Context, string, metav1.DeleteOptions) error
}, name string, options metav1.DeleteOptions) error {
	return Insist(ctx, func(again bool) error {
		err := client.Delete(ctx, name, options)
		if again && apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
}

// GaveUp reports whether an API server says that it could not do what it was asked for: nothing about what it was asked
// for. It says so by a code, or by breaking off. kube-apiserver does either when a request takes more than its minute
// (WithTimeout in its filters). See also TimeoutInside.
func GaveUp(err error) bool {
	status, broken := apierrors.APIStatus(nil), http2.StreamError{}
	if errors.As(err, &status) {
		code := int(status.Status().Code)
		return code >= http.StatusInternalServerError || TimeoutInside(code, status.Status().Message)
	}
	return errors.As(err, &broken) && broken.Code == http2.ErrCodeInternal
}

// TimeoutInside reports whether a code and a message say that the API server waited in vain, for its storage or for
// itself. kube-apiserver tells that by the codes of its own errors and refusals. It is 403 where admission asked
// (NewForbidden in its admission package, as LimitRanger uses it for pods). It is 422 where an allocator did
// (allocClusterIPs in its storage of Services).
func TimeoutInside(code int, message string) bool {
	switch code {
	case http.StatusForbidden, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return strings.Contains(message, "etcdserver: ") || strings.Contains(message, "the server was unable to return a response in the time allotted")
	}
	return false
}
