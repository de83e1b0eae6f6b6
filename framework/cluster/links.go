package cluster

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Links are the links of pods to their nodes. Its methods are safe for concurrent use.
type Links interface {
	// Narrow makes a node let packets of mtu bytes at most through to the addresses of a pod, for as long as the pod lasts.
	Narrow(ctx context.Context, node string, pod []netip.Addr, mtu int) error
}

// narrow puts a pod that runs behind a narrow link.
func (d *dataPlane) narrow(ctx context.Context, p *pod) error {
	links := d.cluster.options.Links
	if links == nil {
		return candidate.UnavailableHere("--tier lab or kind", "the cluster's links cannot be made narrow")
	}
	if err := links.Narrow(ctx, p.Node, p.Addresses, candidate.NarrowMTU); err != nil {
		return fmt.Errorf("make the link of pod %s narrow: %w", p.PodName, err)
	}
	return nil
}
