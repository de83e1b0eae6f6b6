package cluster

import (
	"context"

	"github.com/service-conformance/conformance/framework/candidate"
)

// DataPlane implements candidate.Candidate.
func (c *Cluster) DataPlane(context.Context, candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	return nil, candidate.Unavailable("tier cluster has no data plane in this release")
}
