// Package controlplane runs etcd and API servers, and leases an API server to each user of its Service ranges.
package controlplane

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/certificates"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

// APIServer is a kube-apiserver with ranges of its own. Its methods are safe for concurrent use.
type APIServer struct {
	Version  programs.Version
	Binaries *programs.Binaries
	dir      *process.RunDir
	Etcd     *Etcd
	Ranges   apiservers.Ranges
	Detached bool
	// Reach is the address at which nodes reach the server; invalid where there are none, and it listens on loopback only.
	Reach netip.Addr

	home   string // its files, inside dir
	prefix string // of its keys in etcd
	gates  map[string]bool
	Port   int
	token  string
	ca     *certificates.Authority
	Client *apiservers.Client

	mu         sync.Mutex
	Process    *process.Process
	restarting bool // the process is down on purpose
}

// advertiseAddress is written into the endpoints of the "kubernetes" Service. kube-apiserver refuses loopback, and
// finds none by itself on a machine without a default route. These are for documentation (RFC 5737, RFC 3849).
func advertiseAddress(primary netip.Prefix) string {
	if primary.Addr().Is6() {
		return "2001:db8::1"
	}
	return "192.0.2.1"
}

// StartAPIServer starts kube-apiserver and waits until it is ready and can allocate. serving, unless nil, is called
// once the server can be written to, a second earlier. StartAPIServer waits for it, too.
func StartAPIServer(
	ctx context.Context, v programs.Version, b *programs.Binaries, d *process.RunDir, ca *certificates.Authority, e *Etcd, r apiservers.Ranges, reach netip.Addr, detached bool, serving func(*APIServer) error,
) (*APIServer, error) {
	home, err := os.MkdirTemp(d.Path, "apiserver-")
	if err != nil {
		return nil, err
	}
	s := &APIServer{
		Version: v, Binaries: b, dir: d, Etcd: e, Ranges: r, Reach: reach, Detached: detached,
		home: home, prefix: "/" + filepath.Base(home), token: rand.Text(), ca: ca,
	}
	return s, s.start(ctx, serving)
}

// another starts a kube-apiserver on the keys of this one, with feature gates of its own.
func (s *APIServer) another(ctx context.Context, gates map[string]bool) (*APIServer, error) {
	home, err := os.MkdirTemp(s.dir.Path, "apiserver-")
	if err != nil {
		return nil, err
	}
	a := &APIServer{
		Version: s.Version, Binaries: s.Binaries, dir: s.dir, Etcd: s.Etcd, Ranges: s.Ranges, Reach: s.Reach, Detached: s.Detached,
		home: home, prefix: s.prefix, gates: gates, token: rand.Text(), ca: s.ca,
	}
	if err := a.start(ctx, nil); errors.Is(err, process.ErrGate) {
		os.RemoveAll(home) // whatever stays goes with the folder of the lab
		return nil, candidate.NotBound("kube-apiserver %s does not start with the feature gates %v", s.Binaries.Version, gates)
	} else if err != nil {
		return nil, err
	}
	return a, nil
}

// start writes what the server reads and starts it on a free port.
func (s *APIServer) start(ctx context.Context, serving func(*APIServer) error) error {
	if err := s.writeCredentials(); err != nil {
		return err
	}
	for range attempts {
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		s.Port = ports[0]
		s.Client, err = apiservers.NewClient(candidate.Access{URL: "https://" + Loopback(s.Port), CA: s.ca.PEM, Token: s.token})
		if err != nil {
			return err
		}
		if err = s.run(ctx); err == nil {
			err = s.begin(ctx, serving)
		}
		if err == nil {
			return nil
		}
		s.Client.Close()
		if !errors.Is(err, process.ErrPortTaken) {
			return fmt.Errorf("start kube-apiserver %s for %s: %w", s.Binaries.Version, s.Ranges, err)
		}
	}
	return fmt.Errorf("start kube-apiserver %s for %s: %w", s.Binaries.Version, s.Ranges, process.ErrPortTaken)
}

// APIServerNames are the names by which clients reach an API server.
var APIServerNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}

func (s *APIServer) writeCredentials() error {
	addresses := []netip.Addr{netip.MustParseAddr("127.0.0.1"), s.Ranges.KubernetesService()}
	if s.Reach.IsValid() {
		addresses = append(addresses, s.Reach)
	}
	cert, key, err := s.ca.Serving(APIServerNames, addresses...)
	if err != nil {
		return err
	}
	signing, public, err := certificates.NewSigningKey()
	if err != nil {
		return err
	}
	for name, content := range map[string][]byte{
		"tls.crt": cert, "tls.key": key, "sa.key": signing, "sa.pub": public,
		"tokens.csv": []byte(s.token + ",admin,admin,system:masters\n"),
	} {
		if err := os.WriteFile(filepath.Join(s.home, name), content, 0o600); err != nil {
			return err
		}
	}
	return nil
}

// Args are the flags that the server is started with.
func (s *APIServer) Args() []string {
	file := func(name string) string { return filepath.Join(s.home, name) }
	bind, advertise := "127.0.0.1", advertiseAddress(s.Ranges.Primary)
	if s.Reach.IsValid() {
		bind, advertise = "0.0.0.0", s.Reach.String() // the namespace has no neighbours but the nodes
		if s.Reach.Is6() {
			bind = "::" // and with it IPv4
		}
	}
	serves := everything()
	if !s.Reach.IsValid() && !s.Detached && s.Version.ServesServicesOnly() && !s.Binaries.Servers.Replaced() { // neither nodes nor people use it
		serves = servicesOnly()
	}
	serves = append(serves,
		"--etcd-servers="+s.Etcd.endpoint,
		"--etcd-prefix="+s.prefix,
		"--service-cluster-ip-range="+s.Ranges.String(),
		"--service-node-port-range="+s.Ranges.NodePorts.String(),
		"--bind-address="+bind,
		fmt.Sprintf("--secure-port=%d", s.Port),
		"--advertise-address="+advertise,
		"--cert-dir="+s.home,
		"--tls-cert-file="+file("tls.crt"),
		"--tls-private-key-file="+file("tls.key"),
		"--token-auth-file="+file("tokens.csv"),
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-account-key-file="+file("sa.pub"),
		"--service-account-signing-key-file="+file("sa.key"),
		// One impatient client is all there is: queueing its requests fairly only takes time.
		"--enable-priority-and-fairness=false",
		"--max-requests-inflight=3000",
		"--max-mutating-requests-inflight=1000",
		"--profiling=false",
		"--v=1",
	)
	if s.Reach.IsValid() { // no DNS knows the names of the nodes
		serves = append(serves, "--kubelet-preferred-address-types=InternalIP")
	}
	for _, gate := range slices.Sorted(maps.Keys(s.gates)) {
		serves = append(serves, fmt.Sprintf("--feature-gates=%s=%t", gate, s.gates[gate]))
	}
	return append(serves, s.Binaries.Servers.APIServerFlags...)
}

// begin calls serving while it waits until the server can be used.
func (s *APIServer) begin(ctx context.Context, serving func(*APIServer) error) error {
	served := make(chan error, 1)
	go func() {
		if serving == nil {
			served <- nil
			return
		}
		served <- serving(s)
	}()
	err := errors.Join(s.wait(ctx, s.usable), <-served)
	if err != nil {
		s.halt()
	}
	return err
}

// run starts the process on the chosen port and waits until it can be written to.
func (s *APIServer) run(ctx context.Context) error {
	path, args := s.Binaries.APIServer()
	p, err := process.Start(process.Command{
		Name: string(programs.APIServer), Path: path, Args: append(args, s.Args()...), Log: s.home + ".log", Detached: s.Detached, Foreign: s.Binaries.Servers.Replaced(),
		Environment: s.dir.Mark(),
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.Process = p
	s.mu.Unlock()
	if err = s.dir.Add(p); err == nil {
		err = s.wait(ctx, s.Client.Writable)
	}
	if err != nil {
		p.Kill()
		s.dir.Forget(p)
	}
	return err
}

// wait waits until there is no error.
func (s *APIServer) wait(ctx context.Context, reached func(context.Context) error) error {
	s.mu.Lock()
	p := s.Process
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, StartTimeout, fmt.Errorf("not ready after %s", StartTimeout))
	defer cancel()
	// A request must not outlive the process that it waits for.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-p.Done:
			stop()
		case <-ctx.Done():
		}
	}()
	var last error
	for {
		if last = reached(ctx); last == nil {
			return nil
		}
		select {
		case <-p.Done:
			return p.StartError()
		case <-ctx.Done():
			if !p.Alive() {
				return p.StartError()
			}
			return fmt.Errorf("wait for kube-apiserver: %w (last answer: %w; its log ends with: %s)", context.Cause(ctx), last, process.LogTail(p.Log, 3))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// usable returns nil once the server is ready and can allocate.
func (s *APIServer) usable(ctx context.Context) error {
	return s.Client.Usable(ctx, s.Version.ServiceCIDRAPI())
}

// Reset implements apiservers.Server.
func (s *APIServer) Reset(ctx context.Context) error {
	return s.Client.Reset(ctx, s.Version.ServiceCIDRAPI())
}

// Alive returns nil while the server and its storage run, else why they do not.
func (s *APIServer) Alive() error {
	s.mu.Lock()
	p, restarting := s.Process, s.restarting
	s.mu.Unlock()
	if !s.Etcd.Process.Alive() {
		return s.Etcd.Process.DiedError()
	}
	if !p.Alive() && !restarting {
		return p.DiedError()
	}
	return nil
}

// Restart kills the server and starts it again on the same port and storage.
func (s *APIServer) Restart(ctx context.Context) error {
	s.setRestarting(true)
	defer s.setRestarting(false)
	s.halt()
	s.Client.Close()
	err := s.run(ctx)
	if err == nil {
		err = s.begin(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("restart kube-apiserver: %w", err)
	}
	return nil
}

func (s *APIServer) setRestarting(b bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarting = b
}

// halt kills the process.
func (s *APIServer) halt() {
	s.mu.Lock()
	p := s.Process
	s.mu.Unlock()
	p.Kill()
	s.dir.Forget(p)
}

// Stop kills the server and removes its files but the log.
func (s *APIServer) Stop() {
	s.halt()
	s.Client.Close()
	os.RemoveAll(s.home) // whatever stays goes with the folder of the lab
}
