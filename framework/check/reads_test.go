package check

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
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

func TestReadsThatAreBrokenOffAreSentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for broken, sent := range map[error]int{http2.StreamError{StreamID: 1, Code: http2.ErrCodeInternal}: 2, errors.New("connection refused"): 1} {
			server := &breaks{err: broken}
			q, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://server/api", nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := (reads{server}).RoundTrip(q); server.sent != sent || (err == nil) != (sent == 2) {
				t.Errorf("%v: sent %d times, want %d; %v", broken, server.sent, sent, err)
			}
		}
	})
}

// breaks answers the first request with an error, and others well.
type breaks struct {
	err  error
	sent int
}

func (b *breaks) RoundTrip(*http.Request) (*http.Response, error) {
	if b.sent++; b.sent == 1 {
		return nil, b.err
	}
	return &http.Response{StatusCode: http.StatusOK}, nil
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
