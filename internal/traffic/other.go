//go:build !linux

package traffic

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/service-conformance/conformance/framework/candidate"
)

var errNoLinux = errors.New("packets can be sent and answered on Linux only, for the namespaces, SCTP and the ICMP errors of its sockets")

// Server answers on the ports of a pod; on Linux only.
type Server struct{}

// Serve fails.
func Serve(candidate.PodName, []candidate.PodPort, Namespace) (*Server, error) {
	return nil, errNoLinux
}

// Ports are none.
func (s *Server) Ports() []candidate.PodPort { return nil }

// Close does nothing.
func (s *Server) Close() {}

// Prober sends probes; on Linux only.
type Prober struct{ Ports *Ports }

// Send returns outcomes that are Broken.
func (p *Prober) Send(_ context.Context, _ Namespace, probe candidate.Probe, _ netip.Addr) []candidate.Outcome {
	outcomes := make([]candidate.Outcome, max(1, probe.Count))
	for i := range outcomes {
		outcomes[i] = candidate.Outcome{Result: candidate.Broken, Start: time.Now(), Error: errNoLinux.Error()}
	}
	return outcomes
}

// Close does nothing.
func (p *Prober) Close() {}
