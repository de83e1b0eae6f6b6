//go:build !linux

package lab

import (
	"context"

	"github.com/service-conformance/conformance/framework/candidate"
)

// world is the cluster of a data plane, which this system cannot have.
type world struct{}

func (*world) stop() {}

// DataPlane implements candidate.Candidate: there is none on this system.
func (l *Lab) DataPlane(context.Context, candidate.DataPlaneRequest) (candidate.DataPlane, error) {
	return nil, candidate.Unavailable("%v", l.withoutDataPlane)
}

func sctpWorks() bool { return false }
func ipvsWorks() bool { return false }
func inGuest() bool   { return false }
