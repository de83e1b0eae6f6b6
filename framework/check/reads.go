package check

import (
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/onsi/ginkgo/v2"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"

	"github.com/service-conformance/conformance/framework/candidate"
)

// reads repeats requests that only read, where the server has given them up. A busy server does so after a minute (504,
// or it breaks off). A request that writes may have been carried out all the same. Only its sender knows whether it may
// be repeated. It is safe for concurrent use.
type reads struct{ http.RoundTripper }

// readRetries are the pauses before a read is sent again.
var readRetries = wait.Backoff{Duration: retryPause, Factor: 2, Steps: 4}

// readsGivenUp counts the reads that were sent again: the time until then was not the candidate's to follow a change in, see Converge.
var readsGivenUp atomic.Int64

// RoundTrip implements http.RoundTripper. The last response is returned as it is.
func (r reads) RoundTrip(q *http.Request) (*http.Response, error) {
	pauses := readRetries
	for {
		response, err := r.RoundTripper.RoundTrip(q)
		gaveUp := candidate.GaveUp(err) || err == nil && NoResponse(response.StatusCode, "")
		if !gaveUp || q.Method != http.MethodGet || answersOfBackend(q.URL.Path) || pauses.Steps <= 1 {
			return response, err
		}
		if err == nil {
			response.Body.Close()
		}
		readsGivenUp.Add(1)
		select {
		case <-q.Context().Done():
			return nil, q.Context().Err()
		case <-time.After(pauses.Step()):
		}
	}
}

// NoResponse reports whether a code and a message say that there is no response. The server was too slow, or something
// in front of it answered for it. Or kube-apiserver waited for its storage or itself in vain, for which it has no code.
func NoResponse(code int, message string) bool {
	switch code {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	}
	return candidate.TimeoutInside(code, message)
}

// Responded returns the error of a typed client if it is a response of an API server, and aborts the check if there is none.
func Responded(err error) error {
	ginkgo.GinkgoHelper()
	if err != nil && HasNoResponse(err) {
		Must(err)
	}
	return err
}

// HasNoResponse reports whether the error of a typed client says that there is no response.
func HasNoResponse(err error) bool {
	status := apierrors.APIStatus(nil)
	return !errors.As(err, &status) || NoResponse(int(status.Status().Code), status.Status().Message)
}

// answersOfBackend reports whether what answers at a path is a backend behind the API server, whose codes are its own.
func answersOfBackend(path string) bool { return strings.Contains(path, "/proxy/") }
