package agent

import (
	"context"
	"net/http"
	"net/netip"
	"net/url"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/traffic"
)

// hosting is the body of PathServe.
type hosting struct {
	Pod     candidate.PodName   `json:"pod"`
	Gateway string              `json:"gateway"`
	Ports   []candidate.PodPort `json:"ports"`
}

// Hosted is where a backend outside of the cluster answers.
type Hosted struct {
	// Addresses are those of the client candidate.OutsideBackend of its gateway, of each family that the agent has.
	Addresses []netip.Addr `json:"addresses"`
	// Ports are those that were asked for, each with its number.
	Ports []candidate.PodPort `json:"ports"`
}

// host starts a backend for a lease, beside that of the pod.
func (a *agent) host(lease string, as hosting) (Hosted, error) {
	var at Hosted
	four, six := 0, 0
	for _, address := range a.outside[as.Gateway] {
		of := &six
		if address.Is4() {
			of = &four
		}
		if *of == candidate.OutsideBackend {
			at.Addresses = append(at.Addresses, address)
		}
		*of++
	}
	if len(at.Addresses) == 0 {
		return Hosted{}, refusal(http.StatusBadRequest, "this agent has no address for backends with the gateway %q", as.Gateway)
	}
	server, err := traffic.Serve(as.Pod, as.Ports, nil)
	if err != nil {
		return Hosted{}, err
	}
	at.Ports = server.Ports()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hosted[lease] == nil {
		a.hosted[lease] = map[candidate.PodName]*traffic.Server{}
	}
	if earlier := a.hosted[lease][as.Pod]; earlier != nil {
		earlier.Close()
	}
	a.hosted[lease][as.Pod] = server
	return at, nil
}

// killHosted closes a backend of a lease. It may be called more than once.
func (a *agent) killHosted(lease string, pod candidate.PodName) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if server := a.hosted[lease][pod]; server != nil {
		server.Close()
		delete(a.hosted[lease], pod)
	}
}

// endHosted closes the backends of a lease. a.mu is held.
func (a *agent) endHosted(lease string) {
	for _, server := range a.hosted[lease] {
		server.Close()
	}
	delete(a.hosted, lease)
}

// Serve starts a backend outside of the cluster that answers as the pod, until KillHosted or the End of the lease. The agent must be one outside
// (Config.Outside). A port with the number 0 gets one that is free.
func (c *Client) Serve(ctx context.Context, lease, gateway string, pod candidate.PodName, ports []candidate.PodPort) (Hosted, error) {
	var at Hosted
	err := c.command(ctx, PathServe, url.Values{leaseParameter: {lease}}, hosting{pod, gateway, ports}, &at)
	return at, err
}

// KillHosted closes a backend that Serve has started: its ports refuse connections, established ones are reset.
func (c *Client) KillHosted(ctx context.Context, lease string, pod candidate.PodName) error {
	return c.command(ctx, PathKillHosted, url.Values{leaseParameter: {lease}}, pod, nil)
}
