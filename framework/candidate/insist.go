package candidate

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// GaveUp reports whether an API server says that it could not do what it was asked for: nothing about what it was asked for.
func GaveUp(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
