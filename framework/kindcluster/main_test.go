package kindcluster

import (
	"os"
	"testing"

	"github.com/service-conformance/conformance/internal/leaktest"
)

func TestMain(m *testing.M) { os.Exit(leaktest.Run(m)) }
