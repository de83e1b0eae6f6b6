package allocator

import (
	"testing"

	"github.com/service-conformance/conformance/framework/check"
	"github.com/service-conformance/conformance/framework/reference"
	"github.com/service-conformance/conformance/framework/spec"

	_ "github.com/service-conformance/conformance/suites/allocation" // the suite to judge with
)

// verdict lets the suite fail without failing the test: what counts here is which requirements are not met.
type verdict struct{}

func (verdict) Fail() {}

func TestHostLocal(t *testing.T) {
	server, err := reference.New(reference.Options{NewAllocator: NewHostLocal})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close(t.Context())
	violated := map[spec.ID]bool{}
	conformant := 0
	check.Run(verdict{}, check.Setup{
		Candidate:    server,
		ServiceCIDRs: []string{"10.96.0.0/24"},
		Sink: func(e check.Event) {
			if e.Result == nil {
				return
			}
			switch e.Result.Verdict {
			case check.NonConformant:
				for _, id := range e.Result.Requirements {
					violated[id] = true
				}
			case check.Conformant:
				conformant++
			case check.Unknown:
				t.Errorf("%s is unknown: %s", e.Result.Check, e.Result.Reason)
			}
		},
	})
	// An allocator that counts upwards meets uniqueness, and misses the bands.
	if !violated[spec.AllocUpperBandFirst] {
		t.Errorf("the suite did not notice that host-local has no bands; violated: %v", violated)
	}
	if conformant == 0 || violated[spec.AllocDuplicateRefused] {
		t.Errorf("host-local does refuse duplicates, yet the suite says otherwise (%d conformant checks)", conformant)
	}
}
