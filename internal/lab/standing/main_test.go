package standing

import (
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/isolation"
	"github.com/service-conformance/conformance/internal/lab/programs"
)

func TestMain(m *testing.M) {
	fakes.Main(m, programs.DefaultVersion, func() error { return isolation.Prepare(Stay) })
}
