package check

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

func TestReadsAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // the pauses take no time
		for _, c := range []struct {
			method, path string
			refusals     int // so many come first
			code, sent   int
		}{
			{http.MethodGet, "/api/v1/services", 2, http.StatusOK, 3},
			{http.MethodGet, "/api/v1/services", 100, http.StatusGatewayTimeout, readRetries.Steps},
			{http.MethodGet, "/api/v1/namespaces/a/services/b/proxy/busy", 1, http.StatusGatewayTimeout, 1},
			{http.MethodPost, "/api/v1/services", 1, http.StatusGatewayTimeout, 1},
			{http.MethodDelete, "/api/v1/services", 1, http.StatusGatewayTimeout, 1},
		} {
			sent := 0
			server := reads{answers(func(string) int {
				sent++
				if sent <= c.refusals {
					return http.StatusGatewayTimeout
				}
				return http.StatusOK
			})}
			q, err := http.NewRequestWithContext(t.Context(), c.method, "http://server"+c.path, nil)
			if err != nil {
				t.Fatal(err)
			}
			answer, err := server.RoundTrip(q)
			if err != nil || answer.StatusCode != c.code || sent != c.sent {
				t.Errorf("%s %s: %v, %v, sent %d times, want %d after %d", c.method, c.path, answer, err, sent, c.code, c.sent)
			}
		}
	})
}

func TestReadsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	q, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://server/api", nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := (reads{answers(func(string) int { return http.StatusServiceUnavailable })}).RoundTrip(q); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v", err)
	}
}
