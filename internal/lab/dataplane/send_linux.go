package dataplane

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/lab/network"
)

// Send implements candidate.DataPlane: probes are sent from this process through sockets that were opened in the namespaces of the clients.
func (d *dataPlane) Send(ctx context.Context, probes []candidate.Probe) ([][]candidate.Outcome, error) {
	outcomes := make([][]candidate.Outcome, len(probes))
	errs := make([]error, len(probes))
	var sent sync.WaitGroup
	for i, p := range probes {
		if p.From.Balanced {
			sent.Go(func() { outcomes[i], errs[i] = d.sendBalanced(ctx, p) })
			continue
		}
		namespace, source, err := d.source(p.From, p.To.Addr())
		if err != nil {
			return nil, fmt.Errorf("probe from the %s: %w", p.From, err)
		}
		sent.Go(func() { outcomes[i] = d.prober.Send(ctx, namespace.Do, p, source) })
	}
	sent.Wait()
	return outcomes, errors.Join(errs...)
}

// source is where a client's sockets are and the address that they have; an invalid address leaves it to the kernel.
func (d *dataPlane) source(c candidate.Client, to netip.Addr) (*network.Namespace, netip.Addr, error) {
	switch {
	case c.Node != "":
		n, err := d.node(c.Node)
		if err != nil {
			return nil, netip.Addr{}, err
		}
		return n.network.Namespace, netip.Addr{}, nil
	case c.Gateway != "":
		n, err := d.node(c.Gateway)
		if err != nil {
			return nil, netip.Addr{}, err
		}
		o, err := d.world.outsideOf(n)
		if err != nil {
			return nil, netip.Addr{}, err
		}
		family := 0
		if to.Is6() {
			family = 1
		}
		if c.Address < 0 || c.Address >= len(o.Addresses[family]) {
			return nil, netip.Addr{}, fmt.Errorf("a client outside of the cluster has addresses 0 to %d, not %d", len(o.Addresses[family])-1, c.Address)
		}
		return o.Namespace, o.Addresses[family][c.Address], nil
	}
	p, err := d.pods.Sender(c.Pod)
	if err != nil {
		return nil, netip.Addr{}, err
	}
	return p.namespace(), netip.Addr{}, nil
}
