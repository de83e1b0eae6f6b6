// Package agent is what runs in the pods of the tiers that have a real cluster. It is backends that answer with the
// pod's identity, and a prober. A run commands an agent by HTTP through the API server's proxy of pods, see Client. One
// request carries a whole batch of probes, so that none needs a process of its own in the pod.
//
// The control server of an agent answers:
//
//   - GET PathReadyz: 200 or 503, what the readiness probe of the pod asks for; GET PathLivez: 200. They need no token.
//   - POST PathReady {"ready":true}: switches what PathReadyz says.
//   - POST PathKill: closes the backends. Their ports refuse connections then, established connections are reset. It is final.
//   - POST PathProbe?lease=ID, a list of candidate.Probe: sends them from this pod, concurrently, and answers with a list of outcomes for each.
//     Named connections belong to the lease.
//   - POST PathResolve {"domain":"cluster.local","questions":[…]}: asks the first name server of the pod, and answers with a list of
//     candidate.Resolution. Without a domain it is that of the search list of the pod.
//   - POST PathEnviron: answers with the environment of the agent, a list of "NAME=value", sorted.
//   - POST PathServe?lease=ID {"pod":{…},"gateway":"node","ports":[…]}: starts a backend that answers as this pod, and says at which addresses and
//     ports. Only an agent outside of the cluster does. POST PathKillHosted?lease=ID {"namespace":"…","name":"…"} closes it.
//   - POST PathEnd?lease=ID: closes the connections and such backends of a lease.
//   - POST PathExit: ends the agent.
//
// Every POST must carry the run's token in TokenHeader. A refusal has a code and {"error":"why"}. The code is 400 for
// what cannot be understood, 401 for a token that is missing or wrong, 404, or 405. It is 413 for more than an agent
// takes at once, and 500 for what this pod cannot do.
package agent

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/traffic"
)

// Bounds on the connections of the control server. A request may take as long as its probes do.
const (
	requestTimeout  = 30 * time.Second // for a request to arrive
	idleTimeout     = 5 * time.Minute
	shutdownTimeout = 5 * time.Second
)

// agent is a running agent. Its methods are safe for concurrent use.
type agent struct {
	tokenDigest string
	outside     map[string][]netip.Addr
	backend     *traffic.Server     // nil for a client only
	dns         func() (dns, error) // that of the pod
	ready       atomic.Bool
	exit        func() // closes ended, may be called more than once
	ended       chan struct{}

	mu      sync.Mutex
	probers map[string]*traffic.Prober                       // by lease
	hosted  map[string]map[candidate.PodName]*traffic.Server // by lease
	ports   traffic.Ports
}

// Run runs an agent until it is told to exit, or the context ends. The backends answer before the control server does.
// An error means that a port could not be opened or served. The signals of the process are left to the caller. A pod
// that terminates gets SIGTERM, and must go on answering until it is killed.
func Run(ctx context.Context, config Config) error {
	a, err := start(config)
	if err != nil {
		return err
	}
	defer a.close()
	listener, err := net.Listen("tcp", ":"+strconv.Itoa(config.Control))
	if err != nil {
		return fmt.Errorf("open the control port: %w", err)
	}
	return a.serve(ctx, listener)
}

// start starts the backends.
func start(config Config) (*agent, error) {
	a := &agent{tokenDigest: config.TokenDigest, outside: config.Outside, dns: podDNS, ended: make(chan struct{}), probers: map[string]*traffic.Prober{}, hosted: map[string]map[candidate.PodName]*traffic.Server{}}
	a.exit = sync.OnceFunc(func() { close(a.ended) })
	a.ready.Store(!config.Unready)
	if len(config.Ports) == 0 {
		return a, nil
	}
	var err error
	if a.backend, err = traffic.Serve(config.Pod, config.Ports, nil); err != nil {
		return nil, err
	}
	return a, nil
}

// serve answers on the listener until the agent is told to exit or the context ends, and closes the listener.
func (a *agent) serve(ctx context.Context, listener net.Listener) error {
	requests, abandon := context.WithCancel(ctx)
	defer abandon()
	server := &http.Server{
		Handler: a, ReadHeaderTimeout: requestTimeout, IdleTimeout: idleTimeout,
		BaseContext: func(net.Listener) context.Context { return requests },
	}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	select {
	case err := <-failed:
		return fmt.Errorf("serve the control port: %w", err)
	case <-a.ended:
	case <-ctx.Done():
	}
	abandon() // probes that are under way end as Broken; answers are still written
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := server.Shutdown(last); errors.Is(err, context.DeadlineExceeded) {
		server.Close()
	}
	return nil
}

// close ends the backends and all connections.
func (a *agent) close() {
	a.kill()
	a.mu.Lock()
	defer a.mu.Unlock()
	for lease := range a.hosted {
		a.endHosted(lease)
	}
	for lease, p := range a.probers {
		p.Close()
		delete(a.probers, lease)
	}
}

// kill closes the backends. It may be called more than once.
func (a *agent) kill() {
	if a.backend != nil {
		a.backend.Close()
	}
}

// prober returns that of a lease.
func (a *agent) prober(lease string) *traffic.Prober {
	a.mu.Lock()
	defer a.mu.Unlock()
	p := a.probers[lease]
	if p == nil {
		p = &traffic.Prober{Ports: &a.ports}
		a.probers[lease] = p
	}
	return p
}

// end closes the connections and backends of a lease.
func (a *agent) end(lease string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.endHosted(lease)
	if p := a.probers[lease]; p != nil {
		p.Close()
		delete(a.probers, lease)
	}
}

// send sends probes concurrently, each from this pod: the kernel chooses the source address, but for clients outside of the cluster.
func (a *agent) send(ctx context.Context, lease string, probes []candidate.Probe) ([][]candidate.Outcome, error) {
	sources := make([]netip.Addr, len(probes))
	for i, probe := range probes {
		if probe.From.Gateway == "" {
			continue
		}
		var err error
		if sources[i], err = a.source(probe.From, probe.To.Addr()); err != nil {
			return nil, err
		}
	}
	p := a.prober(lease)
	outcomes := make([][]candidate.Outcome, len(probes))
	var sent sync.WaitGroup
	for i, probe := range probes {
		sent.Go(func() { outcomes[i] = p.Send(ctx, nil, probe, sources[i]) })
	}
	sent.Wait()
	return outcomes, nil
}

// source is the address of a client outside of the cluster, of the family of the destination.
func (a *agent) source(from candidate.Client, to netip.Addr) (netip.Addr, error) {
	left := from.Address
	for _, address := range a.outside[from.Gateway] {
		if address.Is4() != to.Unmap().Is4() {
			continue
		}
		if left == 0 {
			return address, nil
		}
		left--
	}
	return netip.Addr{}, refusal(http.StatusBadRequest, "this agent has no client %d of the family of %s with the gateway %q", from.Address, to, from.Gateway)
}

// defaultDomain is the one that nearly every cluster has.
const defaultDomain = "cluster.local"

// resolve asks the name server of the pod all questions at once. Without a domain it is the one that the pod was told.
func (a *agent) resolve(ctx context.Context, domain string, questions []candidate.Question) ([]candidate.Resolution, error) {
	pod, err := a.dns()
	if err != nil {
		return nil, err
	}
	domain = cmp.Or(strings.Trim(domain, "."), strings.Trim(pod.domain, "."), defaultDomain) + "."
	said := make([]candidate.Resolution, len(questions))
	errs := make([]error, len(questions))
	var asked sync.WaitGroup
	for i, q := range questions {
		asked.Go(func() { said[i], errs[i] = traffic.Ask(ctx, pod.server, domain, q) })
	}
	asked.Wait()
	return said, errors.Join(errs...)
}
