package check

import (
	"context"

	"github.com/onsi/ginkgo/v2"

	"github.com/service-conformance/conformance/framework/candidate"
)

// Another starts a second API server on the storage of this one (capability several-api-servers). The named feature
// gates of Kubernetes are set as given. What it returns has the same ranges and namespace, and ends with the check.
func (cp *ControlPlane) Another(ctx context.Context, gates map[string]bool) *ControlPlane {
	ginkgo.GinkgoHelper()
	var access candidate.Access
	own, err := candidate.OwnServer(cp.lease)
	if err == nil {
		access, err = own.AnotherServer(ctx, gates)
	}
	if candidate.IsUnavailable(err) {
		cannot(err)
	}
	Must(err)
	ginkgo.DeferCleanup(disconnect, access)
	what := setup.Candidate.Describe()
	other, err := newControlPlane(&beside{cp.lease, access}, current.declared, "another", &what)
	Must(err)
	other.spaces = []string{cp.Namespace()}
	other.journal, other.serial, other.server = cp.journal, cp.serial, "second API server"
	return other
}

// beside is a lease as it is seen through another API server.
type beside struct {
	candidate.ControlPlane
	access candidate.Access
}

func (j *beside) Access() candidate.Access { return j.access }
