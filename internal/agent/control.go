package agent

import (
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
)

// TokenHeader is the header of a request that carries the token of the run.
const TokenHeader = "Conformance-Token" //nolint:gosec // the name of a header

// The paths of the control server.
const (
	PathReadyz     = "/readyz"
	PathLivez      = "/livez"
	PathReady      = "/ready"
	PathKill       = "/kill"
	PathServe      = "/serve"
	PathKillHosted = "/kill-hosted"
	PathProbe      = "/probe"
	PathResolve    = "/resolve"
	PathEnviron    = "/environment"
	PathEnd        = "/end"
	PathExit       = "/exit"
)

// leaseParameter is the query parameter that names a lease.
const leaseParameter = "lease"

// Bounds of a request. MaxShots is how many shots all probes of one request may have together.
const (
	maxRequest = 8 << 20
	MaxShots   = 200_000
)

// readiness is the body of PathReady.
type readiness struct {
	Ready *bool `json:"ready"`
}

// inquiry is the body of PathResolve.
type inquiry struct {
	Domain    string               `json:"domain,omitempty"`
	Questions []candidate.Question `json:"questions"`
}

// failure is the body of an answer that is none of 200.
type failure struct {
	Error string `json:"error"`
}

// commands are what the control server does, by path. What they return is the answer, as JSON.
var commands = map[string]func(ctx context.Context, a *agent, query url.Values, body []byte) (any, error){
	PathReady: func(_ context.Context, a *agent, _ url.Values, body []byte) (any, error) {
		var in readiness
		if err := decode(body, &in); err != nil {
			return nil, refusal(http.StatusBadRequest, "%w", err)
		}
		if in.Ready == nil {
			return nil, refusal(http.StatusBadRequest, `say {"ready":true} or {"ready":false}`)
		}
		a.ready.Store(*in.Ready)
		return struct{}{}, nil
	},
	PathKill: func(_ context.Context, a *agent, _ url.Values, _ []byte) (any, error) {
		a.kill()
		return struct{}{}, nil
	},
	PathServe: func(_ context.Context, a *agent, query url.Values, body []byte) (any, error) {
		var in hosting
		lease, err := ofLease(query, body, &in)
		if err != nil {
			return nil, err
		}
		return a.host(lease, in)
	},
	PathKillHosted: func(_ context.Context, a *agent, query url.Values, body []byte) (any, error) {
		var in candidate.PodName
		lease, err := ofLease(query, body, &in)
		if err != nil {
			return nil, err
		}
		a.killHosted(lease, in)
		return struct{}{}, nil
	},
	PathProbe: func(ctx context.Context, a *agent, query url.Values, body []byte) (any, error) {
		var probes []candidate.Probe
		lease, err := ofLease(query, body, &probes)
		if err != nil {
			return nil, err
		}
		left := MaxShots
		for _, p := range probes {
			if left -= max(1, p.Count); left < 0 {
				return nil, refusal(http.StatusRequestEntityTooLarge, "these are more than %d shots; send fewer at once", MaxShots)
			}
		}
		return a.send(ctx, lease, probes)
	},
	PathResolve: func(ctx context.Context, a *agent, _ url.Values, body []byte) (any, error) {
		var in inquiry
		if err := decode(body, &in); err != nil {
			return nil, refusal(http.StatusBadRequest, "%w", err)
		}
		return a.resolve(ctx, in.Domain, in.Questions)
	},
	PathEnviron: func(context.Context, *agent, url.Values, []byte) (any, error) { return environment(os.Environ()), nil },
	PathEnd: func(_ context.Context, a *agent, query url.Values, _ []byte) (any, error) {
		lease := query.Get(leaseParameter)
		if lease == "" {
			return nil, errNoLease
		}
		a.end(lease)
		return struct{}{}, nil
	},
	PathExit: func(_ context.Context, a *agent, _ url.Values, _ []byte) (any, error) {
		a.exit()
		return struct{}{}, nil
	},
}

// ofLease reads the body of a command that belongs to a lease.
func ofLease(query url.Values, body []byte, into any) (lease string, err error) {
	if lease = query.Get(leaseParameter); lease == "" {
		return "", errNoLease
	}
	if err := decode(body, into); err != nil {
		return "", refusal(http.StatusBadRequest, "%w", err)
	}
	return lease, nil
}

var errNoLease = refusal(http.StatusBadRequest, "name the lease in the query: ?%s=ID", leaseParameter)

// refused is an error with the code that it is answered with.
type refused struct {
	code int
	err  error
}

func (r *refused) Error() string { return r.err.Error() }
func (r *refused) Unwrap() error { return r.err }

func refusal(code int, format string, args ...any) error {
	return &refused{code, fmt.Errorf(format, args...)}
}

// ServeHTTP answers one request to the control server.
func (a *agent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := a.do(w, r)
	code := http.StatusOK
	if err != nil {
		answer, code = failure{err.Error()}, http.StatusInternalServerError
		if r := (*refused)(nil); errors.As(err, &r) {
			code = r.code
		}
	}
	body, err := json.Marshal(answer)
	if err != nil {
		panic(err) // answers consist of text, numbers and addresses
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_, _ = w.Write(append(body, '\n')) // who asked has gone
}

func (a *agent) do(w http.ResponseWriter, r *http.Request) (any, error) {
	path, method := r.URL.Path, http.MethodPost
	command := commands[path]
	switch {
	case path == PathReadyz || path == PathLivez:
		method = http.MethodGet
	case command == nil:
		return nil, refusal(http.StatusNotFound, "there is no %s", path)
	}
	if r.Method != method {
		w.Header().Set("Allow", method)
		return nil, refusal(http.StatusMethodNotAllowed, "%s takes %s, not %s", path, method, r.Method)
	}
	if command == nil {
		if path == PathReadyz && !a.ready.Load() {
			return nil, refusal(http.StatusServiceUnavailable, "not ready, as the run has said")
		}
		return struct{}{}, nil
	}
	if subtle.ConstantTimeCompare([]byte(TokenDigest(r.Header.Get(TokenHeader))), []byte(a.tokenDigest)) != 1 {
		return nil, refusal(http.StatusUnauthorized, "the header %s must carry the token of the run", TokenHeader)
	}
	body, err := receive(w, r)
	if err != nil {
		return nil, err
	}
	return command(r.Context(), a, r.URL.Query(), body)
}

// receive reads the body of a request.
func receive(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	// The deadline is one of the connection: it must not stay, or it would end the request while its probes are under way.
	connection := http.NewResponseController(w)
	if err := connection.SetReadDeadline(time.Now().Add(requestTimeout)); err != nil {
		return nil, err
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxRequest))
	if large := (*http.MaxBytesError)(nil); errors.As(err, &large) {
		return nil, refusal(http.StatusRequestEntityTooLarge, "the body is larger than %d bytes; send fewer probes at once", large.Limit)
	}
	if err != nil {
		return nil, refusal(http.StatusBadRequest, "read the body: %w", err)
	}
	return body, connection.SetReadDeadline(time.Time{})
}
