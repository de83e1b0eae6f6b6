package candidate

import (
	"context"
	"errors"
	"net/http"
	"time"

	"golang.org/x/net/http2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// insistence are the pauses before an API server is asked again.
var insistence = wait.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 6}

// Insist repeats what arranges something until an API server answers it, six times at most: one with much to do gives up what writes after half a minute (504), and
// may have carried it out all the same. ask is told when it is asked again. The error is that of the last time.
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

// GaveUp reports whether an API server says that it could not do what it was asked for: nothing about what it was asked for. It says so by a code, or by breaking
// off: kube-apiserver does either when a request takes more than its minute, as it happens (WithTimeout in its filters).
func GaveUp(err error) bool {
	status, broken := apierrors.APIStatus(nil), http2.StreamError{}
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError || errors.As(err, &broken) && broken.Code == http2.ErrCodeInternal
}
