// Package apiserver is the in-process reference API server: Kubernetes HTTP on a loopback port for the resources that
// Services touch. What a Service means stands in package service. This package is what a Kubernetes API server does for
// any resource: storage, optimistic concurrency, watch, patch, server-side apply, discovery. It uses the libraries that
// Kubernetes publishes for clients and servers (k8s.io/api, apimachinery, client-go, kube-openapi). It does not use
// Kubernetes' own server code, so that comparing the two proves something.
//
// The controllers without which the API would look broken run inline, as part of the request that gives them work. A
// deleted namespace is emptied. An IPAddress exists for every address in use. A ServiceCIDR is ready, and is removed
// when nothing depends on it any more. So do, where Options ask for them, the controllers that make EndpointSlices
// (package endpoints).
package apiserver

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-conformance/conformance/framework/reference/absent"
	"github.com/service-conformance/conformance/framework/reference/allocator"
	controller "github.com/service-conformance/conformance/framework/reference/endpoints"
	"github.com/service-conformance/conformance/framework/reference/service"
	"github.com/service-conformance/conformance/framework/spec"
)

// DefaultVersion is the Kubernetes version that the server says it is when none is asked for.
const DefaultVersion = "v1.37.1"

// Options configure a Server.
type Options struct {
	// ServiceCIDRs is one range, or two of different families with the primary first.
	ServiceCIDRs []netip.Prefix
	// NodePorts is the node-port range; the zero value is spec.DefaultNodePorts.
	NodePorts spec.PortRange
	// Faults are the deliberate bugs that are switched on.
	Faults Faults
	// Absent are the features that the server is without.
	Absent absent.Set
	// Address is the host and port to listen on; empty is "127.0.0.1:0", a free port of the loopback device.
	Address string
	// Token is the bearer token that every request but the health checks must carry; empty lets everybody in.
	Token string
	// TLS serves HTTPS with a certificate that is made at start. Clients that read a kubeconfig send a token only over HTTPS.
	TLS bool
	// Version is the Kubernetes version that the server says it is and whose rules it follows, such as "v1.37.1"; empty is DefaultVersion.
	Version string
	// NewAllocator replaces the allocator of each range; nil is the reference's own.
	NewAllocator func(netip.Prefix) (allocator.Allocator, error)
	// Seed makes the choices of dynamic allocation reproducible; 0 seeds them at random.
	Seed uint64
	// Controllers runs the endpoint controllers: selectors become EndpointSlices and Endpoints, hand-made Endpoints are mirrored.
	Controllers bool
}

// Server is one control plane. Its methods are safe for concurrent use.
type Server struct {
	options Options
	store   *store
	minor   int // of the Kubernetes version
	tls     *serverTLS
	rules   atomic.Pointer[service.Rules]

	cluster *clusterBook
	// serviceBook is the rules for requests on Services, otherBook those for all other requests.
	serviceBook, otherBook *requestBook

	endpointRules *controller.Rules

	managers  fieldManagers
	snapshots *snapshots

	// controlling is held while the endpoint controllers look at a Service.
	controlling sync.Mutex
	// controllersDown says that no endpoint controller runs.
	controllersDown atomic.Bool

	// loose is set on a server that was started with the gate StrictIPCIDRValidation off.
	loose bool
	// shared is set once another server works on the same storage: what is allocated is then known to somebody while this one is restarted.
	shared atomic.Bool

	// running ends when the server stops; nil before it was started.
	running atomic.Pointer[context.Context]

	// working is held for reading by every request and for writing while the rules are replaced.
	working sync.RWMutex

	mu      sync.Mutex // guards what follows: the life of the HTTP server
	address string     // host and port that it listens on, or did
	http    *http.Server
	socket  net.Listener
	stop    context.CancelFunc // ends the requests of the running HTTP server
	closed  bool
}

// New makes a server with its default namespaces, its ServiceCIDR and its "kubernetes" Service. It does not listen yet.
func New(options Options) (*Server, error) {
	if options.Version == "" {
		options.Version = DefaultVersion
	}
	if options.Address == "" {
		options.Address = "127.0.0.1:0"
	}
	if options.Seed == 0 {
		options.Seed = rand.Uint64()
	}
	minor, err := MinorVersion(options.Version)
	if err != nil {
		return nil, err
	}
	s := &Server{options: options, store: newStore(), snapshots: &snapshots{}, minor: minor, endpointRules: controller.New(options.Faults)}
	s.loadBooks()
	if options.TLS {
		if s.tls, err = newServerTLS(options.Address); err != nil {
			return nil, err
		}
	}
	if err := s.loadRules(); err != nil {
		return nil, err
	}
	if err := s.bootstrap(); err != nil {
		return nil, err
	}
	return s, nil
}

// The rules that the reference follows are those of these minor versions of Kubernetes 1.
const (
	OldestMinor = 25
	NewestMinor = 37
)

// MinorVersion reads the 37 of "v1.37.1".
func MinorVersion(version string) (int, error) {
	v, err := spec.ParseVersion(version)
	if err != nil {
		return 0, err
	}
	if v.Minor < OldestMinor || v.Minor > NewestMinor {
		return 0, fmt.Errorf("the reference does not know the rules of Kubernetes %s: it follows v1.%d to v1.%d", version, OldestMinor, NewestMinor)
	}
	return v.Minor, nil
}

// book returns the rules for requests on a resource.
func (s *Server) book(res *resource) *requestBook {
	if res == services {
		return s.serviceBook
	}
	return s.otherBook
}

// loadRules makes the rules anew and gives them everything that the store knows: what a real API server does when it starts.
func (s *Server) loadRules() error {
	rules, err := service.New(s.rulesConfig())
	if err != nil {
		return err
	}
	if err := s.cluster.recordRestored.Do(s, rules); err != nil {
		return err
	}
	s.rules.Store(rules)
	return nil
}

func (s *Server) rulesConfig() service.Config {
	return service.Config{
		ServiceCIDRs: s.options.ServiceCIDRs,
		NodePorts:    s.options.NodePorts,
		Faults:       s.faultsOfRules(),
		NewAllocator: s.options.NewAllocator,
		Seed:         s.options.Seed,
		Version:      fmt.Sprintf("1.%d", s.minor),
		OnAllocate:   s.addressAllocated,
		OnRelease:    s.addressReleased,
		LooseIPs:     s.loose,
	}
}

// Start listens and serves in the background. It returns when connections are accepted.
func (s *Server) Start() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.startLocked()
}

func (s *Server) startLocked() error {
	if s.closed {
		return errors.New("the reference API server is closed")
	}
	if s.http != nil {
		return errors.New("the reference API server is already running")
	}
	address := s.options.Address
	if s.address != "" {
		address = s.address // the port that clients know
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("reference API server cannot listen on %s (is the port in use?): %w", address, err)
	}
	s.address, s.socket = listener.Addr().String(), listener
	running, stop := context.WithCancel(context.Background())
	s.stop = stop
	s.running.Store(&running)
	s.http = &http.Server{
		Handler:           http.HandlerFunc(s.serve),
		BaseContext:       func(net.Listener) context.Context { return running },
		MaxHeaderBytes:    64 << 10,
		ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that break off are their own affair
	}
	if s.tls != nil {
		listener = s.tls.listen(listener)
	}
	go func(h *http.Server) { _ = h.Serve(listener) }(s.http) // returns http.ErrServerClosed once stopLocked runs
	return nil
}

// readHeaderTimeout is how long a client may take to send the head of a request.
const readHeaderTimeout = 30 * time.Second

// stopLocked cuts every connection, as a crash would.
func (s *Server) stopLocked() error {
	if s.http == nil {
		return nil
	}
	s.stop()
	err := s.http.Close()
	if closing := s.socket.Close(); !errors.Is(closing, net.ErrClosed) { // the HTTP server knows its socket only once it has begun to serve
		err = errors.Join(err, closing)
	}
	s.http, s.socket = nil, nil
	return err
}

// serve handles a request, unless the server that it came to has been stopped.
func (s *Server) serve(w http.ResponseWriter, r *http.Request) {
	s.working.RLock()
	defer s.working.RUnlock()
	if r.Context().Err() == nil {
		s.ServeHTTP(w, r)
	}
}

// Restart stops the server in the middle of whatever it does and starts it again at the same address and on the same storage.
// Allocators are built anew from the stored objects. Ranges that are named replace those that it had.
func (s *Server) Restart(ctx context.Context, serviceCIDRs ...netip.Prefix) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.stopLocked(); err != nil {
		return fmt.Errorf("stop the reference API server: %w", err)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	s.working.Lock() // once no request is worked on any more
	var err error
	if len(serviceCIDRs) > 0 {
		s.cluster.rangesChanged.Do(s, serviceCIDRs)
	}
	if !s.shared.Load() {
		err = s.loadRules()
	}
	s.working.Unlock()
	if err != nil {
		return fmt.Errorf("restart the reference API server: %w", err)
	}
	return s.startLocked()
}

// Close stops the server for good. It may be called more than once.
func (s *Server) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return s.stopLocked()
}

// URL is the base of the API, for example "http://127.0.0.1:43210"; empty before Start.
func (s *Server) URL() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.address == "":
		return ""
	case s.tls != nil:
		return "https://" + s.address
	default:
		return "http://" + s.address
	}
}

// CA is the PEM certificate that verifies the server; nil without TLS.
func (s *Server) CA() []byte {
	if s.tls == nil {
		return nil
	}
	return s.tls.authorityPEM
}

// Token is the bearer token that requests must carry; empty if none is needed.
func (s *Server) Token() string { return s.options.Token }

// ServiceCIDRs are the ranges that the server was started with, the primary family first.
func (s *Server) ServiceCIDRs() []netip.Prefix { return slices.Clone(s.options.ServiceCIDRs) }
