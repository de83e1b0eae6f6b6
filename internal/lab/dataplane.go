package lab

import (
	"context"
	"fmt"

	"github.com/service-conformance/conformance/framework/candidate"
	"github.com/service-conformance/conformance/internal/apiservers"
	"github.com/service-conformance/conformance/internal/lab/dataplane"
)

// DataPlane implements candidate.Candidate. All leases share the nodes of one cluster, which the first one starts.
func (l *Lab) DataPlane(ctx context.Context, q candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	if l.withoutDataPlane != nil {
		return nil, candidate.Unavailable("%v", l.withoutDataPlane)
	}
	w, err := l.ensureWorld(ctx)
	if err != nil {
		return nil, err
	}
	return w.Lease(q)
}

// ensureWorld starts the cluster unless it runs. A start that failed is not tried again: every check would wait for it.
func (l *Lab) ensureWorld(ctx context.Context) (*dataplane.World, error) {
	l.worldMu.Lock()
	defer l.worldMu.Unlock()
	if l.World == nil && l.worldError == nil {
		r, err := apiservers.ParseRanges(candidate.Request{DualStack: true}, l.Version)
		if err == nil {
			l.World, err = l.StartWorld(ctx, dataplane.Cluster{Ranges: r, Zones: dataplane.SharedZones, Controllers: dataplane.EndpointControllers})
		}
		if err != nil && ctx.Err() != nil { // a check that was interrupted leaves the start to the next one
			return nil, err
		}
		l.worldError = err
	}
	if l.worldError != nil {
		return nil, fmt.Errorf("no data plane: %w", l.worldError)
	}
	return l.World, l.World.Alive()
}

// StartWorld starts a cluster of nodes from the parts of the lab.
func (l *Lab) StartWorld(ctx context.Context, c dataplane.Cluster) (*dataplane.World, error) {
	e, err := l.ensureEtcd(ctx)
	if err != nil {
		return nil, err
	}
	return dataplane.StartWorld(ctx, dataplane.Parts{
		Version: l.Version, Binaries: l.Binaries, Dir: l.Dir, CA: l.ca, Etcd: e, Proxy: l.Proxy, CoreDNS: l.coreDNS, Surroundings: l.surroundings,
	}, c)
}
