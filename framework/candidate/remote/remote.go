// Package remote carries a candidate across processes. The program that holds the candidate serves it on loopback, and
// the parallel workers use it as if it were their own.
package remote

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Server serves one candidate to the workers of one run.
type Server struct {
	url       string
	http      *http.Server
	candidate candidate.Candidate
	settings  json.RawMessage
	events    func(json.RawMessage)
	stop      chan struct{}
	stopOnce  sync.Once

	mu     sync.Mutex
	leases map[string]candidate.ControlPlane // nil once the server has ended
}

type leaseAnswer struct {
	ID           string           `json:"id"`
	Access       candidate.Access `json:"access"`
	ServiceCIDRs []netip.Prefix   `json:"serviceCIDRs"`
	First        int              `json:"first"`
	Last         int              `json:"last"`
	// Nodes and ExternalAddresses are those of a data plane.
	Nodes             []candidate.Node            `json:"nodes,omitempty"`
	ExternalAddresses []netip.Addr                `json:"externalAddresses,omitempty"`
	Namespace         string                      `json:"namespace,omitempty"` // that was lent with it
	Unavailable       *candidate.UnavailableError `json:"unavailable,omitempty"`
	Error             string                      `json:"error,omitempty"`
}

// Serve starts a server on loopback. settings is any JSON value; the workers read it with Client.Settings. events
// receives what they post, one at a time.
func Serve(c candidate.Candidate, settings any, events func(json.RawMessage)) (*Server, error) {
	raw, err := json.Marshal(settings)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &Server{candidate: c, settings: raw, events: events, stop: make(chan struct{}), leases: map[string]candidate.ControlPlane{}}
	secret := "/" + rand.Text() // the URL is the workers' credential: a run's control planes are not for other users of the machine
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+secret+"/settings", func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(s.settings) })
	mux.HandleFunc("GET "+secret+"/description", func(w http.ResponseWriter, _ *http.Request) { answer(w, c.Describe()) })
	mux.HandleFunc("GET "+secret+"/interrupted", func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-s.stop:
		case <-r.Context().Done():
		}
	})
	mux.HandleFunc("POST "+secret+"/events", s.event)
	mux.HandleFunc("POST "+secret+"/leases", lease(s, s.candidate.ControlPlane))
	mux.HandleFunc("POST "+secret+"/dataplanes", lease(s, s.candidate.DataPlane))
	mux.HandleFunc("POST "+secret+"/leases/{id}/{method}", s.serveDataPlane)
	mux.HandleFunc("POST "+secret+"/leases/{id}/restart", s.restart)
	mux.HandleFunc("POST "+secret+"/leases/{id}/another-server", s.anotherServer)
	mux.HandleFunc("POST "+secret+"/leases/{id}/alive", s.alive)
	mux.HandleFunc("DELETE "+secret+"/leases/{id}", s.release)
	s.url = "http://" + listener.Addr().String() + secret
	s.http = &http.Server{Handler: mux, ReadHeaderTimeout: time.Minute}
	go func() { _ = s.http.Serve(listener) }()
	return s, nil
}

// URL is what the workers dial.
func (s *Server) URL() string { return s.url }

// Interrupt tells the workers to stop: each finishes what it is cleaning up and starts nothing new.
func (s *Server) Interrupt() { s.stopOnce.Do(func() { close(s.stop) }) }

// Close ends the server. The candidate stays as it is.
func (s *Server) Close() error {
	s.Interrupt()
	return s.http.Close()
}

// End is Close, and takes the leases that no worker has given back: they are the caller's to release.
func (s *Server) End() []candidate.ControlPlane {
	_ = s.Close() // nobody waits for an answer
	s.mu.Lock()
	defer s.mu.Unlock()
	left := slices.Collect(maps.Values(s.leases))
	s.leases = nil
	return left
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func (s *Server) event(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events(body)
}

// lease answers requests for a control plane or, with acquire making one, a data plane.
func lease[Request any, Plane candidate.ControlPlane](s *Server, acquire func(context.Context, Request) (Plane, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		var request Request
		if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		cp, err := acquire(r.Context(), request)
		switch {
		case candidate.IsUnavailable(err):
			answer(w, leaseAnswer{Unavailable: candidate.AsUnavailable(err)})
		case err != nil:
			answer(w, leaseAnswer{Error: err.Error()})
		case r.Context().Err() != nil: // the worker was interrupted while it waited
			cp.Release()
		default:
			a, handed := s.hand(cp)
			if !handed {
				cp.Release()
				a = leaseAnswer{Error: "the program that holds the candidate has ended"}
			}
			answer(w, a)
		}
	}
}

// hand notes a lease and describes it. It returns false if the server has ended meanwhile.
func (s *Server) hand(cp candidate.ControlPlane) (a leaseAnswer, handed bool) {
	a = leaseAnswer{ID: rand.Text(), Access: cp.Access(), ServiceCIDRs: cp.ServiceCIDRs()}
	a.First, a.Last = cp.NodePorts()
	if d, ok := cp.(candidate.DataPlane); ok {
		a.Nodes, a.ExternalAddresses = d.Nodes(), d.ExternalAddresses()
		if lender, ok := d.(candidate.NamespaceLender); ok {
			a.Namespace = lender.LentNamespace()
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leases == nil {
		return a, false
	}
	s.leases[a.ID] = cp
	return a, true
}

func (s *Server) take(id string, remove bool) candidate.ControlPlane {
	s.mu.Lock()
	defer s.mu.Unlock()
	cp := s.leases[id]
	if remove {
		delete(s.leases, id)
	}
	return cp
}

func (s *Server) restart(w http.ResponseWriter, r *http.Request) {
	var ranges []netip.Prefix
	s.change(w, r, &ranges, func(cp candidate.ControlPlane) (leaseAnswer, error) {
		own, err := candidate.OwnServer(cp)
		if err == nil {
			err = own.Restart(r.Context(), ranges...)
		}
		return leaseAnswer{Access: cp.Access(), ServiceCIDRs: cp.ServiceCIDRs()}, err
	})
}

func (s *Server) anotherServer(w http.ResponseWriter, r *http.Request) {
	var gates map[string]bool
	s.change(w, r, &gates, func(cp candidate.ControlPlane) (out leaseAnswer, err error) {
		own, err := candidate.OwnServer(cp)
		if err == nil {
			out.Access, err = own.AnotherServer(r.Context(), gates)
		}
		return out, err
	})
}

// change reads what is asked of a lease into request, has it done and answers.
func (s *Server) change(w http.ResponseWriter, r *http.Request, request any, do func(candidate.ControlPlane) (leaseAnswer, error)) {
	if err := json.NewDecoder(r.Body).Decode(request); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	cp := s.take(r.PathValue("id"), false)
	if cp == nil {
		answer(w, leaseAnswer{Error: "no such lease"})
		return
	}
	out, err := do(cp)
	switch {
	case candidate.IsUnavailable(err):
		out = leaseAnswer{Unavailable: candidate.AsUnavailable(err)}
	case err != nil:
		out = leaseAnswer{Error: err.Error()}
	}
	answer(w, out)
}

func (s *Server) alive(w http.ResponseWriter, r *http.Request) {
	var out leaseAnswer
	if l, ok := s.take(r.PathValue("id"), false).(candidate.Living); ok {
		if err := l.Alive(r.Context()); err != nil {
			out.Error = err.Error()
		}
	}
	answer(w, out)
}

func (s *Server) release(_ http.ResponseWriter, r *http.Request) {
	if cp := s.take(r.PathValue("id"), true); cp != nil {
		cp.Release()
	}
}

// Client is a candidate that lives in another process.
type Client struct {
	url         string
	http        *http.Client
	description candidate.Description
}

// Dial connects to a Server.
func Dial(url string) (*Client, error) {
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.MaxIdleConnsPerHost = transport.MaxIdleConns // a check sends much at a time
	c := &Client{url: strings.TrimSuffix(url, "/"), http: &http.Client{Transport: transport}}
	return c, c.call(context.Background(), http.MethodGet, "/description", nil, &c.description)
}

func (c *Client) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		data, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(data)
	}
	request, err := http.NewRequestWithContext(ctx, method, c.url+path, body)
	if err != nil {
		return err
	}
	response, err := c.http.Do(request)
	if ended := context.Cause(ctx); err != nil && ended != nil {
		return ended // the caller gave up, which says nothing about the program
	}
	if err != nil {
		return fmt.Errorf("the program that holds the candidate does not answer: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	answer, err := io.ReadAll(response.Body) // to its end, or the connection could not be used again
	if err != nil || out == nil {
		return err
	}
	return json.Unmarshal(answer, out)
}

// Settings reads what the server was started with.
func (c *Client) Settings(out any) error {
	return c.call(context.Background(), http.MethodGet, "/settings", nil, out)
}

// Post sends an event.
func (c *Client) Post(event any) error {
	return c.call(context.Background(), http.MethodPost, "/events", event, nil)
}

// Interrupted blocks until the server wants its workers to stop, or is gone: then it returns an error.
func (c *Client) Interrupted() error {
	return c.call(context.Background(), http.MethodGet, "/interrupted", nil, nil)
}

// Describe implements candidate.Candidate.
func (c *Client) Describe() candidate.Description { return c.description }

// Close implements candidate.Candidate. The candidate belongs to the server's program.
func (c *Client) Close(context.Context) error { return nil }

// ControlPlane implements candidate.Candidate.
func (c *Client) ControlPlane(ctx context.Context, request candidate.Request) (candidate.ControlPlane, error) {
	l := &leased{client: c}
	if err := l.take(ctx, "/leases", request); err != nil {
		return nil, err
	}
	return l, nil
}

// leased is a lease of a control plane that lives in another process.
type leased struct {
	client *Client
	leaseAnswer
}

func (l *leased) take(ctx context.Context, path string, request any) error {
	if err := l.client.call(ctx, http.MethodPost, path, request, &l.leaseAnswer); err != nil {
		return err
	}
	return l.failure()
}

func (l *leased) Access() candidate.Access     { return l.leaseAnswer.Access }
func (l *leased) ServiceCIDRs() []netip.Prefix { return l.leaseAnswer.ServiceCIDRs }
func (l *leased) NodePorts() (first, last int) { return l.First, l.Last }
func (l *leased) Release() {
	_ = l.client.call(context.Background(), http.MethodDelete, "/leases/"+l.ID, nil, nil)
}

// Alive implements candidate.Living.
func (l *leased) Alive(ctx context.Context) error {
	var out leaseAnswer
	if err := l.client.call(ctx, http.MethodPost, "/leases/"+l.ID+"/alive", nil, &out); err != nil {
		return err
	}
	return out.failure()
}

// AnotherServer implements candidate.ServerOwner.
func (l *leased) AnotherServer(ctx context.Context, gates map[string]bool) (candidate.Access, error) {
	var out leaseAnswer
	if err := l.client.call(ctx, http.MethodPost, "/leases/"+l.ID+"/another-server", gates, &out); err != nil {
		return candidate.Access{}, err
	}
	return out.Access, out.failure()
}

// failure is the error that an answer tells of.
func (a *leaseAnswer) failure() error {
	switch {
	case a.Unavailable != nil:
		return a.Unavailable
	case a.Error != "":
		return errors.New(a.Error)
	}
	return nil
}

func (l *leased) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error {
	var out leaseAnswer
	if err := l.client.call(ctx, http.MethodPost, "/leases/"+l.ID+"/restart", append([]netip.Prefix{}, serviceCIDRs...), &out); err != nil {
		return err
	}
	if err := out.failure(); err != nil {
		return err
	}
	l.leaseAnswer.Access, l.leaseAnswer.ServiceCIDRs = out.Access, out.ServiceCIDRs
	return nil
}
