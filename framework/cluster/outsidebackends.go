package cluster

import (
	"context"
)

// startOutside has the agent outside of the cluster answer as the pod, at an address and on ports of its own.
func (d *dataPlane) startOutside(ctx context.Context, p *pod) error {
	if err := d.cluster.withoutOutside(p.Node); err != nil {
		return err
	}
	p.agent, p.lease = d.cluster.options.Outside.agent(), d.id
	at, err := p.agent.Serve(ctx, p.lease, p.Node, p.PodName, p.Ports)
	if err != nil {
		return err
	}
	p.Ports, p.Addresses = at.Ports, nil
	for _, cidr := range d.cluster.cidrs { // the primary family first
		for _, a := range at.Addresses {
			if a.Is4() == cidr.Addr().Is4() {
				p.Addresses = append(p.Addresses, a)
			}
		}
	}
	return nil
}
