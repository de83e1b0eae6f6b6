package lab

import (
	"context"
	"fmt"

	"github.com/service-conformance/conformance/framework/candidate"
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
	return w.lease(q)
}

// ensureWorld starts the cluster unless it runs. A start that failed is not tried again: every check would wait for it.
func (l *Lab) ensureWorld(ctx context.Context) (*world, error) {
	l.worldMu.Lock()
	defer l.worldMu.Unlock()
	if l.world == nil && l.worldError == nil {
		r, err := parseRanges(candidate.Request{DualStack: true}, l.version)
		if err == nil {
			l.world, err = l.startWorld(ctx, cluster{ranges: r, zones: sharedZones, controllers: endpointControllers})
		}
		if err != nil && ctx.Err() != nil { // a check that was interrupted leaves the start to the next one
			return nil, err
		}
		l.worldError = err
	}
	if l.worldError != nil {
		return nil, fmt.Errorf("no data plane: %w", l.worldError)
	}
	return l.world, l.world.alive()
}

// startWorld starts a cluster of nodes from the parts of the lab.
func (l *Lab) startWorld(ctx context.Context, c cluster) (*world, error) {
	e, err := l.ensureEtcd(ctx)
	if err != nil {
		return nil, err
	}
	return startWorld(ctx, parts{
		version: l.version, binaries: l.binaries, dir: l.dir, ca: l.ca, etcd: e, proxy: l.proxy, coreDNS: l.coreDNS, surroundings: l.surroundings,
	}, c)
}
