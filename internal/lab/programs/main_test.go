package programs

import (
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
	"github.com/service-conformance/conformance/internal/lab/isolation"
)

func TestMain(m *testing.M) {
	fakes.Main(m, DefaultVersion, func() error { return isolation.Prepare(nil) })
}
