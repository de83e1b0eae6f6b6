package standing

import (
	"testing"

	"github.com/service-conformance/conformance/framework/lab/fakes"
	"github.com/service-conformance/conformance/framework/lab/isolation"
	"github.com/service-conformance/conformance/framework/lab/programs"
)

func TestMain(m *testing.M) {
	fakes.Main(m, programs.DefaultVersion, func() error { return isolation.Prepare(Stay) })
}
