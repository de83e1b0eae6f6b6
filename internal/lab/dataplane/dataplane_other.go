//go:build !linux

package dataplane

import (
	"context"
	"errors"

	"github.com/service-conformance/conformance/framework/candidate"
)

// World is the cluster of a data plane, which this system cannot have.
type World struct{}

// StartWorld is not called where NodesWork fails.
func StartWorld(context.Context, Parts, Cluster) (*World, error) { return nil, errors.ErrUnsupported }

func (*World) Alive() error { return errors.ErrUnsupported }

func (*World) Lease(candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	return nil, errors.ErrUnsupported
}

func (*World) Stop() {}
