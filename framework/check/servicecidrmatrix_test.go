package check

import (
	"testing"

	"github.com/service-conformance/conformance/framework/spec"
)

func TestAClusterCanHaveEveryRangeOfTheMatrix(t *testing.T) {
	for _, entry := range ServiceCIDRMatrix(Sample) {
		if _, err := spec.ParseUsableServiceCIDRs(entry); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
}
