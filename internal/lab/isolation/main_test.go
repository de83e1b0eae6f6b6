package isolation

import (
	"testing"

	"github.com/service-conformance/conformance/internal/lab/fakes"
)

func TestMain(m *testing.M) {
	fakes.Main(m, "v1.37.1", func() error { return Prepare(nil) })
}
