package check

import (
	"net/http"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
)

// reads sends requests that only read once more where the server has given them up: one with much to do does so after a minute (504). A request that writes
// may have been carried out all the same, and is sent once. It is safe for concurrent use.
type reads struct{ http.RoundTripper }

// readRetries are the pauses before a read is sent again.
var readRetries = wait.Backoff{Duration: retryPause, Factor: 2, Steps: 4}

// RoundTrip implements http.RoundTripper. The last answer is returned as it is.
func (r reads) RoundTrip(q *http.Request) (*http.Response, error) {
	pauses := readRetries
	for {
		answer, err := r.RoundTripper.RoundTrip(q)
		if err != nil || q.Method != http.MethodGet || answersOfBackend(q.URL.Path) || !unanswered(answer.StatusCode) || pauses.Steps <= 1 {
			return answer, err
		}
		answer.Body.Close()
		select {
		case <-q.Context().Done():
			return nil, q.Context().Err()
		case <-time.After(pauses.Step()):
		}
	}
}

// unanswered reports whether a code says that there is no answer: of a server that was too slow, or of something in front of one that is not there.
func unanswered(code int) bool {
	return code == http.StatusBadGateway || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout
}

// answersOfBackend reports whether what answers at a path is a backend behind the API server, whose codes are its own.
func answersOfBackend(path string) bool { return strings.Contains(path, "/proxy/") }
