package lab

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/framework/certificates"
)

// apiServer is a kube-apiserver with ranges of its own. Its methods are safe for concurrent use.
type apiServer struct {
	version  version
	binaries *Binaries
	dir      *runDir
	etcd     *etcd
	ranges   ranges
	detached bool
	// reach is the address at which nodes reach the server; invalid where there are none, and it listens on loopback only.
	reach netip.Addr

	home   string // its files, inside dir
	prefix string // of its keys in etcd
	gates  map[string]bool
	port   int
	token  string
	ca     *certificates.Authority
	client *client

	mu         sync.Mutex
	process    *process
	restarting bool // the process is down on purpose
}

const (
	defaultServicesPath = "/api/v1/namespaces/default/services"
	// kubernetesServicePath is the object whose presence shows that a new server can allocate.
	kubernetesServicePath = defaultServicesPath + "/kubernetes"
)

// advertiseAddress is written into the endpoints of the "kubernetes" Service. kube-apiserver refuses loopback, and
// finds none by itself on a machine without a default route; these are for documentation (RFC 5737, RFC 3849).
func advertiseAddress(primary netip.Prefix) string {
	if primary.Addr().Is6() {
		return "2001:db8::1"
	}
	return "192.0.2.1"
}

// startAPIServer starts kube-apiserver and waits until it is ready and can allocate. serving, unless nil, is called once the server can be written
// to, which is a second earlier, and is waited for too.
func startAPIServer(
	ctx context.Context, v version, b *Binaries, d *runDir, ca *certificates.Authority, e *etcd, r ranges, reach netip.Addr, detached bool, serving func(*apiServer) error,
) (*apiServer, error) {
	home, err := os.MkdirTemp(d.path, "apiserver-")
	if err != nil {
		return nil, err
	}
	s := &apiServer{
		version: v, binaries: b, dir: d, etcd: e, ranges: r, reach: reach, detached: detached,
		home: home, prefix: "/" + filepath.Base(home), token: rand.Text(), ca: ca,
	}
	return s, s.start(ctx, serving)
}

// another starts a kube-apiserver on the keys of this one, with feature gates of its own.
func (s *apiServer) another(ctx context.Context, gates map[string]bool) (*apiServer, error) {
	home, err := os.MkdirTemp(s.dir.path, "apiserver-")
	if err != nil {
		return nil, err
	}
	a := &apiServer{
		version: s.version, binaries: s.binaries, dir: s.dir, etcd: s.etcd, ranges: s.ranges, reach: s.reach, detached: s.detached,
		home: home, prefix: s.prefix, gates: gates, token: rand.Text(), ca: s.ca,
	}
	if err := a.start(ctx, nil); errors.Is(err, errGate) {
		os.RemoveAll(home) // whatever stays goes with the folder of the lab
		return nil, candidate.Unavailable("kube-apiserver %s does not start with the feature gates %v", s.binaries.Version, gates)
	} else if err != nil {
		return nil, err
	}
	return a, nil
}

// start writes what the server reads and starts it on a free port.
func (s *apiServer) start(ctx context.Context, serving func(*apiServer) error) error {
	if err := s.writeCredentials(); err != nil {
		return err
	}
	for range attempts {
		ports, err := freePorts(1)
		if err != nil {
			return err
		}
		s.port = ports[0]
		s.client, err = newClient(candidate.Access{URL: "https://" + loopback(s.port), CA: s.ca.PEM, Token: s.token})
		if err != nil {
			return err
		}
		if err = s.run(ctx); err == nil {
			err = s.begin(ctx, serving)
		}
		if err == nil {
			return nil
		}
		s.client.close()
		if !errors.Is(err, errPortTaken) {
			return fmt.Errorf("start kube-apiserver %s for %s: %w", s.binaries.Version, s.ranges, err)
		}
	}
	return fmt.Errorf("start kube-apiserver %s for %s: %w", s.binaries.Version, s.ranges, errPortTaken)
}

// apiServerNames are the names by which clients reach an API server.
var apiServerNames = []string{"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc.cluster.local"}

func (s *apiServer) writeCredentials() error {
	addresses := []netip.Addr{netip.MustParseAddr("127.0.0.1"), s.ranges.kubernetesService()}
	if s.reach.IsValid() {
		addresses = append(addresses, s.reach)
	}
	cert, key, err := s.ca.Serving(apiServerNames, addresses...)
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

func (s *apiServer) args() []string {
	file := func(name string) string { return filepath.Join(s.home, name) }
	bind, advertise := "127.0.0.1", advertiseAddress(s.ranges.primary)
	if s.reach.IsValid() {
		bind, advertise = "0.0.0.0", s.reach.String() // the namespace has no neighbours but the nodes
		if s.reach.Is6() {
			bind = "::" // and with it IPv4
		}
	}
	serves := everything()
	if !s.reach.IsValid() && !s.detached && s.version.servesServicesOnly() && !s.binaries.servers.replaced() { // neither nodes nor people use it
		serves = servicesOnly()
	}
	serves = append(serves,
		"--etcd-servers="+s.etcd.endpoint,
		"--etcd-prefix="+s.prefix,
		"--service-cluster-ip-range="+s.ranges.String(),
		"--service-node-port-range="+s.ranges.nodePorts.String(),
		"--bind-address="+bind,
		fmt.Sprintf("--secure-port=%d", s.port),
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
	if s.reach.IsValid() { // no DNS knows the names of the nodes
		serves = append(serves, "--kubelet-preferred-address-types=InternalIP")
	}
	for _, gate := range slices.Sorted(maps.Keys(s.gates)) {
		serves = append(serves, fmt.Sprintf("--feature-gates=%s=%t", gate, s.gates[gate]))
	}
	return append(serves, s.binaries.servers.APIServerFlags...)
}

// begin calls serving while it waits until the server can be used.
func (s *apiServer) begin(ctx context.Context, serving func(*apiServer) error) error {
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
func (s *apiServer) run(ctx context.Context) error {
	path, args := s.binaries.apiServer()
	p, err := startProcess(command{
		name: string(APIServer), path: path, args: append(args, s.args()...), log: s.home + ".log", detached: s.detached, foreign: s.binaries.servers.replaced(),
		environment: s.dir.mark(),
	})
	if err != nil {
		return err
	}
	s.mu.Lock()
	s.process = p
	s.mu.Unlock()
	if err = s.dir.add(p); err == nil {
		err = s.wait(ctx, s.writable)
	}
	if err != nil {
		p.kill()
		s.dir.forget(p)
	}
	return err
}

// wait waits until there is no error.
func (s *apiServer) wait(ctx context.Context, reached func(context.Context) error) error {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	ctx, cancel := context.WithTimeoutCause(ctx, startTimeout, fmt.Errorf("not ready after %s", startTimeout))
	defer cancel()
	// A request must not outlive the process that it waits for.
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	go func() {
		select {
		case <-p.done:
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
		case <-p.done:
			return p.startError()
		case <-ctx.Done():
			if !p.alive() {
				return p.startError()
			}
			return fmt.Errorf("wait for kube-apiserver: %w (last answer: %w; its log ends with: %s)", context.Cause(ctx), last, logTail(p.log, 3))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// writable returns nil once the server is ready but for the default roles and priority classes, which nobody here asks for.
func (s *apiServer) writable(ctx context.Context) error {
	return s.client.get(ctx, "/readyz?exclude=poststarthook/rbac/bootstrap-roles&exclude=poststarthook/scheduling/bootstrap-system-priority-classes", nil)
}

// usable returns nil once the server is ready, the "kubernetes" Service is there, the default ServiceCIDR is ready where the API has them, and an address
// could be allocated.
func (s *apiServer) usable(ctx context.Context) error {
	if err := s.client.get(ctx, "/readyz", nil); err != nil {
		return err
	}
	if err := s.client.get(ctx, kubernetesServicePath, nil); err != nil {
		return err
	}
	if s.version.serviceCIDRAPI() {
		if err := s.rangeReady(ctx); err != nil {
			return err
		}
	}
	return s.allocates(ctx)
}

// allocates returns nil once the server could give a new Service an address of each family. All else that makes a server usable is in the storage of one that was
// restarted, but it begins to allocate some time after it says that it is ready (MetaAllocator.run of kube-apiserver).
func (s *apiServer) allocates(ctx context.Context) error {
	return s.client.call(ctx, http.MethodPost, defaultServicesPath+"?dryRun=All", "application/json", []byte(trialService), nil)
}

// trialService is accepted as a dry run on a full range, too.
const trialService = `{"apiVersion":"v1","kind":"Service","metadata":{"name":"trial"},"spec":{"ipFamilyPolicy":"PreferDualStack","ports":[{"port":80}]}}`

func (s *apiServer) rangeReady(ctx context.Context) error {
	var cidr object
	if err := s.client.get(ctx, serviceCIDRPath+"/kubernetes", &cidr); err != nil {
		return err
	}
	for _, c := range cidr.Status.Conditions {
		if c.Type == "Ready" && c.Status == "True" {
			return nil
		}
	}
	return errors.New(`the ServiceCIDR "kubernetes" is not ready`)
}

// alive returns nil while the server and its storage run, else why they do not.
func (s *apiServer) alive() error {
	s.mu.Lock()
	p, restarting := s.process, s.restarting
	s.mu.Unlock()
	if !s.etcd.process.alive() {
		return s.etcd.process.diedError()
	}
	if !p.alive() && !restarting {
		return p.diedError()
	}
	return nil
}

// restart kills the server and starts it again on the same port and storage.
func (s *apiServer) restart(ctx context.Context) error {
	s.setRestarting(true)
	defer s.setRestarting(false)
	s.halt()
	s.client.close()
	err := s.run(ctx)
	if err == nil {
		err = s.begin(ctx, nil)
	}
	if err != nil {
		return fmt.Errorf("restart kube-apiserver: %w", err)
	}
	return nil
}

func (s *apiServer) setRestarting(b bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.restarting = b
}

// halt kills the process.
func (s *apiServer) halt() {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	p.kill()
	s.dir.forget(p)
}

// stop kills the server and removes its files but the log.
func (s *apiServer) stop() {
	s.halt()
	s.client.close()
	os.RemoveAll(s.home) // whatever stays goes with the folder of the lab
}
