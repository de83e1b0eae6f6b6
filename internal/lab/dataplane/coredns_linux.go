package dataplane

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/lab/controlplane"
	"github.com/service-conformance/conformance/internal/lab/process"
	"github.com/service-conformance/conformance/internal/lab/programs"
	"github.com/service-conformance/conformance/internal/traffic"
)

// dnsServer is the CoreDNS of a world, which the first question starts.
type dnsServer struct {
	mu      sync.Mutex
	process *process.Process
	err     error // of a start that failed: every check would wait for another one
	stopped bool
}

// Resolve implements candidate.DataPlane: CoreDNS runs beside the API server and is asked directly.
func (d *dataPlane) Resolve(ctx context.Context, questions []candidate.Question) ([]candidate.Resolution, error) {
	if err := d.world.ensureDNS(ctx); err != nil {
		return nil, err
	}
	said := make([]candidate.Resolution, len(questions))
	errs := make([]error, len(questions))
	var asked sync.WaitGroup
	for i, q := range questions {
		asked.Go(func() {
			said[i], errs[i] = traffic.Ask(ctx, controlplane.Loopback(programs.DNSPort), programs.ClusterDomain+".", q)
		})
	}
	asked.Wait()
	return said, errors.Join(errs...)
}

// ensureDNS starts CoreDNS unless it runs.
func (w *World) ensureDNS(ctx context.Context) error {
	if w.parts.CoreDNS == "" {
		return candidate.Unavailable("the folder %s has no program %s", w.parts.Binaries.Dir, programs.CoreDNS)
	}
	s := &w.dns
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.stopped:
		return apiservers.ErrClosed
	case s.err != nil:
		return s.err
	case s.process != nil && !s.process.Alive():
		return s.process.DiedError()
	case s.process != nil:
		return nil
	}
	var err error
	if s.process, err = w.startDNS(ctx); err != nil && ctx.Err() == nil {
		s.err = err // a check that was interrupted leaves the start to the next one
	}
	return err
}

// startDNS starts CoreDNS in the namespace of this process and waits until it knows the Services.
func (w *World) startDNS(ctx context.Context) (_ *process.Process, err error) {
	dir := w.parts.Dir
	config := dir.File("Corefile")
	if err := os.WriteFile(config, []byte(programs.CoreFile(w.Kubeconfig)), 0o600); err != nil {
		return nil, err
	}
	p, err := process.Start(process.Command{Name: string(programs.CoreDNS), Path: w.parts.Binaries.Path(programs.CoreDNS), Log: dir.File("coredns.log"), Args: []string{"-conf", config}})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			p.Kill()
			dir.Forget(p)
		}
	}()
	if err := dir.Add(p); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, controlplane.StartTimeout, fmt.Errorf("not ready after %s", controlplane.StartTimeout))
	defer cancel()
	for {
		// Whatever it says of this name, once it knows the objects it says something: before that it fails.
		said, err := traffic.Ask(ctx, controlplane.Loopback(programs.DNSPort), programs.ClusterDomain+".", candidate.Question{Name: "kubernetes.default.svc", Type: candidate.A})
		if err == nil && said.Said != candidate.Failed && said.Said != candidate.Unanswered {
			return p, nil
		}
		select {
		case <-p.Done:
			return nil, p.DiedError()
		case <-ctx.Done():
			return nil, fmt.Errorf("wait for CoreDNS: %w; its log ends with: %s", context.Cause(ctx), process.LogTail(p.Log, 3))
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// stop kills the server if it runs; none is started any more.
func (s *dnsServer) stop(dir *process.RunDir) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stopped = true
	if s.process != nil {
		s.process.Kill()
		dir.Forget(s.process)
	}
}
