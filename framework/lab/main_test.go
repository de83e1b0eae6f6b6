package lab

import (
	"testing"

	"github.com/service-conformance/conformance/framework/lab/fakes"
)

func TestMain(m *testing.M) {
	fakes.Main(m, DefaultVersion, func() error { return PrepareIsolation(Stay) })
}
