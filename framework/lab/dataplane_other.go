//go:build !linux

package lab

import (
	"context"
	"errors"

	"github.com/service-conformance/conformance/framework/candidate"
)

// world is the cluster of a data plane, which this system cannot have.
type world struct{}

// startWorld is not called where NodesWork fails.
func startWorld(context.Context, parts, cluster) (*world, error) { return nil, errors.ErrUnsupported }

func (*world) alive() error { return errors.ErrUnsupported }

func (*world) lease(candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	return nil, errors.ErrUnsupported
}

func (*world) stop() {}
