package check

import (
	"fmt"
	"net/netip"
	"sync"

	"sigs.k8s.io/yaml"

	"github.com/service-conformance/conformance/fixtures"
)

// RangeUse says what a check does with a range of the Service CIDR matrix.
type RangeUse string

// The uses.
const (
	Sample   RangeUse = ""       // a bounded number of Services: every range will do
	Fill     RangeUse = "always" // every address is handed out: small ranges only
	FillSlow RangeUse = "slow"   // every address of the large ranges that --slow adds
)

type matrixEntry struct {
	CIDR string   `json:"cidr"`
	Fill RangeUse `json:"fill"`
}

var matrix = sync.OnceValue(func() []matrixEntry {
	var f struct {
		ServiceCIDRs []matrixEntry `json:"serviceCIDRs"`
		Clusters     []any         `json:"clusters"` // of tier kind
	}
	if err := yaml.UnmarshalStrict(fixtures.ServiceCIDRs, &f); err != nil {
		panic(fmt.Sprintf("embedded servicecidrs.yaml: %v", err))
	}
	for _, e := range f.ServiceCIDRs {
		netip.MustParsePrefix(e.CIDR)
	}
	return f.ServiceCIDRs
})

// ServiceCIDRMatrix returns the ranges of the Service CIDR matrix that allow the use.
func ServiceCIDRMatrix(use RangeUse) []string {
	var cidrs []string
	for _, e := range matrix() {
		if use == Sample || e.Fill == use {
			cidrs = append(cidrs, e.CIDR)
		}
	}
	return cidrs
}
