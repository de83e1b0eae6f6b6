package lab

import (
	"context"
	"errors"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	backoff "k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/util/retry"
)

// insistence are the pauses before the API server of the nodes is asked once more.
var insistence = backoff.Backoff{Duration: 200 * time.Millisecond, Factor: 2, Steps: 4}

// insist repeats what keeps an object of the lab until the API server answers: one with much to do gives a request up after a minute (504). It may have carried
// it out all the same: ask is told when it is asked again.
func insist(ctx context.Context, ask func(again bool) error) error {
	again := false
	return retry.OnError(insistence, func(err error) bool { return ctx.Err() == nil && gaveUp(err) }, func() error {
		defer func() { again = true }()
		return ask(again)
	})
}

// gaveUp reports whether a server says that it could not do what it was asked for.
func gaveUp(err error) bool {
	status := apierrors.APIStatus(nil)
	return errors.As(err, &status) && status.Status().Code >= http.StatusInternalServerError
}
